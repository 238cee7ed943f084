package status

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// moved is a report that says the same of another resourceVersion.
func moved(version int) Report {
	r := report("True", "Active", "ns/a/kubelet")
	r.Config.Assigned = source("a")
	r.Config.Assigned.ConfigMap.ResourceVersion = fmt.Sprint(version)
	r.Condition.Message = fmt.Sprintf("using version %d", version)
	r.Gist = "using a version"
	return r
}

func patient(o *Options) { o.MovesEvery = time.Minute }

func (f *fakeAPI) shownVersion() string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return nodev1.ConditionOf(f.node).Message
}

// An hour in which the ConfigMap is touched every 2 s is at most a patch a minute, and the last touch is published in the end.
func TestMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		p := publish(t, api, patient)
		var patches []time.Time
		api.after = func(verb string) {
			if verb == "patch" {
				patches = append(patches, time.Now())
			}
		}
		for version := range 1800 {
			p.Offer(moved(version))
			elapse(2 * time.Second)
		}
		elapse(2 * time.Minute)
		if got := api.shownVersion(); got != "using version 1799" {
			t.Errorf("in the end the Node shows %q", got)
		}
		var gaps []time.Duration
		for i := range len(patches) - 1 {
			gaps = append(gaps, patches[i+1].Sub(patches[i]))
		}
		if least, most := slices.Min(gaps), slices.Max(gaps); least < time.Minute || most > 2*time.Minute || most-least < 20*time.Second {
			t.Errorf("%d patches, between %s and %s apart", len(patches), least, most)
		}
	})
}

// A label edit on a ConfigMap that many Nodes are assigned is not published by all of them at once.
func TestMovesOfAFleetAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var apis []*fakeAPI
		began := time.Now()
		var mu sync.Mutex
		perSecond := map[int]int{}
		for range 300 {
			api := newFakeAPI()
			p := publish(t, api, patient)
			p.Offer(moved(1))
			apis = append(apis, api)
			time.AfterFunc(time.Hour, func() { p.Offer(moved(2)) })
		}
		elapse(30 * time.Minute)
		for _, api := range apis {
			api.change(func() {
				api.after = func(verb string) {
					if verb == "patch" {
						mu.Lock()
						defer mu.Unlock()
						perSecond[int(time.Since(began.Add(time.Hour)).Seconds())]++
					}
				}
			})
		}
		elapse(31*time.Minute + time.Second)
		total := 0
		for second, patches := range perSecond {
			if total += patches; patches > 20 || second > 60 {
				t.Errorf("%d patches in second %d", patches, second)
			}
		}
		if total != 300 {
			t.Errorf("%d patches", total)
		}
	})
}

// A kubelet that is healthy for a moment and ends, again and again, is told once a minute, and in the end as it is. So it is beside a verdict that
// the Node has shown.
func TestFlapping(t *testing.T) {
	for _, state := range []struct {
		status corev1.ConditionStatus
		reason string
	}{{"True", "Active"}, {"False", "Rejected"}, {"False", "LastKnownGoodFailed"}} {
		t.Run(state.reason, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { flap(t, state.status, state.reason) }) })
	}
}

func flap(t *testing.T, status corev1.ConditionStatus, reason string) {
	api := newFakeAPI()
	p := publish(t, api, patient)
	var made atomic.Int32
	api.change(func() {
		api.after = func(verb string) {
			if verb == "patch" {
				made.Add(1)
			}
		}
	})
	up, down := report(status, reason, "ns/a/kubelet"), report("Unknown", "EnvironmentFailing", "ns/a/kubelet")
	up.Status.Failure = &nodev1.Failure{Kind: nodev1.FailureExited, Message: "exit code 1"}
	for round := range 60 {
		up.Gist = fmt.Sprintf("restarted %d times", round)
		p.Offer(up)
		elapse(3 * time.Second)
		down.Condition.Message = fmt.Sprintf("exit code %d", round)
		p.Offer(down)
		elapse(7 * time.Second)
	}
	if patches := made.Load(); patches < 10 || patches > 13 {
		t.Errorf("%d patches in ten minutes, want 3 at once and then one a minute", patches)
	}
	elapse(time.Minute)
	if got := api.shownVersion(); got != "exit code 59" {
		t.Errorf("in the end the Node shows %q", got)
	}
	expectAtOnce := func(what string, r Report) {
		t.Helper()
		before := made.Load()
		p.Offer(r)
		elapse(time.Second)
		if made.Load() != before+1 {
			t.Errorf("%s waited", what)
		}
	}
	if status == corev1.ConditionFalse {
		other := up
		other.Status.Failure = &nodev1.Failure{Kind: nodev1.FailureLeaseLost, Message: "healthy, but its Lease was not renewed"}
		other.Gist = "another verdict"
		expectAtOnce("another verdict", other)
	}
	up.Gist = "spent"
	up.Status.Approval = "0123456789ab"
	expectAtOnce("the word that an approval was spent", up)
	edited := report("True", "Active", "ns/a/kubelet")
	edited.Config.Assigned = source("a")
	expectAtOnce("an edit", edited)
}

