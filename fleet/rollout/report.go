package rollout

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

const (
	cohortLimit   = 32
	failureLimit  = 20
	revisionLimit = 50
)

// report makes the plan: the actions, the status and events that describe them, and what this process must
// remember.
func report(w *World, f *fleet, chosen *choice) Plan {
	plan := Plan{Status: map[string]v1alpha1.KubeletPoolStatus{}, Budgets: map[string]v1alpha1.KubeletRolloutBudgetStatus{}, Clocks: w.Clocks,
		Variants: chosen.variants, Writes: chosen.writes, Drains: chosen.drains, Seen: f.memory(), Gone: f.gone}
	if !w.Synced {
		return plan // nothing is reported from an incomplete world
	}
	plan.Budgets, plan.Clocks = reportBudgets(w.Now, chosen.budgets), map[string]Clock{}
	for i := range chosen.pools {
		p := &chosen.pools[i]
		plan.Revisions = append(plan.Revisions, p.unkept...)
		p.report(w, f)
		if p.clock.Wave != 0 {
			plan.Clocks[p.Name] = p.clock
		}
		if !reflect.DeepEqual(p.status, p.Status) {
			plan.Status[p.Name] = p.status
			plan.Events = append(plan.Events, poolEvents(p)...)
		}
		for _, one := range chosen.writes {
			if reason, message, warning := one.Tells(); one.Pool == p.Name && reason != "" {
				plan.Events = append(plan.Events, Event{Pool: p.Name, Node: one.Node, UID: one.UID, Warning: warning, Reason: reason, Message: message})
			}
		}
	}
	plan.Look = lookAgain(w, chosen)
	return plan
}

// report updates the pool's status.
func (p *turn) report(w *World, f *fleet) {
	s, now := &p.status, metav1.NewTime(w.Now)
	if p.unknown == "" {
		s.ObservedGeneration = p.Generation
	}
	if p.target.there {
		s.Target = &v1alpha1.Target{RevisionName: p.target.name, Attempt: p.target.attempt}
	}
	p.clock.Barred = p.clock.Wave != 0 && (p.waits() || p.refused != "")
	s.Wave = p.waveStatus()
	s.Nodes = p.nodeCounts(p.conflicts, p.unavailableNow())
	s.Cohorts = p.cohortStatus()
	p.reportFailures(f, now)
	p.reportRevisions(f, now)
	tampered := p.tamperedWords(w)
	p.set(v1alpha1.ConditionReady, readyCondition(p), w.Now)
	p.set(v1alpha1.ConditionProgressing, progressingCondition(p), w.Now)
	p.set(v1alpha1.ConditionStalled, stalledCondition(p, tampered), w.Now)
}

// Tells returns the Event on the Node for a write; no reason means no Event.
func (w *Write) Tells() (reason, message string, warning bool) {
	switch {
	case w.Source != "":
		return EventPoolAssigned, fmt.Sprintf("pool %s assigned %s", w.Pool, w.Source), false
	case w.Why == WhyDrain:
		return EventPoolDrains, fmt.Sprintf("pool %s drains the node for revision %s", w.Pool, w.Drain.Hash), false
	case w.Why == WhyUndrain && w.Drain.Over != "":
		return EventPoolDrainEnded, fmt.Sprintf("pool %s drained the node without effect for revision %s: %s", w.Pool, w.Drain.Hash, w.Drain.Over), true
	}
	return "", "", false
}

// waveStatus returns times in steps of half a minute, so that passing time causes few writes.
func (p *course) waveStatus() *v1alpha1.WaveStatus {
	if p.clock.Wave == 0 {
		return nil
	}
	return &v1alpha1.WaveStatus{Number: p.clock.Wave, Goal: int32(p.goal), Opened: metav1.NewTime(p.clock.Opened),
		Soaked: metav1.Duration{Duration: p.clock.Soaked.Truncate(persist)}, Elapsed: metav1.Duration{Duration: p.clock.Elapsed.Truncate(persist)}}
}

func (c *crew) nodeCounts(conflicts, unavailable int) v1alpha1.NodeCounts {
	of := func(class Class) int32 { return int32(c.count.of[class]) }
	return v1alpha1.NodeCounts{Selected: int32(len(c.members) + conflicts), Updatable: int32(c.count.updatable), Old: of(Old), Late: of(Late),
		Applying: of(Applying), Waiting: of(Waiting), OnTrial: of(OnTrial), Proven: of(Proven), Failed: of(Failed), Blocked: of(Blocked),
		Unavailable: int32(unavailable), Away: int32(c.count.away), Joining: of(Joining), Held: of(Held), Skipped: of(Skipped), Manual: of(Manual),
		Conflict: int32(conflicts), Unsupervised: of(Unsupervised), Leaving: of(Leaving)}
}

// unavailableNow returns the unavailable members, without those that are only assigned in this turn.
func (p *turn) unavailableNow() int {
	n := p.count.unavailable
	for i := range p.writes {
		if w := &p.writes[i]; w.Why.moves() {
			if m := p.memberOf(w); !isUnavailable(m.node, m.seen) {
				n--
			}
		}
	}
	return n
}

