package status

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// What a Node has lost of what was published is there again within 12 min.
func TestALostStatusIsWrittenAgain(t *testing.T) {
	condition := func(change func(*corev1.NodeCondition)) func(*fakeAPI) {
		return func(f *fakeAPI) { change(nodev1.ConditionOf(f.node)) }
	}
	backup := newFakeAPI().node
	for name, hurt := range map[string]func(*fakeAPI){
		"config-status removed":   func(f *fakeAPI) { delete(f.node.Annotations, nodev1.ConfigStatusAnnotation) },
		"config-status forged":    func(f *fakeAPI) { f.node.Annotations[nodev1.ConfigStatusAnnotation] = "{}" },
		"config-observed removed": func(f *fakeAPI) { delete(f.node.Annotations, nodev1.ConfigObservedAnnotation) },
		"the status removed":      func(f *fakeAPI) { delete(f.node.Annotations, nodev1.StatusAnnotation) },
		"the status forged":       func(f *fakeAPI) { f.node.Annotations[nodev1.StatusAnnotation] = `{"reason":"Rejected"}` },
		"the condition's status":  condition(func(c *corev1.NodeCondition) { c.Status = "False" }),
		"the condition's reason":  condition(func(c *corev1.NodeCondition) { c.Reason = "Forged" }),
		"the condition's message": condition(func(c *corev1.NodeCondition) { c.Message = "forged" }),
		"the condition removed":   func(f *fakeAPI) { f.node.Status.Conditions = f.node.Status.Conditions[:1] },
		"status.config removed":   func(f *fakeAPI) { f.node.Status.Config = nil },
		"etcd from a backup":      func(f *fakeAPI) { f.node = backup.DeepCopy() },
		"etcd from a backup, and the API server was not restarted": func(f *fakeAPI) { f.cached, f.node = f.node, backup.DeepCopy() },
		"another Node of the name":                                 func(f *fakeAPI) { f.node = backup.DeepCopy(); f.node.UID = "second" },
		"another Node of the name, with all that was shown":        func(f *fakeAPI) { f.node.UID = "second" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFakeAPI()
				api.keeps = true
				p := publish(t, api)
				r := moved(1)
				r.Status.Retry = "pool/hash/1"
				p.Offer(r)
				elapse(time.Hour)
				api.change(func() { hurt(api) })
				p.api.asked()
				elapse(12*time.Minute + time.Second)
				if asked := api.asked(); strings.Count(asked, "patch") != 1 {
					t.Errorf("requests %q, expected one patch", asked)
				}
				got := nodev1.ConditionOf(api.node)
				if got == nil || got.Status != "True" || got.Reason != "Active" || got.Message != r.Condition.Message || api.node.Status.Config == nil ||
					api.node.Annotations[nodev1.ConfigObservedAnnotation] != "ns/a/kubelet" || !strings.Contains(api.node.Annotations[nodev1.ConfigStatusAnnotation], `"name":"a"`) ||
					api.node.Annotations[nodev1.StatusAnnotation] != `{"observed":"ns/a/kubelet","reason":"Active","retry":"pool/hash/1"}` {
					t.Errorf("the Node shows %v, %v and %v", api.node.Annotations, got, api.node.Status.Config)
				}
				elapse(time.Hour)
				if asked := api.asked(); strings.Contains(asked, "patch") {
					t.Errorf("later requests %q", asked)
				}
			})
		})
	}
}

