package rollout

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
)

const (
	stopLimit = 32
	// turnedFor is for how long a pod that was turned away holds.
	turnedFor = 15 * time.Minute
	// vanishLimit is how many healthy nodes at risk may vanish before it is no chance any more.
	vanishLimit = 3
)

// judge asks whether what the nodes show is doubt, which holds, or a verdict, which stops; and whether the open wave has passed. It looks
// only at nodes that were assigned the target in this attempt, and whose cohort has not completed it before: nothing stops it there.
func (d *decision) judge(p *pool) {
	p.doubt = d.unknown(p)
	if !p.target.there {
		return
	}
	if p.doubt == "" && !p.target.completed {
		p.doubt = p.invalid // who edits a layer in a rollout does not want what it was before to go on
	}
	if p.target.stopped == nil {
		d.stop(p)
	}
	switch {
	case p.doubt != "" || p.target.stable:
	case p.target.completed: // doubt never holds up the way back to what is proven
		p.wavers = d.hold(p)
	default:
		p.doubt = d.hold(p)
	}
	if p.target.completed {
		p.recoils = d.recoils(p)
	}
	d.advance(p)
}

// unknown: what is not known is not acted upon.
func (d *decision) unknown(p *pool) string {
	switch {
	case !d.w.Synced:
		return "the caches are not synced"
	case p.unknown != "":
		return "ConfigMap " + p.unknown + " is not known yet"
	case p.missing != "":
		return "ConfigMap " + p.missing + " is not there"
	}
	return ""
}

// judged calls f with each node that was assigned the target in this attempt, members or not.
func (d *decision) judged(p *pool, f func(n *Node, s *Seen)) {
	for _, i := range p.marked {
		if n := d.nodes[i]; p.judges(n) {
			f(n, &d.seen[i])
		}
	}
}

// onTrial calls f with those of them whose cohort has not completed it.
func (d *decision) onTrial(p *pool, f func(n *Node, s *Seen)) {
	d.judged(p, func(n *Node, s *Seen) {
		if !p.trusts(p.target.retry.Hash, n.assignedIn()) {
			f(n, s)
		}
	})
}

// harm is what a node shows, in which cohort, of a revision that this has not completed.
type harm struct {
	at                  proof
	node, reason, words string
}

// stop looks for a verdict. It stops a revision; one that is stable is barred from the cohort alone.
func (d *decision) stop(p *pool) {
	v := d.worst(p)
	switch {
	case v == nil:
	case p.target.stable:
		p.bar(v, metav1.NewTime(d.w.Now))
	default:
		p.latch(d.newStop(p, v.node, v.reason, v.words))
	}
}

// worst is the worst harm that is not known yet.
func (d *decision) worst(p *pool) *harm {
	var found *harm
	var rank int
	candidate := func(r int, v harm) {
		if _, known := p.failures[v.at]; !(p.target.stable && known) && (found == nil || r < rank) {
			found, rank = &v, r
		}
	}
	onTarget, unwell := 0, 0
	var worst *Node
	d.onTrial(p, func(n *Node, s *Seen) {
		if s.WasReady {
			onTarget++
		}
		switch at := n.assignedIn(); {
		case s.Phase == Failed && final(n.Reason):
			candidate(0, harm{at, n.Name, n.Reason, n.Failure})
		case s.lost(n):
			candidate(1, harm{at, n.Name, reasonLost, "it was held, cordoned or taken away while it was " + ailment(n)})
		case s.goes(n):
		case s.Ill && s.WasReady && s.IllFor >= p.rules.unreadyAfter && s.Phase != Failed:
			if unwell++; worst == nil {
				worst = n
			}
		}
	})
	if unwell > p.rules.tolerate.of(onTarget) {
		candidate(2, harm{worst.assignedIn(), worst.Name, ailment(worst), fmt.Sprintf("for %v, and %d in all", p.rules.unreadyAfter, unwell)})
	}
	d.lookAtGone(p, candidate)
	return found
}

// recoils says that several nodes do not take the target any more although their cohorts have completed it. One is the node's own fault.
func (d *decision) recoils(p *pool) string {
	have, failed, first := 0, 0, ""
	d.judged(p, func(n *Node, s *Seen) {
		if !p.trusts(p.target.retry.Hash, n.assignedIn()) {
			return
		}
		have++
		if s.Phase == Failed && final(n.Reason) {
			failed++
			first = cmp.Or(first, n.Name+" "+n.Reason+": "+n.Failure)
		}
	})
	if failed <= max(1, p.rules.tolerate.of(have)) {
		return ""
	}
	return fmt.Sprintf("%d nodes do not take what was completed before, such as %s", failed, first)
}

// lost: somebody has taken an ill node at risk away before it could speak. A node that was aside before it became ill, such as one that is
// drained and rebooted, is not lost; one that the configuration made ill by its own words always is.
func (s *Seen) lost(n *Node) bool {
	if !s.Aside || s.Phase == Proven || n.Leaving && !n.Ready && s.Phase != Failed && ailment(n) == reasonNotReady {
		return false
	}
	return s.Phase == Failed || s.Ill && (!s.AsideFirst || n.Ready)
}