func (c *crew) memberOf(w *Write) *member {
	return &c.members[slices.IndexFunc(c.members, func(m member) bool { return m.node.UID == w.UID })]
}

// cohortStatus returns the biggest cohorts.
func (c *crew) cohortStatus() []v1alpha1.CohortStatus {
	var all []v1alpha1.CohortStatus
	for i := range c.cohorts {
		if k := &c.cohorts[i]; k.nodes > 0 {
			name := bounded.Text(k.minor+"/"+k.arch+"/"+k.layers, 128)
			all = append(all, v1alpha1.CohortStatus{Name: name, Nodes: int32(k.nodes), Proven: int32(k.proven)})
		}
	}
	slices.SortFunc(all, func(a, b v1alpha1.CohortStatus) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), strings.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), cohortLimit)]
}

// reportFailures records failures by uid, with the kubelet's message, because the node may be gone later. A
// failure that is over makes room for a newer one; one that still stands does not, so that it is reported once.
func (p *course) reportFailures(all *fleet, now metav1.Time) {
	known := len(p.status.Failures)
	stands := make([]bool, known)
	var newer []v1alpha1.Failure
	add := func(f v1alpha1.Failure) {
		if i := slices.IndexFunc(p.status.Failures, func(old v1alpha1.Failure) bool {
			return old.UID == f.UID && old.Hash == f.Hash && old.Reason == f.Reason
		}); i >= 0 {
			stands[i] = true
		} else if len(newer) < failureLimit {
			f.Time, f.Message = now, message(f.Message)
			newer = append(newer, f)
		}
	}
	hash := targetHash(p.target.name)
	p.judged(all, func(n *Node, s *Seen) {
		switch {
		case s.Phase == Failed:
			add(v1alpha1.Failure{Node: n.Name, UID: n.UID, Hash: hash, Reason: n.Reason, Message: n.Failure})
		case !p.trusts(hash, n.assignedIn()) && s.lost(n):
			add(v1alpha1.Failure{Node: n.Name, UID: n.UID, Hash: hash, Reason: reasonLost, Message: ailment(n)})
		}
	})
	for _, g := range all.gone {
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

// reportRevisions records the results of the newest revisions, of the target and the stable revision, and of at
// most revisionLimit revisions that nodes have.
func (p *course) reportRevisions(f *fleet, now metav1.Time) {
	if !p.target.there || p.target.revision == nil {
		p.supersede("")
		return
	}
	hash := p.target.name.Hash
	p.supersede(hash)
	entry := v1alpha1.RevisionStatus{RevisionName: p.target.name, Proven: int32(p.count.of[Proven]), Result: p.target.result()}
	known := p.entry(hash)
	if known != nil {
		entry.ProvenIn, entry.FailedIn = known.ProvenIn, known.FailedIn
		if known.Result == v1alpha1.ResultCompleted {
			entry.Result = v1alpha1.ResultCompleted
		}
	}
	if p.target.stable {
		p.keepProofs(&entry, now)
		entry.FailedIn = p.keepFailures(entry.FailedIn, &p.target)
	}
	if known != nil {
		*known = entry
	} else {
		p.status.Revisions = append([]v1alpha1.RevisionStatus{entry}, p.status.Revisions...)
		p.forgetOld(f)
	}
	boundProofs(p.status.Revisions, hash)
}

// forgetOld keeps the revisions that are needed, and the newest ones.
func (p *aim) forgetOld(f *fleet) {
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
	had := p.assignedHashes(f)
	p.forgetRevisions(limit, func(hash string) bool { return hash == stable || hash == before || had[hash] })
	p.forgetRevisions(revisionLimit, func(hash string) bool { return hash == stable || hash == before })
}

// assignedHashes returns the revisions of the pool that are assigned to nodes.
func (p *aim) assignedHashes(f *fleet) map[string]bool {
	hashes := map[string]bool{}
	for _, i := range p.marked {
		if r := f.nodes[i].Retry; r.Pool == p.Name {
			hashes[r.Hash] = true
		}
	}
	return hashes
}

// poolEvents returns Events for what has changed since the previous status, so that nothing is reported twice.
func poolEvents(p *turn) (events []Event) {
	say := func(warning bool, reason, text string) {
		events = append(events, Event{Pool: p.Name, Warning: warning, Reason: reason, Message: message(text)})
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
	return events
}

// keepProofs records in which cohorts the target, which is the stable revision, is proven now.
func (p *course) keepProofs(of *v1alpha1.RevisionStatus, now metav1.Time) {
	for m := range p.each {
		if m.class == Proven && m.node.Source == m.want && m.node.Ready && !m.seen.Upgraded {
			p.noteProof(of, m.node, p.inhabited, now)
		}
	}
}

// inhabited reports whether the cohort has members now.
func (c *crew) inhabited(at proof) bool {
	return slices.ContainsFunc(c.members, func(m member) bool { return at == m.node.cohortWith(m.want) || at == m.node.assignedIn() })
}
