package rollout

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// said is a condition without its times.
type said struct {
	is              bool
	reason, message string
}

// set replaces a condition if it differs; only a change of status changes its time.
func (r *record) set(kind string, c said, now time.Time) {
	status := metav1.ConditionFalse
	if c.is {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&r.status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: c.reason,
		Message: message(c.message), ObservedGeneration: r.status.ObservedGeneration, LastTransitionTime: metav1.NewTime(now)})
}

func readyCondition(p *turn) said {
	switch {
	case p.invalid != "":
		return said{false, ReasonInvalidSpec, p.invalid}
	case p.missing != "":
		return said{false, ReasonLayerMissing, "ConfigMap " + p.missing + " is not there"}
	case p.conflicts > 0:
		return said{false, ReasonConflict, p.conflictWords()}
	case p.target.stopped != nil && !p.unmade:
		return said{false, ReasonStopped, p.target.stopWords()}
	case finished(p):
		return said{true, ReasonCompleted, completedWords(p)}
	}
	return said{false, ReasonRolling, waveWords(p)}
}

// finished reports whether every member that can has the revision, and has proven it. An empty pool is finished;
// the first node that comes proves its revision. A member that restarts with the same revision later does not
// change that.
func finished(p *turn) bool {
	switch {
	case !p.target.there, p.unmade:
		return false
	case len(p.members) == 0:
		return true
	case !p.target.stable || p.count.superseded > 0 || p.count.late > 0 || p.recoils != "":
		return false
	case p.count.of[Proven] == 0 && p.count.of[Failed]+p.count.of[Blocked] > 0: // no member runs it
		return false
	}
	return !p.begun && p.wasFinished() || p.count.moving == 0
}

// wasFinished reports what Ready or Progressing say. One of them may have changed since.
func (p *Pool) wasFinished() bool {
	was := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionProgressing)
	return was != nil && (was.Reason == ReasonCompleted || was.Reason == ReasonJoining) ||
		meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady)
}

// isMoving reports whether a member is in progress that has not been ill for long.
func (p *turn) isMoving() bool {
	return len(p.writes) > 0 || p.count.of[Applying]+p.count.of[OnTrial] > p.count.ill
}

// waits reports whether no member is in progress because of a window, a budget or a topology.
func (p *turn) waits() bool { return p.blocked.reason != "" && !p.isMoving() }

func progressingCondition(p *turn) said {
	joins := func(m *member) bool { return m.class == Joining || m.young && m.class == Waiting }
	switch joining := p.names(joins); {
	case p.target.stopped != nil && !p.unmade:
		return said{false, ReasonHeld, p.target.stopWords()}
	case p.refusal() != "":
		return said{false, ReasonHeld, p.refusal()}
	case finished(p) && joining != "":
		return said{true, ReasonJoining, "new nodes: " + joining}
	case finished(p):
		return said{false, ReasonCompleted, completedWords(p)}
	case p.Spec.Rollout.Paused:
		return said{false, ReasonPaused, "spec.rollout.paused"}
	}
	why := whyNotFinished(p)
	if p.clock.Idle < p.rules.deadline || p.clock.Wave == 0 {
		return why
	}
	return said{false, ReasonDeadlineExceeded, fmt.Sprintf("no progress in wave %d for more than %v: %s: %s", p.clock.Wave, p.rules.deadline, why.reason, why.message)}
}

// whyNotFinished returns what is in progress, or which nodes the pool waits for and why.
func whyNotFinished(p *turn) said {
	waiting := func(m *member) bool { return m.class == Waiting }
	silent := func(m *member) bool { return m.class == Blocked && !m.denied }
	switch c := &p.count; {
	case p.doubt != "" || p.recoils != "" || p.wavers != "" || !p.target.there:
		return said{false, ReasonHeld, cmp.Or(p.doubt, p.recoils, p.wavers, p.invalid)}
	case p.waits():
		return p.blocked
	case p.clock.Soaking:
		return said{true, ReasonSoaking, waveWords(p)}
	case p.isMoving():
		return said{true, ReasonWave, waveWords(p)}
	case p.starved && c.unavailable > c.of[Waiting]:
		away := func(m *member) bool { return m.unavailable }
		return said{false, ReasonBudgetExhausted, fmt.Sprintf("%d of at most %d members are unavailable: %s", c.unavailable, p.slots(), p.names(away))}
	case c.of[Waiting] > 0: // they take all slots of maxUnavailable
		return said{false, ReasonWaitsForPods, fmt.Sprintf("%d nodes wait for their pods to end: %s", c.of[Waiting], p.names(waiting)) + p.drainWords(&p.aim)}
	case p.starved:
		return said{false, ReasonBudgetExhausted, fmt.Sprintf("at most %d members may be unavailable", p.slots())}
	case harmed(&p.aim, &p.crew) != "":
		return said{false, ReasonHeld, harmed(&p.aim, &p.crew)}
	case p.labelWords() != "":
		return said{false, ReasonHeld, p.labelWords()}
	case illWords(&p.aim, &p.crew) != "":
		return said{false, ReasonHeld, illWords(&p.aim, &p.crew)}
	case c.of[Blocked] > c.denied:
		return said{false, ReasonHeld, fmt.Sprintf("%d nodes do not continue automatically: %s", c.of[Blocked]-c.denied, p.names(silent))}
	}
	return said{true, ReasonWave, waveWords(p)}
}