// What somebody waits for is published at once, however much has just been published.
func TestWhatDoesNotWait(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Report)
		waits  time.Duration // at least
	}{
		"a move":                      {func(*Report) {}, time.Minute},
		"another assignment":          {func(r *Report) { other := "ns/b/kubelet"; r.Observed = &other }, 0},
		"a verdict":                   {func(r *Report) { r.Condition.Status, r.Condition.Reason, r.Gist = "False", "Refused", "refused" }, 0},
		"a verdict in the same words": {func(r *Report) { r.Condition.Status, r.Condition.Reason = "False", "Refused" }, 0},
		"another status":              {func(r *Report) { r.Condition.Status = "Unknown" }, 0},
		"another reason":              {func(r *Report) { r.Condition.Reason = "InTrial" }, 0},
		"a retry that was seen":       {func(r *Report) { r.Status.Retry = "pool/hash/1" }, 0},
		"another error":               {func(r *Report) { r.Config.Error = "failed" }, 0},
		"other content":               {func(r *Report) { r.Gist = "another version" }, 0},
		"one whose gist is empty":     {func(r *Report) { r.Gist = "" }, 0},
		"what goes on": {func(r *Report) {
			r.Condition.Status, r.Condition.Reason, r.Gist, r.Passing = "Unknown", "Applying", "applying", true
		}, 10 * time.Second},
		"what goes on with another assignment": {func(r *Report) {
			other := "ns/b/kubelet"
			r.Condition.Status, r.Condition.Reason, r.Gist, r.Passing, r.Observed = "Unknown", "Applying", "applying", true, &other
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := publish(t, newFakeAPI(), patient)
				p.Offer(moved(1))
				p.expect(t, "get patch")
				next := moved(2)
				c.change(&next)
				p.Offer(next)
				if c.waits > 0 {
					p.expect(t, "")
					elapse(c.waits - time.Millisecond)
					p.expect(t, "")
					if c.waits == time.Minute { // and as much by chance
						elapse(time.Minute)
					}
					elapse(time.Millisecond)
				}
				p.expect(t, "patch")
			})
		})
	}
}

// Where nothing is to wait, nothing does.
func TestNothingWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := publish(t, newFakeAPI())
		p.Offer(moved(1))
		p.expect(t, "get patch")
		for version := range 5 {
			r := moved(version)
			r.Passing = version == 3
			p.Offer(r)
			p.expect(t, "patch")
		}
	})
}

// A report without a gist is no move, whatever was there before.
func TestReportsWithoutAGist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := publish(t, newFakeAPI(), patient)
		for version, requests := range []string{"get patch", "patch"} {
			r := moved(version)
			r.Gist = ""
			p.Offer(r)
			p.expect(t, requests)
		}
	})
}

