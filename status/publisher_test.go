package status

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// publishing is a publisher at work and what it said.
type publishing struct {
	*Publisher
	api          *fakeAPI
	acknowledged []string // reasons
	keeps        []bool
	stop         func()
}

func publish(t *testing.T, api *fakeAPI, changes ...func(*Options)) *publishing {
	t.Helper()
	p := &publishing{api: api}
	options := Options{Client: api.client(t), NodeName: "n1", FlushTime: 3 * time.Second,
		OnKeepsFields:  func(keeps bool) { p.keeps = append(p.keeps, keeps) },
		OnAcknowledged: func(r Report) { p.acknowledged = append(p.acknowledged, r.Condition.Reason) }}
	for _, change := range changes {
		change(&options)
	}
	p.Publisher = NewPublisher(options)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	p.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		done <- nil
	}
	t.Cleanup(p.stop)
	return p
}

// expect compares the requests since the last call with, say, "get patch".
func (p *publishing) expect(t *testing.T, requests string) {
	t.Helper()
	synctest.Wait()
	if asked := p.api.asked(); asked != requests {
		t.Errorf("requests %q, expected %q", asked, requests)
	}
}

// elapse lets time pass on the clock of the bubble.
func elapse(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func report(status corev1.ConditionStatus, reason string, observed string) Report {
	return Report{Publication: nodev1.Publication{Observed: &observed, Status: nodev1.Status{Reason: reason},
		Condition: corev1.NodeCondition{Type: nodev1.ConditionType, Status: status, Reason: reason, Message: "using " + reason}}}
}

func source(name string) *corev1.NodeConfigSource {
	return &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{Namespace: "ns", Name: name, UID: "u", ResourceVersion: "1", KubeletConfigKey: "kubelet"}}
}

func TestPublishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		p := publish(t, api)
		p.expect(t, "")
		began := time.Now()

		p.Offer(report("True", "Local", ""))
		p.expect(t, "get patch")
		elapse(time.Minute)
		p.Offer(report("True", "Local", ""))
		elapse(time.Minute)
		p.expect(t, "") // it is there already

		r := report("True", "InTrial", "ns/a/kubelet")
		r.Config.Assigned = source("a")
		p.Offer(r)
		p.expect(t, "patch")
		want := corev1.NodeCondition{Type: nodev1.ConditionType, Status: "True", Reason: "InTrial", Message: "using InTrial"}
		got := nodev1.ConditionOf(api.node)
		if !got.LastTransitionTime.Time.Equal(began.Truncate(time.Second)) || !got.LastHeartbeatTime.Time.Equal(time.Now().Truncate(time.Second)) {
			t.Errorf("the status stayed, but the transition was at %v, the heartbeat at %v", got.LastTransitionTime, got.LastHeartbeatTime)
		}
		want.LastHeartbeatTime, want.LastTransitionTime = got.LastHeartbeatTime, got.LastTransitionTime
		if diff := cmp.Diff(want, *got); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]string{"foreign": "stays", nodev1.ConfigObservedAnnotation: "ns/a/kubelet",
			nodev1.StatusAnnotation:       `{"observed":"ns/a/kubelet","reason":"InTrial"}`,
			nodev1.ConfigStatusAnnotation: `{"assigned":{"configMap":{"namespace":"ns","name":"a","uid":"u","resourceVersion":"1","kubeletConfigKey":"kubelet"}}}`}, api.node.Annotations); diff != "" {
			t.Error(diff)
		}
		if len(api.node.Status.Conditions) != 2 {
			t.Errorf("conditions: %v", api.node.Status.Conditions)
		}

		elapse(time.Minute)
		p.Offer(report("False", "Refused", ""))
		p.expect(t, "patch")
		if got := nodev1.ConditionOf(api.node); !got.LastTransitionTime.Time.Equal(time.Now().Truncate(time.Second)) {
			t.Errorf("the status changed, but the transition was at %v", got.LastTransitionTime)
		}
		if value, ok := api.node.Annotations[nodev1.ConfigObservedAnnotation]; ok {
			t.Errorf("observed is still %q", value)
		}
		if api.node.Annotations[nodev1.ConfigStatusAnnotation] != "{}" {
			t.Errorf("an empty status is %q", api.node.Annotations[nodev1.ConfigStatusAnnotation])
		}
		if !slices.Equal(p.acknowledged, []string{"Local", "InTrial", "Refused"}) {
			t.Errorf("acknowledged %q", p.acknowledged)
		}
	})
}

