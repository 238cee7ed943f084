package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// play runs a test in a bubble of time.
func play(t *testing.T, test func(s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newStage(t)) })
}

// A rollout writes a revision, a variant, the status and then one PATCH per Node, and nothing once it is through.
func TestARolloutComesToItsEnd(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(5)
		s.pool(nil)
		s.turns(20)
		if got := s.reason(); got != rollout.ReasonCompleted {
			t.Fatalf("it is %s: %+v", got, s.poolNow().Status)
		}
		if got := s.api.asked("patch Node/"); len(got) != 5 {
			t.Errorf("5 nodes got %d PATCHes: %v", len(got), got)
		}
		var writes []string
		for _, request := range s.api.requests {
			if !strings.HasPrefix(request, "list") && !strings.HasPrefix(request, "get") && len(writes) < 4 {
				writes = append(writes, strings.SplitAfter(request, "/")[0])
			}
		}
		if want := []string{"create ControllerRevision/", "create ConfigMap/", "patch status of KubeletPool/", "patch Node/"}; !slices.Equal(writes, want) {
			t.Errorf("it began with %v, not %v", writes, want)
		}
		for _, event := range []string{"RolloutBegun", "WaveBegun", "PoolAssigned", "WavePassed", "RolloutCompleted"} {
			if !s.told(event) {
				t.Errorf("there was no Event %s", event)
			}
		}
		before := len(s.api.requests)
		s.turns(300)
		if more := s.api.requests[before:]; len(more) > 0 {
			t.Errorf("in the steady state it asked for %v", more)
		}
	})
}

// told looks for an Event among those that have been recorded.
func (s *stage) told(reason string) bool {
	for range len(s.events.Events) {
		event := <-s.events.Events
		s.events.Events <- event
		if strings.Contains(event, " "+reason+" ") {
			return true
		}
	}
	return false
}

// What was sent counts until the cache has caught up, so the canary stays the only one.
func TestWhatWasSentCountsUntilTheCacheHasIt(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(20)
		s.pool(nil)
		if _, err := s.turn(); err != nil {
			t.Fatal(err)
		}
		s.cache.frozen = true
		for range 8 {
			if _, err := s.turn(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if got := s.api.asked("patch Node/"); len(got) != 1 {
			t.Errorf("it sent %v", got)
		}
	})
}

// A cache that stays behind an answer for long is not believed any more.
func TestACacheThatStaysBehindIsNotBelieved(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(20)
		s.pool(nil)
		s.turns(1)
		s.cache.frozen = true
		s.turns(60)
		if got := s.api.asked("patch Node/"); len(got) != 1 {
			t.Errorf("it sent %v", got)
		}
		s.cache.frozen = false
		s.turns(60)
		if got := s.reason(); got != rollout.ReasonCompleted {
			t.Errorf("it is %s", got)
		}
	})
}

// A PATCH whose answer is lost has arrived, or has not: the API server is asked before anything else is decided.
func TestALostAnswerIsAskedFor(t *testing.T) {
	for _, arrives := range []bool{true, false} {
		play(t, func(s *stage) {
			s.nodes(20)
			s.pool(nil)
			lost := false
			lose := func(request string) error {
				if strings.HasPrefix(request, "patch Node/") && !lost {
					lost = true
					return errors.New("connection reset by peer")
				}
				return nil
			}
			if arrives {
				s.api.after = lose
			} else {
				s.api.before = lose
			}
			if _, err := s.turn(); err == nil {
				t.Error("a lost answer is no error")
			}
			s.cache.frozen = true
			if _, err := s.turn(); err != nil {
				t.Fatal(err)
			}
			if got := s.assigned(); len(got) != 1 {
				t.Errorf("arrives %v: %v are assigned", arrives, got)
			}
			want := 1
			if !arrives {
				want = 2
			}
			if got := s.api.asked("patch Node/"); len(got) != want {
				t.Errorf("arrives %v: it sent %v", arrives, got)
			}
		})
	}
}