// harmed returns the cohort in which no other node is tried, because one has failed.
func harmed(p *aim, c *crew) string {
	for m := range c.each {
		if m.class == Late || m.class == Old {
			if f, is := p.failures[m.node.cohortWith(m.want)]; is && p.target.stable {
				return fmt.Sprintf("%s/%s has not proven it, and %s %s: %s", m.node.Minor, m.node.Arch, f.Node, f.Reason, f.Message)
			}
		}
	}
	for m := range c.each {
		if m.class == Failed && !m.trusted && c.cohorts[m.cohort].proven == 0 {
			k := &c.cohorts[m.cohort]
			return fmt.Sprintf("%s/%s has not proven it, and %s %s: %s", k.minor, k.arch, m.node.Name, m.node.Reason, m.node.Failure)
		}
	}
	return ""
}

// illWords names members in progress that have been ill for long, and members that cannot be changed now if there
// are no others.
func illWords(p *aim, c *crew) string {
	if names := c.names(func(m *member) bool { return (m.class == Applying || m.class == OnTrial) && m.longIll(&p.rules) }); names != "" {
		return "nodes do not go on: " + names
	}
	if c.count.inWaves > 0 || p.target.completed {
		return ""
	}
	if names := c.names(func(m *member) bool { return m.isTouched() && m.class != Late }); names != "" {
		return "no node can be changed now: " + names
	}
	return ""
}

// namedMembers is how many members a message names.
const namedMembers = 3

// names returns the names and messages of a few members.
func (c *crew) names(of func(*member) bool) string {
	var words []string
	more := 0
	for m := range c.each {
		switch {
		case !of(m):
		case len(words) == namedMembers:
			more++
		default:
			words = append(words, m.node.Name+" ("+m.ails()+")")
		}
	}
	text := strings.Join(words, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// ails returns why a member is unavailable or makes no progress.
func (m *member) ails() string {
	switch n := m.node; {
	case !n.Ready:
		return reasonNotReady
	case n.Cordoned || n.Draining:
		return "cordoned"
	case m.class == Held:
		return "held"
	case m.class == Waiting || m.seen.Phase == Waiting:
		return cmp.Or(n.Holds, n.Reason)
	case m.seen.Phase == Blocked && n.Observed != n.Mark.Assignment:
		return "no answer"
	default:
		return cmp.Or(n.Reason, string(m.class))
	}
}

func stalledCondition(p *turn, tampered string) said {
	switch {
	case p.target.stopped != nil && !p.unmade:
		return said{true, ReasonStopped, p.target.stopWords()}
	case tampered != "":
		return said{true, ReasonRevisionTampered, tampered}
	case len(p.members) > 0 && p.count.updatable == 0 && p.count.of[Joining] == 0 && !finished(p):
		return said{true, ReasonNoUpdatableNode, fmt.Sprintf("none of %d members can be updated", len(p.members))}
	}
	return said{false, ReasonNotStalled, ""}
}

// tamperedWords names objects whose content does not match their name: a revision, or an assigned variant, which
// is made again. It also names a revision in the status that is not stored.
func (p *aim) tamperedWords(w *World) string {
	for i := range p.Revisions {
		if r := &p.Revisions[i]; r.Tampered {
			return "ControllerRevision " + r.ObjectName() + " is not what it was"
		}
	}
	for _, v := range w.Broken {
		switch words := w.RefusedVariants[v.Name]; {
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

func (t *target) stopWords() string {
	s := t.stopped
	return fmt.Sprintf("revision %d, attempt %d: %s %s: %s", s.Revision, s.Attempt, s.Node, s.Reason, s.Message)
}

func completedWords(p *turn) string {
	if p.target.name.Local {
		return p.target.name.Text()
	}
	words := fmt.Sprintf("revision %d", p.target.name.Revision)
	if n := p.count.of[Failed]; n > 0 {
		words += fmt.Sprintf("; %d nodes refuse it", n)
	}
	return words + p.ignored + p.shadowWords()
}

// shadowWords returns the field of the revision that most nodes do not run with, because a flag or a file of the
// node overrides it.
func (c *crew) shadowWords() string {
	have, most, of := 0, 0, map[string]int{}
	var named Shadow
	for m := range c.each {
		if !m.begun || m.class != Proven {
			continue
		}
		have++
		for _, shadow := range m.node.Shadows {
			of[shadow.Field]++
			if n := of[shadow.Field]; n > most || n == most && shadow.Field < named.Field {
				most, named = n, shadow
			}
		}
	}
	if most == 0 {
		return ""
	}
	return fmt.Sprintf("; on %d of %d nodes %s is overridden, such as by %s", most, have, named.Field, named.By)
}

func waveWords(p *turn) string {
	if p.clock.Wave == 0 {
		return p.target.text()
	}
	name := ""
	if p.wave().name != "" {
		name = " " + p.wave().name
	}
	return fmt.Sprintf("%s, wave %d%s: %d of %d nodes", p.target.text(), p.clock.Wave, name, p.answered, p.goal)
}
