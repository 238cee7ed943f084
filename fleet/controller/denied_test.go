package controller

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// patches are the PATCHes of a Node, dry runs included.
func (s *stage) patches(node string) int {
	return len(s.api.asked("patch Node/"+node)) + len(s.api.asked("dry-run patch Node/"+node))
}

// alter has admission change the Nodes whose names begin so.
func (s *stage) alter(name string, change func(n *corev1.Node)) {
	s.api.mutex.Lock()
	defer s.api.mutex.Unlock()
	s.api.admit = func(object client.Object) {
		if n, is := object.(*corev1.Node); is && strings.HasPrefix(n.Name, name) {
			change(n)
		}
	}
}

// heard looks for an Event about a refusal that has these words, among those since it was last asked.
func (s *stage) heard(words string) {
	s.Helper()
	if events := s.events1(rollout.EventPoolRefused); len(events) == 0 || !strings.Contains(events[0], words) {
		s.Errorf("the Events are %q, and none says %q", events, words)
	}
}

func strip(keys ...string) func(n *corev1.Node) {
	return func(n *corev1.Node) {
		for _, key := range keys {
			delete(n.Annotations, key)
		}
	}
}

// An assignment that admission takes away, or a part of it, is no assignment. The others go on, the Node is as it was, and is tried again seldom.
func TestAnAlteredAssignmentIsARefusal(t *testing.T) {
	for words, change := range map[string]func(n *corev1.Node){
		"admission takes the annotation kubelet-supervisor.io/config-source away, takes the annotation kubelet-supervisor.io/pool-assigned away, takes": strip(
			nodev1.ConfigSourceAnnotation, rollout.MarkAnnotation, nodev1.RetryAnnotation),
		"admission takes the annotation kubelet-supervisor.io/config-source away": strip(nodev1.ConfigSourceAnnotation),
		"admission takes the annotation kubelet-supervisor.io/pool-assigned away": strip(rollout.MarkAnnotation),
		"admission takes the annotation kubelet-supervisor.io/retry away":         strip(nodev1.RetryAnnotation),
		`admission changes the annotation kubelet-supervisor.io/config-source to "local"`: func(n *corev1.Node) {
			if n.Annotations[nodev1.ConfigSourceAnnotation] != "" {
				n.Annotations[nodev1.ConfigSourceAnnotation] = "local"
			}
		},
	} {
		t.Run(words, func(t *testing.T) {
			play(t, func(s *stage) {
				s.nodes(9)
				s.pool(nil)
				s.alter("n5", change)
				s.turns(120)
				if got := s.reason(); got != rollout.ReasonCompleted {
					t.Errorf("the others: %s, %+v", got, s.poolNow().Status.Nodes)
				}
				if got := s.patches("n5"); got > 10 {
					t.Errorf("in two minutes it was patched %d times", got)
				}
				if got := s.api.patched["n5"]; got > 2 {
					t.Errorf("it was changed %d times", got)
				}
				var n corev1.Node
				if err := s.api.stored.get("Node/n5", &n); err != nil {
					t.Fatal(err)
				}
				for _, key := range []string{nodev1.ConfigSourceAnnotation, rollout.MarkAnnotation, nodev1.RetryAnnotation} {
					if value, is := n.Annotations[key]; is {
						t.Errorf("it has %s: %s", key, value)
					}
				}
				s.heard(words)
				s.alter("nobody", nil)
				s.turns(300)
				if n := s.poolNow().Status.Nodes; n.Proven != 9 {
					t.Errorf("when admission leaves it alone: %+v", n)
				}
			})
		})
	}
}

// Once admission has altered one Node, the others are asked by a dry run first: else each of them would have half an assignment for a moment.
func TestAfterAnAlteredAnswerADryRunGoesFirst(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(9)
		s.pool(wide)
		s.alter("n", strip(rollout.MarkAnnotation))
		s.alone(120)
		changed := 0
		for _, times := range s.api.patched {
			changed += min(1, times)
		}
		if changed > 1 { // the canary
			t.Errorf("%d Nodes were changed", changed)
		}
		if got := s.patches("n"); got > 120 {
			t.Errorf("in two minutes there were %d PATCHes", got)
		}
		const words = ": admission takes the annotation kubelet-supervisor.io/pool-assigned away"
		if says := s.says("a"); !strings.HasPrefix(says, "Held: n") || !strings.HasSuffix(says, words) {
			t.Errorf("it says %q", says)
		}
	})
}