// A status that somebody else has changed meanwhile is decided anew, and nothing is sent before it is written.
func TestTheStatusIsWrittenBeforeTheNodes(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(3)
		s.pool(nil)
		refused := errors.New("the API server is busy")
		s.api.before = func(request string) error {
			if strings.HasPrefix(request, "patch status") {
				return refused
			}
			return nil
		}
		for range 5 {
			if _, err := s.turn(); err == nil {
				t.Error("a status that cannot be written is no error")
			}
			time.Sleep(2 * time.Second)
		}
		if got := s.api.asked("patch Node/"); len(got) > 0 {
			t.Fatalf("without a status it sent %v", got)
		}
		s.api.before = nil
		s.cache.sync()
		s.cache.frozen = true
		changed := s.poolNow()
		changed.Labels = map[string]string{"somebody": "was-here"}
		s.api.put(changed)
		if again, err := s.turn(); err != nil || again > time.Second {
			t.Fatalf("a conflict: again in %v, %v", again, err)
		}
		if got := s.api.asked("patch Node/"); len(got) > 0 {
			t.Fatalf("after a conflict it sent %v", got)
		}
		time.Sleep(time.Second)
		if _, err := s.turn(); err != nil {
			t.Fatal(err)
		}
		if got := s.api.asked("patch Node/"); len(got) != 1 {
			t.Errorf("it sent %v", got)
		}
	})
}

// PATCHes are sent eight at once and twenty a second at most.
func TestPatchesHaveALimit(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(100)
		s.pool(atOnce)
		s.turns(2)
		var sent []time.Time
		s.api.before = func(request string) error {
			if strings.HasPrefix(request, "patch Node/") {
				sent = append(sent, time.Now())
			}
			return nil
		}
		s.api.after = func(request string) error {
			if strings.HasPrefix(request, "patch Node/") {
				time.Sleep(300 * time.Millisecond)
			}
			return nil
		}
		for range 40 {
			if _, err := s.turn(); err != nil {
				t.Fatal(err)
			}
		}
		if len(sent) < 90 || s.api.atMost > 8 {
			t.Errorf("it sent %d, and %d at once", len(sent), s.api.atMost)
		}
		slices.SortFunc(sent, time.Time.Compare)
		for i := 20; i < len(sent); i++ {
			if within := sent[i].Sub(sent[i-20]); within < time.Second-time.Millisecond {
				t.Fatalf("it sent 21 in %v", within)
			}
		}
	})
}

// A pool's status is written once a second at most, whatever happens.
func TestStatusesHaveALimit(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(60)
		s.pool(atOnce)
		var wrote []time.Time
		s.api.before = func(request string) error {
			if strings.HasPrefix(request, "patch status") {
				wrote = append(wrote, time.Now())
			}
			return nil
		}
		for range 400 {
			if _, err := s.turn(); err != nil {
				t.Fatal(err)
			}
			s.answer()
			time.Sleep(20 * time.Millisecond)
		}
		if got := s.reason(); got != rollout.ReasonCompleted {
			t.Errorf("it is %s", got)
		}
		for i := range wrote[1:] {
			if within := wrote[i+1].Sub(wrote[i]); within < time.Second {
				t.Fatalf("it wrote twice in %v", within)
			}
		}
	})
}