// While nothing is wrong there is a GET in 10 min ± 20 %, and no patch.
func TestTheNodeIsLookedAt(t *testing.T) {
	steady := func(t *testing.T, api *fakeAPI) {
		p := publish(t, api)
		p.Offer(moved(1))
		p.expect(t, "get patch")
		for range 20 {
			last := time.Now()
			for time.Since(last) < time.Hour && api.asked() == "" {
				elapse(time.Second)
			}
			if gap := time.Since(last); gap < 8*time.Minute-time.Second || gap > 12*time.Minute+time.Second {
				t.Errorf("a look after %s", gap)
			}
		}
		if len(api.patches) != 1 {
			t.Errorf("%d patches", len(api.patches))
		}
		if !slices.Equal(p.keeps, []bool{false}) {
			t.Errorf("told that fields are kept: %v", p.keeps)
		}
	}
	t.Run("as it was published", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { steady(t, newFakeAPI()) })
	})
	t.Run("as a webhook made it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.after = func(verb string) {
				if verb == "patch" {
					nodev1.ConditionOf(api.node).Message = "cut"
				}
			}
			steady(t, api)
		})
	})
	t.Run("and its version is told", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.node.ResourceVersion = "7"
			told := ""
			p := publish(t, api, func(o *Options) { o.OnLooked = func(version string) { told += version } })
			p.Offer(moved(1))
			elapse(12*time.Minute + time.Second)
			if told != "7" {
				t.Errorf("told %q", told)
			}
		})
	})
	t.Run("nothing was published yet", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := publish(t, newFakeAPI())
			elapse(time.Hour)
			p.expect(t, "")
		})
	})
	t.Run("the API server is away when it is time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			p := publish(t, api)
			p.Offer(moved(1))
			p.expect(t, "get patch")
			api.change(func() { delete(api.node.Annotations, nodev1.ConfigStatusAnnotation); api.fail["get"] = code(500) })
			elapse(time.Hour)
			if asked := strings.Count(api.asked(), "get"); asked < 10 || asked > 40 {
				t.Errorf("%d looks", asked)
			}
			api.change(func() { clear(api.fail) })
			elapse(150 * time.Second)
			p.expect(t, "get patch")
			api.change(func() { api.fail["get"] = code(500) })
			for last := time.Now(); api.asked() == "" && time.Since(last) < time.Hour; {
				elapse(time.Second)
			}
			api.change(func() { clear(api.fail) })
			elapse(1200 * time.Millisecond) // the pauses have begun anew
			p.expect(t, "get")
		})
	})
	t.Run("while a move waits for longer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			p := publish(t, api, func(o *Options) { o.MovesEvery = 2 * time.Hour })
			p.Offer(moved(1))
			p.expect(t, "get patch")
			p.Offer(moved(2))
			elapse(12*time.Minute + time.Second)
			p.expect(t, "get")
			api.change(func() { nodev1.ConditionOf(api.node).Message = "forged" })
			elapse(12*time.Minute + time.Second)
			p.expect(t, "get patch")
			if got := api.shownVersion(); got != "using version 2" {
				t.Errorf("the Node shows %q", got)
			}
		})
	})
	t.Run("and a condition that somebody changed has changed when it is mended", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			p := publish(t, api)
			p.Offer(moved(1))
			p.expect(t, "get patch")
			began := time.Now()
			api.change(func() { nodev1.ConditionOf(api.node).Status = corev1.ConditionFalse })
			elapse(12*time.Minute + time.Second)
			p.expect(t, "get patch")
			if got := nodev1.ConditionOf(api.node); got.Status != "True" || got.LastTransitionTime.Sub(began) < 8*time.Minute-time.Second {
				t.Errorf("the Node shows %v", got)
			}
		})
	})
	t.Run("there is no Node when it is time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			p := publish(t, api, func(o *Options) { o.OnLooked = func(string) { t.Error("a look at nothing was told") } })
			p.Offer(moved(1))
			p.expect(t, "get patch")
			api.change(func() { api.node = nil })
			elapse(12*time.Minute + time.Second)
			p.expect(t, "get")
		})
	})
	t.Run("not after the end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := publish(t, newFakeAPI())
			p.Offer(moved(1))
			p.expect(t, "get patch")
			elapse(8*time.Minute - time.Second)
			p.checkAt = time.Now()
			p.stop()
			p.expect(t, "")
		})
	})
}

