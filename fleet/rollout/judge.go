package rollout

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

const (
	// rejectedFor is how long a rejected pod causes doubt.
	rejectedFor = 15 * time.Minute
	// vanishLimit is how many healthy nodes at risk may vanish before that counts as caused by the revision.
	vanishLimit = 3
)

// course is how far a pool is, and whether it may go on. judge returns it.
type course struct {
	aim
	crew
	goal    int     // how many nodes the open wave may reach
	passed  []int32 // waves that were passed now
	done    bool    // the target was completed now
	doubt   string  // why new assignments wait
	wavers  string  // why rollbacks wait whose cohort has not completed the target
	recoils string  // why no node goes to what was completed before: nodes that had proven it no longer accept it
}

// judge finds doubt, which holds a rollout, and verdicts, which stop it, and whether the open wave has passed.
// Classes depend on the open wave, so it classifies the members of a pool again if the pool's next wave opens, or
// if the pool completes its target.
func judge(w *World, f *fleet, aims []aim, crews []crew) []course {
	courses, rejected := make([]course, len(aims)), recentlyRejected(w.Turned)
	for i := range aims {
		p := &courses[i]
		p.aim, p.crew = aims[i], crews[i]
		p.judge(w, f, rejected)
		if p.done {
			p.crew = crewOf(w, f, &p.aim, 0) // Old members become Late
		}
	}
	return courses
}

// judge examines only nodes that were assigned the target in this attempt, and whose cohort has not completed it
// before, because nothing stops it there.
func (p *course) judge(w *World, f *fleet, rejected rejectedPods) {
	p.doubt = p.unknownThings(w.Synced)
	if !p.target.there {
		return
	}
	if p.doubt == "" && !p.target.completed {
		p.doubt = p.invalid // a user who edits a layer during a rollout does not want the old content to go on
	}
	if p.target.stopped == nil {
		p.stop(f, metav1.NewTime(w.Now))
	}
	switch {
	case p.doubt != "" || p.target.stable:
	case p.target.completed: // doubt never delays a rollback to a proven revision
		p.wavers = p.hold(f, rejected)
	default:
		p.doubt = p.hold(f, rejected)
	}
	if p.target.completed {
		p.recoils = p.recoil(f)
	}
	p.advanceWave(w, f)
}

// unknownThings names what is not known, and so prevents action.
func (p *problems) unknownThings(synced bool) string {
	switch {
	case !synced:
		return "the caches are not synced"
	case p.unknown != "":
		return "ConfigMap " + p.unknown + " is not known yet"
	case p.missing != "":
		return "ConfigMap " + p.missing + " is not there"
	}
	return ""
}

// judged calls f with each node that was assigned the target in this attempt, even if it is not a member.
func (p *aim) judged(all *fleet, f func(n *Node, s *Seen)) {
	for _, i := range p.marked {
		if n := all.nodes[i]; p.judges(n) {
			f(n, &all.seen[i])
		}
	}
}

// onTrial calls f with those of the judged nodes whose cohort has not completed the target.
func (p *aim) onTrial(all *fleet, f func(n *Node, s *Seen)) {
	p.judged(all, func(n *Node, s *Seen) {
		if !p.trusts(p.target.retry.Hash, n.assignedIn()) {
			f(n, s)
		}
	})
}

// harm is a node's failure with a revision that its cohort has not completed.
type harm struct {
	at                  proof
	node, reason, words string
}

// stop looks for a verdict. A verdict stops a revision; for a stable one it only excludes the cohort.
func (p *course) stop(f *fleet, now metav1.Time) {
	v := p.worst(f)
	switch {
	case v == nil:
	case p.target.stable:
		p.noteFailure(v, &p.target, p.inhabited, now)
	default:
		p.target.stopped = p.latch(&v1alpha1.Stop{Hash: p.target.name.Hash, Revision: p.target.name.Revision, Attempt: p.target.attempt, Node: v.node, Reason: v.reason,
			Message: message(v.words), Time: now})
	}
}