// A node that admission refuses is named, and the others go on. Rights that are lost are no node's fault.
func TestAForbiddenPatch(t *testing.T) {
	forbid := func(s *stage, node string) {
		s.api.before = func(request string) error {
			if strings.HasPrefix(request, "patch Node/"+node) {
				return apierrors.NewForbidden(resource("Node"), "", errors.New("no"))
			}
			return nil
		}
	}
	play(t, func(s *stage) {
		s.nodes(9)
		s.pool(nil)
		forbid(s, "n5")
		s.turns(60)
		if got := s.reason(); got != rollout.ReasonCompleted {
			t.Errorf("one is refused: %s, %+v", got, s.poolNow().Status.Nodes)
		}
		if n := s.poolNow().Status.Nodes; n.Proven != 8 || n.Blocked+n.Late != 1 {
			t.Errorf("one is refused: %+v", n)
		}
	})
	play(t, func(s *stage) {
		s.nodes(9)
		s.pool(nil)
		forbid(s, "")
		s.api.rights = false
		s.turns(60)
		if len(s.patcher.denied.all) > 0 || len(s.assigned()) > 0 {
			t.Errorf("without rights it blames %v", s.patcher.denied.all)
		}
		s.api.rights, s.api.before = true, nil
		s.turns(60)
		if got := s.reason(); got != rollout.ReasonCompleted {
			t.Errorf("with rights again: %s", got)
		}
	})
}

// From a verdict on nothing more is assigned.
func TestAVerdictStops(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(30)
		s.pool(nil)
		s.turns(6)
		var n corev1.Node
		assigned := s.assigned()
		if len(assigned) < 2 || len(assigned) > 20 {
			t.Fatalf("%v are assigned", assigned)
		}
		if err := s.api.stored.get("Node/"+assigned[1], &n); err != nil {
			t.Fatal(err)
		}
		s.say(&n, "Refused")
		before := len(s.api.asked("patch Node/"))
		s.turns(30)
		if got := len(s.api.asked("patch Node/")); got != before {
			t.Errorf("after a verdict it sent %d", got-before)
		}
		if stops := s.poolNow().Status.Stops; len(stops) != 1 || stops[0].Node != assigned[1] {
			t.Errorf("the stops are %+v", stops)
		}
		if !s.told("RolloutStopped") {
			t.Error("there was no Event RolloutStopped")
		}
		s.again() // another process knows it, too
		s.turns(30)
		if got := len(s.api.asked("patch Node/")); got != before {
			t.Errorf("after a restart it sent %d", got-before)
		}
	})
}

// Killed at every request, and with every answer lost, a rollout still keeps to its waves, and comes to its end.
func TestKilledAtEveryRequest(t *testing.T) {
	for _, lost := range []bool{false, true} {
		for at := 1; ; at++ {
			done := false
			play(t, func(s *stage) { done = s.killedAt(at, lost) })
			if done {
				t.Logf("%d requests write", at-1)
				break
			}
		}
	}
}

// killedAt tells whether there were fewer requests than that.
func (s *stage) killedAt(at int, lost bool) bool {
	s.nodes(12)
	s.pool(func(p *v1alpha1.KubeletPool) {
		atOnce(p)
		p.Spec.Rollout.Waves = []v1alpha1.Wave{{Nodes: p.Spec.Rollout.Waves[0].Nodes}, {Nodes: *p.Spec.Rollout.MaxUnavailable}}
	})
	requests, dead := 0, false
	cut := func(request string) error {
		if strings.HasPrefix(request, "get") || strings.HasPrefix(request, "list") {
			if dead {
				return errors.New("it is dead")
			}
			return nil
		}
		requests++
		if dead = dead || requests == at; dead {
			return errors.New("it is dead")
		}
		return nil
	}
	if lost {
		s.api.after = cut
	} else {
		s.api.before = cut
	}
	for range 60 {
		_, _ = s.turn()
		if canary := s.assigned(); len(canary) > 1 && s.poolNow().Status.Wave != nil && s.poolNow().Status.Wave.Number == 1 {
			s.Fatalf("cut at %d: %v are assigned in the first wave", at, canary)
		}
		s.answer()
		time.Sleep(time.Second)
		if dead {
			dead, requests = false, at // killed once
			s.again()
		}
	}
	if got := s.reason(); got != rollout.ReasonCompleted {
		s.Fatalf("cut at %d: it is %s", at, got)
	}
	for name, times := range s.api.patched {
		if times != 1 {
			s.Errorf("cut at %d: %s was assigned %d times", at, name, times)
		}
	}
	return requests < at
}