func TestLearnsWhetherFieldsAreKept(t *testing.T) {
	for name, c := range map[string]struct {
		node        func(*fakeAPI)
		keeps       bool
		alwaysSends bool
	}{
		"dropped":                     {func(*fakeAPI) {}, false, false},
		"kept":                        {func(f *fakeAPI) { f.keeps = true }, true, true},
		"the Node has the assignment": {func(f *fakeAPI) { f.node.Spec.ConfigSource = source("a") }, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFakeAPI()
				c.node(api)
				p := publish(t, api)
				for _, reason := range []string{"One", "Two", "Three"} {
					p.Offer(report("True", reason, ""))
					synctest.Wait()
				}
				if !slices.Equal(p.keeps, []bool{c.keeps}) {
					t.Errorf("told %v, expected one %v", p.keeps, c.keeps)
				}
				for i, patch := range api.patches {
					var sent struct{ Status map[string]json.RawMessage }
					if err := json.Unmarshal([]byte(patch), &sent); err != nil {
						t.Fatal(err)
					}
					if _, sent := sent.Status["config"]; sent != (i == 0 || c.alwaysSends) {
						t.Errorf("patch %d has status.config: %v", i+1, sent)
					}
				}
			})
		})
	}
}

func TestEmptiesStatusConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.keeps = true
		p := publish(t, api)
		r := report("False", "Refused", "ns/a/kubelet")
		r.Config = corev1.NodeConfigStatus{Assigned: source("a"), Active: source("b"), LastKnownGood: source("b"), Error: "failed"}
		p.Offer(r)
		synctest.Wait()
		if diff := cmp.Diff(&r.Config, api.node.Status.Config); diff != "" {
			t.Error(diff)
		}
		p.Offer(report("True", "Local", ""))
		synctest.Wait()
		if diff := cmp.Diff(&corev1.NodeConfigStatus{}, api.node.Status.Config); diff != "" {
			t.Error(diff)
		}
	})
}

func TestObservedIsLeftAlone(t *testing.T) {
	unchanged := func(reason string) Report {
		r := report("True", reason, "")
		r.Observed = nil
		return r
	}
	t.Run("after it was published", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.node.Annotations[nodev1.ConfigObservedAnnotation] = "from the run before"
			p := publish(t, api)
			p.Offer(unchanged("One"))
			synctest.Wait()
			if got := api.node.Annotations[nodev1.ConfigObservedAnnotation]; got != "from the run before" {
				t.Errorf("observed: %q", got)
			}
		})
	})
	t.Run("when it is still to be published", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.fail["patch"] = errors.New("connection refused")
			p := publish(t, api)
			p.Offer(report("True", "One", "ns/a/kubelet"))
			synctest.Wait()
			p.Offer(unchanged("Two"))
			synctest.Wait()
			api.change(func() { clear(api.fail) })
			elapse(time.Minute)
			if got := api.node.Annotations[nodev1.ConfigObservedAnnotation]; got != "ns/a/kubelet" {
				t.Errorf("observed: %q", got)
			}
		})
	})
}

func TestRetriesUntilAcknowledged(t *testing.T) {
	for name, c := range map[string]struct {
		hurt, heal func(*fakeAPI)
	}{
		"no answer":       {func(f *fakeAPI) { f.fail["get"] = errors.New("refused") }, func(f *fakeAPI) { clear(f.fail) }},
		"patch lost":      {func(f *fakeAPI) { f.fail["patch"] = errors.New("reset") }, func(f *fakeAPI) { clear(f.fail) }},
		"server errors":   {func(f *fakeAPI) { f.fail["patch"] = code(500) }, func(f *fakeAPI) { clear(f.fail) }},
		"forbidden":       {func(f *fakeAPI) { f.fail["patch"] = code(403) }, func(f *fakeAPI) { clear(f.fail) }},
		"no Node yet":     {func(f *fakeAPI) { f.node = nil }, func(f *fakeAPI) { f.node = newFakeAPI().node }},
		"annotation lost": {func(f *fakeAPI) { f.after = func(string) { delete(f.node.Annotations, nodev1.ConfigStatusAnnotation) } }, func(f *fakeAPI) { f.after = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFakeAPI()
				c.hurt(api)
				p := publish(t, api)
				p.Offer(report("True", "Old", ""))
				synctest.Wait()
				p.Offer(report("True", "Local", ""))
				elapse(time.Hour)
				if len(p.acknowledged) > 0 {
					t.Errorf("acknowledged %q", p.acknowledged)
				}
				if n := len(p.api.requests); n < 30 || n > 100 {
					t.Errorf("%d requests in an hour", n)
				}
				api.change(func() { c.heal(api) })
				elapse(150 * time.Second)
				if !slices.Equal(p.acknowledged, []string{"Local"}) || nodev1.ConditionOf(api.node).Reason != "Local" {
					t.Errorf("acknowledged %q, the Node shows %v", p.acknowledged, nodev1.ConditionOf(api.node))
				}
			})
		})
	}
}

