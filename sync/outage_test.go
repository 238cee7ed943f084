package sync

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFollowerWhenTheAPIIsAway(t *testing.T) {
	a := "kube-system/a/kubelet"
	refused := errors.New("connection refused")
	all := []string{"list nodes", "watch nodes", "get nodes", "list configmaps", "watch configmaps", "get configmaps"}

	t.Run("what was resolved stays, and changes meanwhile are told afterwards", func(t *testing.T) {
		for name, err := range map[string]error{"no answer": refused, "internal errors": apiFailure{code: 500, message: "etcd"}} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					api := newFakeAPI()
					api.set(configMap("a", "ua", "one"))
					api.set(assigned(a))
					f := follow(t, api, nil)
					f.expect(t, "source "+a+" ua@101 = one")
					elapse(time.Minute)
					api.failWith(err, all...)
					api.endWatches()
					elapse(time.Hour)
					f.expect(t)
					if reachable := f.Reachable(); reachable != (name == "internal errors") {
						t.Errorf("reachable: %v", reachable)
					}
					api.set(configMap("a", "ua", "two"))
					api.failWith(nil, all...)
					elapse(150 * time.Second)
					f.expect(t, "source "+a+" ua@103 = two")
					if !f.Reachable() {
						t.Error("not reachable after the API server came back")
					}
				})
			})
		}
	})
	t.Run("what was never resolved is a problem, until it is", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.failWith(refused, "list configmaps")
			api.set(configMap("a", "ua", "one"))
			api.set(assigned(a))
			f := follow(t, api, nil)
			f.expect(t, "problem "+a+": ConfigMap kube-system/a cannot be read: the API server cannot be reached: connection refused")
			api.failWith(nil, "list configmaps")
			f.Reconsider()
			f.expect(t, "source "+a+" ua@101 = one")
		})
	})
	t.Run("a request is given up after its time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.failWith(errHang, "list configmaps")
			api.set(assigned(a))
			f := follow(t, api, nil)
			elapse(RequestTimeout - time.Second)
			f.expect(t)
			elapse(time.Second)
			f.expect(t, "problem "+a+": ConfigMap kube-system/a cannot be read: the API server gave no answer within 10s")
		})
	})
	t.Run("a request that we give up ourselves does not count as unreachable", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.failWith(errHang, "list configmaps")
			api.set(assigned(a))
			f := follow(t, api, nil)
			f.expect(t)
			api.set(node(nil))
			f.expect(t, `local ""`)
			if !f.Reachable() {
				t.Error("not reachable")
			}
		})
	})
	t.Run("a start without the API server tells nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.failWith(refused, all...)
			f := follow(t, api, nil)
			elapse(time.Hour)
			f.expect(t)
		})
	})
}

func TestRetriesBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		var tries []time.Time
		api.fail["list nodes"] = func() error {
			tries = append(tries, time.Now())
			return errors.New("connection refused")
		}
		follow(t, api, nil)
		elapse(20 * time.Minute)
		synctest.Wait()
		want := time.Second
		for i := range len(tries) - 1 {
			gap := tries[i+1].Sub(tries[i])
			if gap < want*8/10 || gap > want*12/10+time.Millisecond {
				t.Errorf("try %d after %v, expected %v ±20 %%", i+2, gap, want)
			}
			want = min(2*want, 2*time.Minute)
		}
		if len(tries) < 14 {
			t.Errorf("%d tries in 20 min: it gave up", len(tries))
		}
	})
}

func TestBackOffBeginsAnewAfterSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.set(node(nil))
		api.failWith(errors.New("connection refused"), "list nodes")
		f := follow(t, api, nil)
		elapse(time.Hour)
		api.failWith(nil, "list nodes")
		elapse(3 * time.Minute)
		f.expect(t, `local ""`)
		elapse(time.Minute)
		api.failWith(errors.New("connection refused"), "watch nodes")
		api.endWatches()
		elapse(resumeWithin)
		api.failWith(nil, "watch nodes")
		api.set(assigned("local"))
		elapse(6 * time.Second) // two more may have failed
		f.expect(t, `local "local"`)
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.set(node(nil))
		api.failWith(apiFailure{code: 429, message: "busy", retryAfter: 30}, "list nodes")
		f := follow(t, api, nil)
		synctest.Wait()
		api.failWith(nil, "list nodes")
		elapse(29 * time.Second)
		f.expect(t)
		elapse(time.Second)
		f.expect(t, `local ""`)
	})
}

func TestWatches(t *testing.T) {
	t.Run("in the steady state nothing but the watches is asked for", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.set(configMap("a", "ua", "one"))
			api.set(assigned("kube-system/a/kubelet"))
			follow(t, api, nil)
			expectAsked(t, api, "list nodes", "watch nodes metadata", "list configmaps", "watch configmaps")
			elapse(minWatch - time.Second)
			expectAsked(t, api)
			elapse(maxWatch - minWatch + time.Second)
			if asked := api.asked(); !slices.Contains(asked, "watch nodes metadata") || !slices.Contains(asked, "watch configmaps") || strings.Contains(fmt.Sprint(asked), "list") {
				t.Errorf("asked for %q after the longest watch", asked)
			}
		})
	})
	t.Run("one that ended in its time is resumed at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.set(configMap("a", "ua", "one"))
			api.set(assigned("kube-system/a/kubelet"))
			follow(t, api, nil)
			synctest.Wait()
			for range 3 * maxWatch / time.Second {
				elapse(time.Second)
				if open := api.open(); open != 2 {
					t.Fatalf("%d watches are open, expected 2", open)
				}
			}
		})
	})
	t.Run("an expired watch is begun anew", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.set(node(nil))
			f := follow(t, api, nil)
			f.expect(t, `local ""`)
			elapse(time.Minute)
			api.asked()
			api.sendRaw(strings.TrimSpace(expired))
			expectAsked(t, api, "list nodes", "watch nodes metadata")
			api.set(assigned("local"))
			f.expect(t, `local "local"`)
		})
	})
	t.Run("a watch that sends rubbish is begun anew", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.set(node(nil))
			f := follow(t, api, nil)
			f.expect(t, `local ""`)
			elapse(time.Minute)
			api.asked()
			api.sendRaw(`{"type":"MODIFIED","object":"rubbish"}`)
			elapse(resumeWithin + 2*time.Second)
			expectAsked(t, api, "watch nodes metadata")
			api.sendRaw(`{"type":"MODIFIED","object":"rubbish"}`)
			elapse(resumeWithin + 2*time.Second)
			expectAsked(t, api, "list nodes", "watch nodes metadata")
		})
	})
	t.Run("watches that end at once are put off more and more", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.set(node(nil))
			api.failWith(errors.New("EOF"), "watch nodes")
			follow(t, api, nil)
			elapse(10 * time.Minute)
			if n := len(api.asked()); n > 30 {
				t.Errorf("%d requests in 10 min", n)
			}
		})
	})
	t.Run("a dead connection is given up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.deaf = true
			api.set(node(nil))
			f := follow(t, api, nil)
			f.expect(t, `local ""`)
			api.set(assigned("local"))
			elapse(minWatch)
			f.expect(t)
			elapse(maxWatch - minWatch + watchGrace)
			f.expect(t, `local "local"`)
		})
	})
	t.Run("a watch that is not answered is given up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.set(node(nil))
			api.failWith(errHang, "watch nodes")
			f := follow(t, api, nil)
			f.expect(t, `local ""`)
			api.set(assigned("local"))
			elapse(RequestTimeout + 2*time.Second)
			f.expect(t, `local "local"`)
		})
	})
}
