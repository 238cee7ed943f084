package rollout

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

const (
	cohortLimit   = 32
	failureLimit  = 20
	revisionLimit = 50
)

// report says in the pool's status what there is, and in events what has happened.
func (d *decision) report(p *pool) {
	s := &p.status
	if p.unknown == "" {
		s.ObservedGeneration = p.Generation
	}
	if p.target.there {
		s.Target = &v1alpha1.Target{RevisionName: p.target.name, Attempt: p.target.attempt}
	}
	d.reportWave(p)
	s.Nodes = p.nodeCounts()
	s.Cohorts = p.cohortStatus()
	d.reportFailures(p)
	d.reportRevisions(p)
	d.reportConditions(p)
	if !reflect.DeepEqual(p.status, p.Status) {
		d.plan.Status[p.Name] = p.status
		d.tell(p)
	}
	for _, w := range d.plan.Writes {
		if reason, message, warning := w.Tells(); w.Pool == p.Name && reason != "" {
			d.plan.Events = append(d.plan.Events, Event{Pool: p.Name, Node: w.Node, UID: w.UID, Warning: warning, Reason: reason, Message: message})
		}
	}
}

// Tells is the event on the Node that a write is worth; without a reason none.
func (w *Write) Tells() (reason, message string, warning bool) {
	switch {
	case w.Source != "":
		return EventPoolAssigned, fmt.Sprintf("pool %s assigned %s", w.Pool, w.Source), false
	case w.Why == WhyDrain:
		return EventPoolDrains, fmt.Sprintf("pool %s drains the node for revision %s", w.Pool, w.Drain.Hash), false
	case w.Why == WhyUndrain && w.Drain.Over != "":
		return EventPoolDrainEnded, fmt.Sprintf("pool %s drained the node in vain for revision %s: %s", w.Pool, w.Drain.Hash, w.Drain.Over), true
	}
	return "", "", false
}

// reportWave writes times only every half minute, so that time alone costs few writes.
func (d *decision) reportWave(p *pool) {
	p.status.Wave = nil
	if p.clock.Wave == 0 {
		return
	}
	p.clock.Barred = p.waits() || p.refused != ""
	d.plan.Clocks[p.Name] = p.clock
	p.status.Wave = &v1alpha1.WaveStatus{Number: p.clock.Wave, Goal: int32(p.goal), Opened: metav1.NewTime(p.clock.Opened),
		Soaked: metav1.Duration{Duration: p.clock.Soaked.Truncate(persist)}, Elapsed: metav1.Duration{Duration: p.clock.Elapsed.Truncate(persist)}}
}

func (p *pool) nodeCounts() v1alpha1.NodeCounts {
	c := &p.count
	of := func(class Class) int32 { return int32(c.of[class]) }
	return v1alpha1.NodeCounts{Selected: int32(len(p.members) + p.conflicts), Updatable: int32(c.updatable), Old: of(Old), Late: of(Late),
		Applying: of(Applying), Waiting: of(Waiting), OnTrial: of(OnTrial), Proven: of(Proven), Failed: of(Failed), Blocked: of(Blocked),
		Unavailable: int32(p.unavailableNow()), Away: int32(c.away), Joining: of(Joining), Held: of(Held), Skipped: of(Skipped), Manual: of(Manual),
		Conflict: int32(p.conflicts), Unsupervised: of(Unsupervised), Leaving: of(Leaving)}
}

// unavailableNow leaves out those that are only about to be assigned.
func (p *pool) unavailableNow() int {
	n := p.count.unavailable
	for i := range p.writes {
		if w := &p.writes[i]; w.Why == WhyMove || w.Why == WhyLate || w.Why == WhyBack {
			if m := p.memberOf(w); !(!m.node.Ready || m.node.Cordoned || m.node.Draining || m.changing()) {
				n--
			}
		}
	}
	return n
}