// A Node goes up, down and up; what comes next waits only where it is down or up once more, and nothing else.
func TestWhatIsNoFlip(t *testing.T) {
	for name, c := range map[string]struct {
		third  func(up *Report)
		fourth func(down *Report)
		waits  bool
	}{
		"a flip":               {func(*Report) {}, func(*Report) {}, true},
		"in other words":       {func(*Report) {}, func(r *Report) { r.Condition.Message = "exit code 2" }, true},
		"another state before": {func(r *Report) { r.Condition.Reason = "InTrial" }, func(*Report) {}, false},
		"another reason":       {func(*Report) {}, func(r *Report) { r.Condition.Reason = "InTrial" }, false},
		"another ConfigMap":    {func(*Report) {}, func(r *Report) { r.Config.Assigned = source("b") }, false},
		"an approval":          {func(*Report) {}, func(r *Report) { r.Status.Approval = "0123456789ab" }, false},
		"a hold":               {func(*Report) {}, func(r *Report) { r.Status.Hold = &nodev1.Hold{Approval: "0123456789ab"} }, false},
		"a verdict":            {func(*Report) {}, func(r *Report) { r.Condition.Status = "False" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := publish(t, newFakeAPI(), patient)
				state := func(change func(*Report), status corev1.ConditionStatus, reason string) {
					r := report(status, reason, "ns/a/kubelet")
					change(&r)
					p.Offer(r)
				}
				state(func(*Report) {}, "True", "Active")
				p.expect(t, "get patch")
				state(func(*Report) {}, "Unknown", "EnvironmentFailing")
				p.expect(t, "patch")
				state(c.third, "True", "Active")
				p.expect(t, "patch")
				state(c.fourth, "Unknown", "EnvironmentFailing")
				if c.waits {
					p.expect(t, "")
					elapse(time.Minute)
				}
				p.expect(t, "patch")
			})
		})
	}
}

func TestAMoveThatWaits(t *testing.T) {
	begin := func(t *testing.T) (*fakeAPI, *publishing) {
		api := newFakeAPI()
		p := publish(t, api, patient)
		p.Offer(moved(1))
		p.expect(t, "get patch")
		p.Offer(moved(2))
		p.expect(t, "")
		return api, p
	}
	for name, then := range map[string]func(t *testing.T, api *fakeAPI, p *publishing){
		"goes along with what does not wait": func(t *testing.T, api *fakeAPI, p *publishing) {
			r := moved(2)
			r.Condition.Reason, r.Gist = "Refused", "refused"
			p.Offer(r)
			p.expect(t, "patch")
			elapse(5 * time.Minute)
			p.expect(t, "")
		},
		"is forgotten when it was taken back": func(t *testing.T, _ *fakeAPI, p *publishing) {
			p.Offer(moved(1))
			elapse(5 * time.Minute)
			p.expect(t, "")
		},
		"waits anew after it was taken back": func(t *testing.T, _ *fakeAPI, p *publishing) {
			p.Offer(moved(1))
			elapse(5 * time.Minute)
			p.Offer(moved(3))
			p.expect(t, "")
		},
		"waits anew though it came while one was published": func(t *testing.T, api *fakeAPI, p *publishing) {
			api.change(func() {
				api.after = func(verb string) {
					if verb == "patch" {
						api.after = nil
						p.Offer(moved(3))
					}
				}
			})
			for api.asked() == "" {
				elapse(time.Second)
			}
			elapse(58 * time.Second)
			p.expect(t, "")
			elapse(2 * time.Minute)
			p.expect(t, "patch")
		},
		"is published at the end": func(t *testing.T, api *fakeAPI, p *publishing) {
			p.stop()
			p.expect(t, "patch")
			if got := api.shownVersion(); got != "using version 2" {
				t.Errorf("the Node shows %q", got)
			}
		},
		"is published at once on a new Node": func(t *testing.T, api *fakeAPI, p *publishing) {
			p.NodeRecreated()
			p.expect(t, "get patch")
		},
		"does not hold up events": func(t *testing.T, _ *fakeAPI, p *publishing) {
			p.Event(Event{time.Now(), corev1.EventTypeNormal, "Reason", "message"})
			p.expect(t, "post")
		},
		"waits no more after a patch that failed": func(t *testing.T, api *fakeAPI, p *publishing) {
			api.change(func() { api.fail["patch"] = code(500) })
			elapse(2 * time.Minute)
			api.change(func() { clear(api.fail) })
			elapse(2 * time.Minute)
			p.api.asked()
			if got := api.shownVersion(); got != "using version 2" {
				t.Errorf("the Node shows %q", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, p := begin(t)
				then(t, api, p)
			})
		})
	}
}