// A patch whose answer is lost may have been made: what the Node shows is not known then, so also the report of before is published again.
func TestAPatchWhoseAnswerIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		p := publish(t, api)
		p.Offer(report("True", "Active", "ns/a/kubelet"))
		p.expect(t, "get patch")
		api.change(func() { api.lost = errors.New("connection reset by peer") })
		p.Offer(report("False", "Refused", "ns/b/kubelet"))
		p.expect(t, "patch")
		p.Offer(report("True", "Active", "ns/a/kubelet")) // and back, before another try
		api.change(func() { api.lost = nil })
		elapse(time.Minute)
		if got := nodev1.ConditionOf(api.node).Reason; got != "Active" || api.node.Annotations[nodev1.ConfigObservedAnnotation] != "ns/a/kubelet" {
			t.Errorf("the Node shows %s of %s", got, api.node.Annotations[nodev1.ConfigObservedAnnotation])
		}
	})
}

func TestNodeRecreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.keeps = true
		p := publish(t, api)
		p.Offer(report("True", "Active", "ns/a/kubelet"))
		p.expect(t, "get patch")
		api.change(func() {
			api.node, api.keeps = newFakeAPI().node, false // an upgraded API server keeps the fields of old Nodes only
			api.node.UID = "second"
		})
		p.NodeRecreated()
		p.expect(t, "get patch")
		p.Offer(report("True", "Active", "ns/a/kubelet"))
		p.expect(t, "") // it is there already
		if got := nodev1.ConditionOf(api.node); got == nil || got.Reason != "Active" || api.node.Annotations[nodev1.ConfigObservedAnnotation] != "ns/a/kubelet" {
			t.Errorf("the new Node shows %v", got)
		}
		if !slices.Equal(p.keeps, []bool{true, false}) {
			t.Errorf("keeps: %v", p.keeps)
		}
		p.Event(Event{time.Now(), corev1.EventTypeNormal, "Reason", "message"})
		synctest.Wait()
		if uid := api.events[0].InvolvedObject.UID; uid != "second" {
			t.Errorf("the event is about uid %s", uid)
		}
	})
}

// A Node may come again before there is anything to say of it.
func TestNodeRecreatedBeforeAnything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := publish(t, newFakeAPI())
		p.NodeRecreated()
		p.expect(t, "")
		p.Offer(report("True", "Active", ""))
		p.expect(t, "get patch")
	})
}

func TestNodeRecreatedWhilePublishing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		p := publish(t, api)
		api.after = func(verb string) {
			if verb == "patch" {
				api.after = nil
				p.NodeRecreated()
			}
		}
		p.Offer(report("True", "Active", ""))
		p.expect(t, "get patch get patch")
	})
}

func TestNewerReportWhilePublishing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		p := publish(t, api)
		api.after = func(verb string) {
			if verb == "patch" {
				api.after = nil
				p.Offer(report("True", "Newer", ""))
			}
		}
		p.Offer(report("True", "Older", ""))
		p.expect(t, "get patch patch")
		if got := nodev1.ConditionOf(api.node); got.Reason != "Newer" {
			t.Errorf("the Node shows %v", got)
		}
	})
}

func TestNodeGoneUnnoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		p := publish(t, api)
		p.Offer(report("True", "Local", ""))
		p.expect(t, "get patch")
		api.change(func() { api.node = nil })
		p.Offer(report("True", "Active", ""))
		p.expect(t, "patch")
		api.change(func() {
			api.node, api.keeps = newFakeAPI().node, true
			api.node.UID = "second"
		})
		elapse(1200 * time.Millisecond)
		p.expect(t, "get patch")
		if !slices.Equal(p.keeps, []bool{false, true}) {
			t.Errorf("keeps: %v", p.keeps)
		}
	})
}

func TestBackOff(t *testing.T) {
	t.Run("begins anew after success", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.fail["patch"] = errors.New("refused")
			p := publish(t, api)
			p.Offer(report("True", "One", ""))
			elapse(time.Hour)
			api.change(func() { clear(api.fail) })
			elapse(150 * time.Second)
			api.change(func() { api.fail["patch"] = errors.New("refused") })
			p.Offer(report("True", "Two", ""))
			synctest.Wait()
			api.change(func() { clear(api.fail) })
			elapse(1200 * time.Millisecond)
			if got := nodev1.ConditionOf(api.node); got.Reason != "Two" {
				t.Errorf("the Node shows %v", got)
			}
		})
	})
	t.Run("doubles", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.fail["get"] = errors.New("refused")
			p := publish(t, api)
			p.Offer(report("True", "One", ""))
			for range 400 {
				elapse(100 * time.Millisecond)
				p.Offer(report("True", "One", "")) // the same once more is nothing new
			}
			p.expect(t, "get get get get get get") // at 0, 1, 3, 7, 15 and 31 s, ±20 %
		})
	})
	t.Run("begins anew with a new report", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.fail["patch"] = errors.New("refused")
			p := publish(t, api)
			p.Offer(report("True", "One", ""))
			elapse(time.Hour)
			p.Offer(report("True", "Two", ""))
			synctest.Wait()
			api.change(func() { clear(api.fail) })
			elapse(1200 * time.Millisecond)
			if got := nodev1.ConditionOf(api.node); got == nil || got.Reason != "Two" {
				t.Errorf("the Node shows %v", got)
			}
		})
	})
	t.Run("heeds the API server", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.fail["patch"] = code(429) // with "in 30 s"
			p := publish(t, api)
			p.Offer(report("True", "One", ""))
			p.expect(t, "get patch")
			elapse(29 * time.Second)
			p.expect(t, "")
			elapse(time.Second)
			p.expect(t, "patch")
		})
	})
}