func (p *pool) memberOf(w *Write) *member {
	return &p.members[slices.IndexFunc(p.members, func(m member) bool { return m.node.UID == w.UID })]
}

// cohortStatus has the biggest ones.
func (p *pool) cohortStatus() []v1alpha1.CohortStatus {
	var all []v1alpha1.CohortStatus
	for i := range p.cohorts {
		if c := &p.cohorts[i]; c.nodes > 0 {
			name := bounded.Text(c.minor+"/"+c.arch+"/"+c.layers, 128)
			all = append(all, v1alpha1.CohortStatus{Name: name, Nodes: int32(c.nodes), Proven: int32(c.proven)})
		}
	}
	slices.SortFunc(all, func(a, b v1alpha1.CohortStatus) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), strings.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), cohortLimit)]
}

// reportFailures keeps what failed by uid, in the kubelet's own words, for the node may be gone when somebody looks. One that is over makes
// room for a newer one; one that still stands does not, so that the same world is told once.
func (d *decision) reportFailures(p *pool) {
	known := len(p.status.Failures)
	stands := make([]bool, known)
	var newer []v1alpha1.Failure
	add := func(f v1alpha1.Failure) {
		if i := slices.IndexFunc(p.status.Failures, func(old v1alpha1.Failure) bool {
			return old.UID == f.UID && old.Hash == f.Hash && old.Reason == f.Reason
		}); i >= 0 {
			stands[i] = true
		} else if len(newer) < failureLimit {
			f.Time, f.Message = metav1.NewTime(d.w.Now), message(f.Message)
			newer = append(newer, f)
		}
	}
	hash := targetHash(p.target.name)
	d.judged(p, func(n *Node, s *Seen) {
		switch {
		case s.Phase == Failed:
			add(v1alpha1.Failure{Node: n.Name, UID: n.UID, Hash: hash, Reason: n.Reason, Message: n.Failure})
		case !p.trusts(hash, n.assignedIn()) && s.lost(n):
			add(v1alpha1.Failure{Node: n.Name, UID: n.UID, Hash: hash, Reason: reasonLost, Message: ailment(n)})
		}
	})
	for _, g := range d.plan.Gone {
		if g.Ill && g.Retry == p.target.retry && !p.trusts(hash, g.at()) {
			add(v1alpha1.Failure{Node: g.Node, UID: g.UID, Hash: hash, Reason: reasonLost, Message: "it vanished while it was ill"})
		}
	}
	if len(newer) == 0 {
		return
	}
	kept := slices.Clone(p.status.Failures)
	for i := known - 1; i >= 0 && len(kept)+len(newer) > failureLimit; i-- {
		if !stands[i] {
			kept = slices.Delete(kept, i, i+1)
		}
	}
	p.status.Failures = append(newer[:min(len(newer), max(0, failureLimit-len(kept)))], kept...)
}

// reportRevisions keeps what became of the newest revisions, and of the target, the stable one and those that nodes have. Of these at most
// revisionLimit.
func (d *decision) reportRevisions(p *pool) {
	if !p.target.there || p.target.revision == nil {
		p.supersede("")
		return
	}
	hash := p.target.name.Hash
	p.supersede(hash)
	entry := v1alpha1.RevisionStatus{RevisionName: p.target.name, Proven: int32(p.count.of[Proven]), Result: p.resultOf()}
	i := slices.IndexFunc(p.status.Revisions, func(r v1alpha1.RevisionStatus) bool { return r.Hash == hash })
	if i >= 0 {
		known := &p.status.Revisions[i]
		entry.ProvenIn, entry.FailedIn = known.ProvenIn, known.FailedIn
		if known.Result == v1alpha1.ResultCompleted {
			entry.Result = v1alpha1.ResultCompleted
		}
	}
	if p.target.stable {
		p.keepProofs(&entry, metav1.NewTime(d.w.Now))
		entry.FailedIn = p.keepFailures(entry.FailedIn)
	}
	if i >= 0 {
		p.status.Revisions[i] = entry
	} else {
		p.status.Revisions = append([]v1alpha1.RevisionStatus{entry}, p.status.Revisions...)
		d.forgetOld(p)
	}
	boundProofs(p.status.Revisions, hash)
}