// The Nodes of a fleet that were published on at the same time are not looked at at the same time.
func TestLooksOfAFleetAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes = 1000
		in := map[time.Duration]int{} // minute → how many
		for range nodes {
			p := NewPublisher(Options{NodeName: "n1"})
			p.scheduleCheck()
			in[time.Until(p.checkAt).Truncate(time.Minute)]++
		}
		for minute := 8 * time.Minute; minute < 12*time.Minute; minute += time.Minute {
			if n := in[minute]; n < nodes/8 || n > nodes/2 {
				t.Errorf("%d of %d are looked at in the minute after %s", n, nodes, minute)
			}
			delete(in, minute)
		}
		if len(in) > 0 {
			t.Errorf("others are looked at after %v", in)
		}
	})
}

// A Node that comes to carry the fields of the original API is watched whole from then on.
func TestFieldsThatComeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		p := publish(t, api)
		p.Offer(moved(1))
		synctest.Wait()
		api.change(func() { api.node.Spec.ConfigSource = source("a") })
		elapse(12*time.Minute + time.Second)
		if len(p.keeps) != 2 || !p.keeps[1] {
			t.Errorf("told %v", p.keeps)
		}
	})
}

// The last word of the process before may come after the first of this one: a network that was cut delivers it when it is back (seen in a soak).
func TestTheLastWordOfTheProcessBefore(t *testing.T) {
	for name, test := range map[string]struct {
		before string
		looks  bool
	}{"it was not heard": {"Active", true}, "it was": {"Stopped", false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFakeAPI()
				first := publish(t, api)
				first.Offer(report("Unknown", "Stopped", "ns/a/kubelet"))
				elapse(time.Second)
				late := api.node.DeepCopy()
				first.Offer(report("True", test.before, "ns/a/kubelet"))
				elapse(time.Minute)
				first.stop()
				api.asked()

				p := publish(t, api)
				p.Offer(report("True", "Active", "ns/b/kubelet"))
				elapse(10 * time.Second)
				if test.looks {
					api.change(func() { api.node = late })
				}
				api.asked()
				elapse(2 * time.Minute)
				if looked := strings.Contains(api.asked(), "get"); looked != test.looks {
					t.Errorf("it looks soon: %v", looked)
				}
				if got := nodev1.ConditionOf(api.node); got.Reason != "Active" {
					t.Errorf("the Node shows %v", got)
				}
			})
		})
	}
}

// A patch that nobody answered may be made after the next one: a network that was cut delivers it when it is back.
func TestALatePatchIsPublishedOver(t *testing.T) {
	for name, test := range map[string]struct {
		fails  error
		within time.Duration // of the patch that comes late, 20 s after the newest one
	}{
		"nobody answered":                {errors.New("deadline exceeded"), time.Minute},
		"the answer was that it is slow": {code(504), time.Minute},
		"it was refused":                 {code(403), 12 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFakeAPI()
				p := publish(t, api)
				p.Offer(report("Unknown", "Applying", "ns/a/kubelet"))
				elapse(time.Hour)
				late := api.node.DeepCopy()
				api.change(func() { api.fail["patch"] = test.fails })
				p.Offer(moved(1))
				elapse(100 * time.Millisecond)
				api.change(func() { delete(api.fail, "patch") })
				elapse(20 * time.Second)
				if got := nodev1.ConditionOf(api.node); got.Reason != "Active" {
					t.Fatalf("the Node shows %v", got)
				}
				api.change(func() { api.node = late })
				elapse(test.within)
				if got := nodev1.ConditionOf(api.node); got.Reason != "Active" {
					t.Errorf("the Node shows %v", got)
				}
				elapse(time.Hour)
				api.asked()
				elapse(time.Hour)
				if gets := strings.Count(api.asked(), "get"); gets < 5 || gets > 8 {
					t.Errorf("%d looks in an hour, later", gets)
				}
			})
		})
	}
}
