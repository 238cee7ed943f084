package rollout

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// said is a condition without its times.
type said struct {
	is              bool
	reason, message string
}

// reportConditions sets the three conditions as kstatus reads them.
func (d *decision) reportConditions(p *pool) {
	p.tampered = d.tamperedWords(p)
	d.set(p, v1alpha1.ConditionReady, p.ready())
	d.set(p, v1alpha1.ConditionProgressing, p.progressing())
	d.set(p, v1alpha1.ConditionStalled, p.stalled())
}

// set replaces a condition where it says something else; only another status moves its time.
func (d *decision) set(p *pool, kind string, c said) {
	status := metav1.ConditionFalse
	if c.is {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&p.status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: c.reason,
		Message: bounded.Text(c.message, messageLimit), ObservedGeneration: p.status.ObservedGeneration, LastTransitionTime: metav1.NewTime(d.w.Now)})
}

func (p *pool) ready() said {
	switch {
	case p.invalid != "":
		return said{false, ReasonInvalidSpec, p.invalid}
	case p.missing != "":
		return said{false, ReasonLayerMissing, "ConfigMap " + p.missing + " is not there"}
	case p.conflicts > 0:
		return said{false, ReasonConflict, p.conflictWords()}
	case p.target.stopped != nil && !p.unmade:
		return said{false, ReasonStopped, p.stopWords()}
	case p.finished():
		return said{true, ReasonCompleted, p.completedWords()}
	}
	return said{false, ReasonRolling, p.waveWords()}
}

// finished: there is nothing to roll out. An empty pool is; its revision is proven by the first node that comes. Going back ends when the last
// node has gone back; who comes late after that does not undo it.
func (p *pool) finished() bool {
	switch {
	case !p.target.there, p.unmade:
		return false
	case len(p.members) == 0:
		return true
	case !p.target.stable || p.count.superseded > 0:
		return false
	}
	return !p.begun && p.wasFinished() || p.inMotion() == 0
}

// wasFinished: Ready or Progressing tells. Either may have come to say something else.
func (p *pool) wasFinished() bool {
	was := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionProgressing)
	return was != nil && (was.Reason == ReasonCompleted || was.Reason == ReasonJoining) ||
		meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady)
}

// moves: somebody is on the way.
func (p *pool) moves() bool { return len(p.writes) > 0 || p.count.of[Applying]+p.count.of[OnTrial] > 0 }

// waits: nobody is on the way, because of a window, a budget or a topology.
func (p *pool) waits() bool { return p.barred.reason != "" && !p.moves() }

func (p *pool) progressing() said {
	c := &p.count
	switch {
	case p.target.stopped != nil && !p.unmade:
		return said{false, ReasonHeld, p.stopWords()}
	case p.refusal() != "":
		return said{false, ReasonHeld, p.refusal()}
	case p.finished() && c.of[Joining] > 0:
		return said{true, ReasonJoining, fmt.Sprintf("%d new nodes", c.of[Joining])}
	case p.finished():
		return said{false, ReasonCompleted, p.completedWords()}
	case p.Spec.Rollout.Paused:
		return said{false, ReasonPaused, "spec.rollout.paused"}
	case p.doubt != "" || !p.target.there:
		return said{false, ReasonHeld, cmp.Or(p.doubt, p.invalid)}
	case p.waits():
		return p.barred
	case p.clock.Elapsed >= p.rules.deadline:
		return said{false, ReasonDeadlineExceeded, fmt.Sprintf("wave %d is open for more than %v", p.clock.Wave, p.rules.deadline)}
	case p.clock.Soaking:
		return said{true, ReasonSoaking, p.waveWords()}
	case p.moves():
		return said{true, ReasonWave, p.waveWords()}
	case p.starved:
		return said{false, ReasonBudgetExhausted, fmt.Sprintf("%d of at most %d members are unavailable", c.unavailable, p.maxUnavailable())}
	case c.of[Waiting] > 0:
		return said{false, ReasonWaitsForPods, fmt.Sprintf("%d nodes wait for their pods to end", c.of[Waiting]) + p.drainWords()}
	}
	return said{true, ReasonWave, p.waveWords()}
}

func (p *pool) stalled() said {
	switch {
	case p.target.stopped != nil && !p.unmade:
		return said{true, ReasonStopped, p.stopWords()}
	case p.tampered != "":
		return said{true, ReasonRevisionTampered, p.tampered}
	case len(p.members) > 0 && p.count.updatable == 0 && p.count.of[Joining] == 0 && !p.finished():
		return said{true, ReasonNoUpdatableNode, fmt.Sprintf("none of %d members can be updated", len(p.members))}
	}
	return said{false, ReasonNotStalled, ""}
}

// tamperedWords name what is not what its name says: a revision, or a variant that nodes have, which is made anew; or a revision that the
// status names and nobody keeps.
func (d *decision) tamperedWords(p *pool) string {
	for i := range p.Revisions {
		if r := &p.Revisions[i]; r.Tampered {
			return "ControllerRevision " + r.ObjectName() + " is not what it was"
		}
	}
	for _, v := range d.w.Broken {
		switch words := d.w.RefusedVariants[v.Name]; {
		case !IsVariantOf(p.Name, v.Name):
		case words != "":
			return "a ConfigMap that nodes have been assigned is not there as it was: " + words
		case v.Tampered:
			return "ConfigMap " + v.Name + " is not what it was"
		}
	}
	if s := p.status.Stable; s != nil && !s.Local && p.stable == nil {
		return "ControllerRevision " + p.Name + "-" + s.Hash + " of the stable revision is gone"
	}
	return ""
}

func (p *pool) stopWords() string {
	s := p.target.stopped
	return fmt.Sprintf("revision %d, attempt %d: %s %s: %s", s.Revision, s.Attempt, s.Node, s.Reason, s.Message)
}

func (p *pool) completedWords() string {
	if p.target.name.Local {
		return p.target.name.Text()
	}
	if n := p.count.of[Failed]; n > 0 {
		return fmt.Sprintf("revision %d; %d nodes refuse it", p.target.name.Revision, n)
	}
	return fmt.Sprintf("revision %d", p.target.name.Revision)
}

func (p *pool) waveWords() string {
	if p.clock.Wave == 0 {
		return p.target.text()
	}
	name := ""
	if p.wave().name != "" {
		name = " " + p.wave().name
	}
	return fmt.Sprintf("%s, wave %d%s: %d of %d nodes", p.target.text(), p.clock.Wave, name, p.count.placed, p.goal)
}