// forgetOld keeps the revisions that are needed, and the newest.
func (d *decision) forgetOld(p *pool) {
	limit := 10
	if l := p.Spec.RevisionHistoryLimit; l != nil {
		limit = int(min(max(*l, 1), revisionLimit))
	}
	stable, before := "", ""
	if s := p.status.Stable; s != nil {
		stable = s.Hash
	}
	if r := p.Before(); r != nil {
		before = r.Hash
	}
	had := d.hashesOf(p)
	p.forgetRevisions(limit, func(hash string) bool { return hash == stable || hash == before || had[hash] })
	p.forgetRevisions(revisionLimit, func(hash string) bool { return hash == stable || hash == before })
}

// forgetRevisions forgets the oldest that are over the limit and not needed.
func (p *pool) forgetRevisions(limit int, needed func(hash string) bool) {
	for i := len(p.status.Revisions) - 1; i > 0 && len(p.status.Revisions) > limit; i-- {
		if !needed(p.status.Revisions[i].Hash) {
			p.status.Revisions = slices.Delete(p.status.Revisions, i, i+1)
		}
	}
}

// hashesOf are the revisions of the pool that nodes have been assigned.
func (d *decision) hashesOf(p *pool) map[string]bool {
	hashes := map[string]bool{}
	for _, i := range p.marked {
		if r := d.nodes[i].Retry; r.Pool == p.Name {
			hashes[r.Hash] = true
		}
	}
	return hashes
}

func (p *pool) supersede(by string) {
	for i := range p.status.Revisions {
		if r := &p.status.Revisions[i]; r.Hash != by && r.Result == v1alpha1.ResultRolling {
			r.Result = v1alpha1.ResultSuperseded
		}
	}
}

// tell says what has happened since the status before, so that the same world tells nothing twice.
func (d *decision) tell(p *pool) {
	say := func(warning bool, reason, text string) {
		d.plan.Events = append(d.plan.Events, Event{Pool: p.Name, Warning: warning, Reason: reason, Message: message(text)})
	}
	revision := p.target.text()
	if p.target.there && p.begun && !(p.target.stable && !p.done) {
		say(false, EventRolloutBegun, revision)
	}
	for _, number := range p.passed {
		say(false, EventWavePassed, fmt.Sprintf("%s: wave %d", revision, number))
	}
	if w, old := p.status.Wave, p.Status.Wave; w != nil && (p.begun || old == nil || old.Number != w.Number) {
		say(false, EventWaveBegun, fmt.Sprintf("%s: wave %d, %d nodes", revision, w.Number, w.Goal))
	}
	if p.done {
		say(false, EventRolloutCompleted, revision)
	}
	if stop := p.target.stopped; stop != nil && !slices.ContainsFunc(p.Status.Stops, func(old v1alpha1.Stop) bool {
		return old.Hash == stop.Hash && old.Attempt == stop.Attempt
	}) {
		say(true, EventRolloutStopped, stop.Node+" "+stop.Reason+": "+stop.Message)
	}
	if held := meta.FindStatusCondition(p.status.Conditions, v1alpha1.ConditionProgressing); held.Reason == ReasonHeld && p.target.stopped == nil {
		if old := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionProgressing); old == nil || old.Reason != ReasonHeld {
			say(true, EventRolloutHeld, held.Message)
		}
	}
	if p.conflicts > 0 && p.Status.Nodes.Conflict == 0 {
		say(true, EventNodeConflict, p.conflictWords())
	}
}

func (p *pool) conflictWords() string {
	return fmt.Sprintf("%d nodes are selected by several pools of the same priority, such as %s by %s", p.conflicts, p.conflictNode, p.conflictPools)
}