// A taint, a cordon and a consent are compared as well.
func TestOtherEditsAreCompared(t *testing.T) {
	n := &corev1.Node{}
	for words, row := range map[string]struct {
		write rollout.Write
		after func(n *corev1.Node)
	}{
		"":                               {rollout.Write{RemoveTaint: "join"}, func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "more"}} }},
		"admission keeps the taint join": {rollout.Write{RemoveTaint: "join"}, func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "join"}} }},
		"admission takes the annotation kubelet-supervisor.io/allow-disruption away":               {rollout.Write{Consent: "abc"}, func(*corev1.Node) {}},
		"admission takes the annotation kubelet-supervisor.io/pool-drain away, uncordons the node": {rollout.Write{Why: rollout.WhyDrain, Drain: rollout.Drain{Pool: "a", Hash: "b"}}, func(*corev1.Node) {}},
		"admission keeps the annotation kubelet-supervisor.io/pool-drain, keeps the node cordoned": {rollout.Write{Why: rollout.WhyUndrain, Lifts: true}, func(n *corev1.Node) {
			n.Annotations, n.Spec.Unschedulable = map[string]string{rollout.DrainAnnotation: "a b"}, true
		}},
	} {
		after := n.DeepCopy()
		row.after(after)
		if e := editOf(&row.write); e.missed(after) != words {
			t.Errorf("%q, not %q", e.missed(after), words)
		}
	}
	drain := editOf(&rollout.Write{Why: rollout.WhyDrain, Drain: rollout.Drain{Pool: "a", Hash: "b"}})
	half := n.DeepCopy()
	half.Spec.Unschedulable = true
	if back, is := drain.back(n, half); !is || back.cordon == nil || *back.cordon || len(back.annotations) > 0 {
		t.Errorf("a cordon without its annotation is taken back by %+v", back)
	}
}

// fail has the API server fail over the Nodes whose names begin so.
func (s *stage) fail(name string) {
	s.api.mutex.Lock()
	defer s.api.mutex.Unlock()
	s.api.before = func(request string) error {
		if name != "" && strings.HasPrefix(request, "patch Node/"+name) {
			return apierrors.NewInternalError(errFenced)
		}
		return nil
	}
}

// A Node that the API server fails over, such as for a webhook that is away, is denied after the third time, and the others go on at once.
func TestANodeThatTheAPIServerFailsOver(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(9)
		s.pool(nil)
		s.alone(1)
		canary := s.assigned()[0]
		s.edit(maxPods300)
		s.fail(canary) // the revision before it is superseded there, so it comes first
		for range 60 {
			if _, err := s.turn(); err != nil {
				t.Fatalf("the whole turn fails: %v", err)
			}
			s.answer()
			time.Sleep(time.Second)
		}
		if n := s.poolNow().Status.Nodes; n.Proven != 8 {
			t.Errorf("the others: %+v, %s", n, s.says("a"))
		}
		if got := len(s.api.asked("patch Node/" + canary)); got > 1+3+1 {
			t.Errorf("in a minute it was patched %d times", got-1)
		}
		s.heard("Internal error")
		s.fail("")
		s.turns(150)
		if n := s.poolNow().Status.Nodes; n.Proven != 9 {
			t.Errorf("when it no longer fails: %+v", n)
		}
	})
}

// A policy engine of all Nodes that is down costs few requests, and all go on soon after it is back.
func TestAPolicyEngineThatIsDown(t *testing.T) {
	play(t, func(s *stage) {
		s.nodes(9)
		s.pool(atOnce)
		s.fail("n")
		s.turns(600)
		if got := len(s.api.asked("patch Node/")); got > 9*10 {
			t.Errorf("in ten minutes 9 Nodes were patched %d times", got)
		}
		s.fail("")
		if took := s.lazily(func() bool { s.answer(); return s.poolNow().Status.Nodes.Proven == 9 }); took > deniedFor+10*time.Second {
			t.Errorf("it took %v, %+v", took, s.poolNow().Status.Nodes)
		}
	})
}

// A Node that has failed twice and is then patched has not failed three times in a row.
func TestAFailureThatIsOverIsForgotten(t *testing.T) {
	d := newDenials()
	for at := range time.Duration(2) {
		d.note("n", failsPatch, "no", at*time.Second)
	}
	d.taken("n")
	if one := d.note("n", failsPatch, "no", 9*time.Second); one.counts() || one.until() != 10*time.Second {
		t.Errorf("%+v", one)
	}
	for range 8 {
		d.note("m", altersPatch, "no", 0)
	}
	if d.all["m"].until() != deniedFor || !d.alter() {
		t.Errorf("%+v", d.all)
	}
	d.look(3 * deniedFor)
	if d.look(3*deniedFor + time.Second); len(d.all) != 0 {
		t.Errorf("%+v are kept", d.all)
	}
}

// Two webhooks that take turns put a Node off as one does.
func TestRefusalsOfSeveralKinds(t *testing.T) {
	d := newDenials()
	for i := range 20 {
		d.note("n", []objection{refusesPatch, failsPatch, altersPatch}[i%3], "no", 0)
	}
	if one := d.all["n"]; one.until() != deniedFor || !one.counts() {
		t.Errorf("%+v is tried again after %v", one, one.until())
	}
}