// worst returns the worst harm that is not recorded yet.
func (p *course) worst(f *fleet) *harm {
	var found *harm
	var rank int
	candidate := func(r int, v harm) {
		if _, known := p.failures[v.at]; !(p.target.stable && known) && (found == nil || r < rank) {
			found, rank = &v, r
		}
	}
	onTarget, unwell := 0, 0
	var worst *Node
	p.onTrial(f, func(n *Node, s *Seen) {
		if s.WasReady {
			onTarget++
		}
		switch at := n.assignedIn(); {
		case s.Phase == Failed && final(n.Reason):
			candidate(0, harm{at, n.Name, n.Reason, n.Failure})
		case s.lost(n):
			candidate(1, harm{at, n.Name, reasonLost, "it was held, cordoned or taken away while it was " + ailment(n)})
		case s.isTakenAway(n):
		case s.Ill && s.WasReady && s.IllFor >= p.rules.unreadyAfter && s.Phase != Failed:
			if unwell++; worst == nil {
				worst = n
			}
		}
	})
	if unwell > p.rules.tolerate.of(onTarget) {
		candidate(2, harm{worst.assignedIn(), worst.Name, ailment(worst), fmt.Sprintf("for %v, and %d in all", p.rules.unreadyAfter, unwell)})
	}
	p.lookAtGone(f.gone, candidate)
	return found
}

// recoil returns a text if several nodes no longer accept the target although their cohorts have completed it. A
// single one counts as the node's own fault.
func (p *aim) recoil(f *fleet) string {
	have, failed, first := 0, 0, ""
	p.judged(f, func(n *Node, s *Seen) {
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

// lost reports whether an ill node at risk was removed before it could report. A node that was aside before it
// became ill, for example one that is drained and rebooted, is not lost; one that reports the configuration as the
// cause always is.
func (s *Seen) lost(n *Node) bool {
	if !s.Aside || s.Phase == Proven || n.Leaving && !n.Ready && s.Phase != Failed && ailment(n) == reasonNotReady {
		return false
	}
	return s.Phase == Failed || s.Ill && (!s.AsideFirst || n.Ready)
}

// isTakenAway reports whether, since before the node became ill, its cloud removes it or its host shuts down. Then
// its illness says nothing about its configuration.
func (s *Seen) isTakenAway(n *Node) bool {
	return n.Leaving && !n.Ready && s.AsideFirst && s.Phase != Failed && ailment(n) == reasonNotReady
}

func ailment(n *Node) string {
	switch n.Reason {
	case nodev1.ReasonRolledBack, nodev1.ReasonEnvironmentFailing, nodev1.ReasonRefused, nodev1.ReasonRejected, nodev1.ReasonLastKnownGoodFailed:
		return n.Reason
	}
	return reasonNotReady
}

func (p *course) lookAtGone(gone []Gone, candidate func(int, harm)) {
	healthy := 0
	var last *Gone
	for i := range gone {
		g := &gone[i]
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

// hold looks for doubt. It tolerates as many failing nodes as the pool allows.
func (p *aim) hold(f *fleet, rejected rejectedPods) string {
	onTarget, unwell, first, words, others := 0, 0, "", "", strangers{}
	say := func(text string) { words = cmp.Or(words, text) }
	p.onTrial(f, func(n *Node, s *Seen) {
		if s.WasReady {
			onTarget++
		}
		at := n.Observed == n.Mark.Assignment
		trouble := ""
		switch {
		case at && (n.Reason == nodev1.ReasonRolledBack || n.Reason == nodev1.ReasonEnvironmentFailing):
			say(n.Name + " is " + n.Reason)
		case s.isTakenAway(n):
		case s.WasReady && !n.Ready:
			trouble = "is not Ready"
		case n.Pressure&^s.Pressure != 0 && at:
			trouble = "has come under pressure"
		case at:
			trouble = rejected.trouble(n, s, &others)
		}
		if trouble != "" {
			unwell++
			first = cmp.Or(first, n.Name+" "+trouble)
		}
	})
	if others.count() { // pods of one namespace on one node may all belong to one user
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

// strangers are rejected pods that had not run on the node: any user who creates pods can name a node in one.
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

// rejectedPods are recently rejected pods, by node.
type rejectedPods map[types.UID][]*TurnedAway

// recentlyRejected returns the pods that count. A cluster may keep thousands of old ones.
func recentlyRejected(all []TurnedAway) rejectedPods {
	recent := rejectedPods{}
	for i := range all {
		if t := &all[i]; t.Age < rejectedFor {
			recent[t.Node] = append(recent[t.Node], t)
		}
	}
	return recent
}

// trouble returns a pod that was rejected after the change and that ran there before, and records the others.
func (r rejectedPods) trouble(n *Node, s *Seen, others *strangers) (trouble string) {
	for _, t := range r[n.UID] {
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