// goes: a cloud takes it away, or its host shuts down, and it was so before it became ill: that says nothing of its configuration.
func (s *Seen) goes(n *Node) bool {
	return n.Leaving && !n.Ready && s.AsideFirst && s.Phase != Failed && ailment(n) == reasonNotReady
}

func ailment(n *Node) string {
	switch n.Reason {
	case nodev1.ReasonRolledBack, nodev1.ReasonEnvironmentFailing, nodev1.ReasonRefused, nodev1.ReasonRejected, nodev1.ReasonLastKnownGoodFailed:
		return n.Reason
	}
	return reasonNotReady
}

func (d *decision) lookAtGone(p *pool, candidate func(int, harm)) {
	healthy := 0
	var last *Gone
	for i := range d.plan.Gone {
		g := &d.plan.Gone[i]
		switch {
		case g.Retry != p.target.retry || p.trusts(g.Retry.Hash, g.at()):
		case g.Ill:
			candidate(1, harm{g.at(), g.Node, reasonLost, "it vanished while it was ill"})
		default:
			healthy, last = healthy+1, g
		}
	}
	if healthy >= vanishLimit && p.count.proved == 0 {
		words := fmt.Sprintf("%d nodes at risk have vanished, and none has proven it", healthy)
		candidate(3, harm{last.at(), last.Node, reasonVanished, words})
	}
}

func (d *decision) newStop(p *pool, node, reason, words string) *v1alpha1.Stop {
	return &v1alpha1.Stop{Hash: p.target.name.Hash, Revision: p.target.name.Revision, Attempt: p.target.attempt, Node: node, Reason: reason,
		Message: message(words), Time: metav1.NewTime(d.w.Now)}
}

// latch keeps the stop in the status: it outlives this process, the node, and the pool's next revision.
func (p *pool) latch(stop *v1alpha1.Stop) {
	stops := []v1alpha1.Stop{*stop}
	for _, old := range p.status.Stops {
		if old.Hash != stop.Hash && len(stops) < stopLimit {
			stops = append(stops, old)
		}
	}
	p.status.Stops = stops
	p.target.stopped = &p.status.Stops[0]
}

// hold looks for doubt. One node's own trouble is tolerated, as far as the pool says so.
func (d *decision) hold(p *pool) string {
	onTarget, unwell, first, words, others := 0, 0, "", "", strangers{}
	say := func(text string) { words = cmp.Or(words, text) }
	d.onTrial(p, func(n *Node, s *Seen) {
		if s.WasReady {
			onTarget++
		}
		at := n.Observed == n.Mark.Assignment
		trouble := ""
		switch {
		case at && (n.Reason == nodev1.ReasonRolledBack || n.Reason == nodev1.ReasonEnvironmentFailing):
			say(n.Name + " is " + n.Reason)
		case s.goes(n):
		case s.WasReady && !n.Ready:
			trouble = "is not Ready"
		case n.Pressure&^s.Pressure != 0 && at:
			trouble = "has come under pressure"
		case at:
			trouble = d.turnedAway(n, s, &others)
		}
		if trouble != "" {
			unwell++
			first = cmp.Or(first, n.Name+" "+trouble)
		}
	})
	if others.count() { // of one namespace on one node they may be anybody's
		unwell += len(others.nodes)
		first = cmp.Or(first, others.first)
	}
	if limit := p.rules.tolerate.of(onTarget); unwell > limit {
		if unwell > 1 {
			first += fmt.Sprintf(", and %d in all", unwell)
		}
		say(first)
	}
	return words
}

// strangers are pods that were turned away and had not run there: whoever makes pods can name a node in one.
type strangers struct {
	namespaces, nodes map[string]bool
	first             string
}

func (s *strangers) add(n *Node, t *TurnedAway) {
	if s.nodes == nil {
		s.namespaces, s.nodes = map[string]bool{}, map[string]bool{}
	}
	s.namespaces[t.Namespace], s.nodes[n.Name] = true, true
	s.first = cmp.Or(s.first, n.Name+" turns pods away, such as "+t.Namespace+"/"+t.Name)
}

func (s *strangers) count() bool { return len(s.namespaces) > 1 || len(s.nodes) > 1 }

// turnedAway says which pod was turned away after the change that ran there before, and notes the others.
func (d *decision) turnedAway(n *Node, s *Seen, others *strangers) (trouble string) {
	for _, t := range d.turned[n.UID] {
		switch {
		case t.Age >= s.Assigned:
		case !t.Started.IsZero() && t.Started.Before(n.ChangeBegan):
			trouble = cmp.Or(trouble, "turns away "+t.Namespace+"/"+t.Name+", which ran there")
		case t.Unbound:
			others.add(n, t)
		}
	}
	return trouble
}

// youngTurned are those that count, by their nodes. A cluster may keep thousands that are long over.
func youngTurned(all []TurnedAway) map[types.UID][]*TurnedAway {
	young := map[types.UID][]*TurnedAway{}
	for i := range all {
		if t := &all[i]; t.Age < turnedFor {
			young[t.Node] = append(young[t.Node], t)
		}
	}
	return young
}