func TestFlush(t *testing.T) {
	t.Run("the last report is published after the end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.fail["patch"] = errors.New("reset")
			p := publish(t, api)
			p.Offer(report("True", "Active", ""))
			synctest.Wait()
			p.Offer(report("Unknown", "Stopped", ""))
			synctest.Wait()
			time.AfterFunc(time.Second, func() { api.change(func() { clear(api.fail) }) })
			p.stop()
			if got := nodev1.ConditionOf(api.node); got == nil || got.Reason != "Stopped" {
				t.Errorf("the Node shows %v", got)
			}
		})
	})
	for limit, want := range map[time.Duration]time.Duration{3 * time.Second: 3 * time.Second, 0: 2 * time.Second} {
		t.Run("but not for ever: "+limit.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFakeAPI()
				api.fail["get"] = errors.New("refused")
				p := publish(t, api, func(o *Options) { o.FlushTime = limit })
				p.Offer(report("Unknown", "Stopped", ""))
				synctest.Wait()
				began := time.Now()
				p.stop()
				if took := time.Since(began); took != want {
					t.Errorf("stopped after %v", took)
				}
			})
		})
	}
	t.Run("nothing left takes no time and no request", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			p := publish(t, api)
			p.Offer(report("True", "Active", ""))
			p.expect(t, "get patch")
			began := time.Now()
			p.stop()
			if p.expect(t, ""); time.Since(began) != 0 {
				t.Errorf("stopped after %v", time.Since(began))
			}
		})
	})
}

// What only takes or counts time is no news: it comes with the next patch.
func TestTimeAloneIsNoNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		p := publish(t, api)
		r := report("False", "WouldDisrupt", "ns/a/kubelet")
		offer := func(at int64, outcome string) {
			then := time.Unix(at, 0).UTC()
			r.Status.Since, r.Status.Hold = then, &nodev1.Hold{Approval: "0123456789ab", AsOf: then}
			r.Status.Trial = &nodev1.Trial{Healthy: time.Duration(at).String(), Of: "10m0s", Tries: 1}
			r.Status.Change = &nodev1.Change{From: "local", To: "ns/a/kubelet", Outcome: outcome, Phases: []nodev1.ChangePhase{{Name: "wait", Took: time.Duration(at).String()}}}
			p.Offer(r)
		}
		shown := func() nodev1.Status { return nodev1.Read(api.node).Status }
		offer(1, "")
		p.expect(t, "get patch")
		offer(2, "")
		p.expect(t, "")
		if got := shown().Since; got.Unix() != 1 {
			t.Errorf("the Node says %s", got)
		}
		offer(3, "Superseded")
		p.expect(t, "patch")
		if got := shown(); got.Since.Unix() != 3 || got.Hold.AsOf.Unix() != 3 || got.Change.Phases[0].Took != "3ns" {
			t.Errorf("the Node says %+v", got)
		}
	})
}

// A supervisor that has not seen the assignment yet leaves what the Node says of it, in both places.
func TestWhatWasObservedStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.node.Annotations[nodev1.ConfigObservedAnnotation] = "ns/a/kubelet"
		api.node.Annotations[nodev1.StatusAnnotation] = nodev1.Status{Observed: "ns/a/kubelet"}.Encode()
		p := publish(t, api)
		r := report("True", "Active", "")
		r.Observed = nil
		p.Offer(r)
		p.expect(t, "get patch")
		if got := nodev1.Read(api.node).Status; got.Observed != "ns/a/kubelet" || api.node.Annotations[nodev1.ConfigObservedAnnotation] != "ns/a/kubelet" {
			t.Errorf("the Node says %+v, %v", got, api.node.Annotations)
		}
		nothing := ""
		r.Observed = &nothing
		p.Offer(r)
		p.expect(t, "patch")
		r.Observed = nil // as after another session
		p.Offer(r)
		p.expect(t, "")
		if got := nodev1.Read(api.node).Status; got.Observed != "" {
			t.Errorf("the Node says %+v", got)
		}
	})
}
