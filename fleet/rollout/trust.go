package rollout

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// Trust names what it was about (rule 23): a revision that was completed is proven in the cohorts in which it was, and nowhere else. Under a newer
// kubelet, on another architecture or with other layers it needs a canary again, whatever the move to it is called.

const (
	proofLimit    = 32  // of one revision
	proofsLimit   = 256 // of all of a pool, so that its status stays small
	completionMax = 50
	reasonLimit   = 200 // bytes of the words of a failure in a cohort
)

// proof is a cohort for which a revision was proven: the kubelet's minor version, the architecture, and what these nodes get of it.
type proof struct{ minor, arch, source string }

// cohortWith is the cohort of a node that has source.
func (n *Node) cohortWith(source string) proof { return proof{n.Minor, n.Arch, source} }

// assignedIn is the cohort of a node with what it has been assigned.
func (n *Node) assignedIn() proof { return n.cohortWith(n.Mark.Assignment) }

// at is the cohort of one that vanished.
func (g *Gone) at() proof { return proof{g.Minor, g.Arch, g.Assignment} }

// text is how a status names the cohort.
func (at proof) text(pool string) string {
	return escaped(at.minor) + "/" + escaped(at.arch) + "/" + strings.TrimPrefix(variantOf(at.source), variantPrefix+pool+"-")
}

// escaped: a kubelet may say what it likes of its version and its architecture.
func escaped(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "%", "%25"), "/", "%2F")
}

func unescaped(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "%2F", "/"), "%25", "%")
}

// readProof reads what text has written.
func readProof(pool, text string) (at proof, is bool) {
	words := strings.Split(text, "/")
	if len(words) != 3 {
		return proof{}, false
	}
	return proof{unescaped(words[0]), unescaped(words[1]), sourceOf(variantPrefix + pool + "-" + words[2])}, true
}

// proofs are those of the revisions that a status names, by their hashes.
func (p *pool) readProofs() {
	p.proofs = map[string]map[proof]bool{}
	for i := range p.status.Revisions {
		r := &p.status.Revisions[i]
		known := make(map[proof]bool, len(r.ProvenIn))
		for _, c := range r.ProvenIn {
			if at, is := readProof(p.Name, c.Cohort); is {
				known[at] = true
			}
		}
		p.proofs[r.Hash] = known
	}
}

// trusts: a revision was completed in a cohort. A node's own configuration is its own.
func (p *pool) trusts(hash string, at proof) bool {
	return hash == localHash || at.source == nodev1.Local || p.proofs[hash][at]
}

// readFailures reads where the target has failed since somebody last asked for it.
func (p *pool) readFailures() {
	p.failures = map[proof]v1alpha1.CohortFailure{}
	if r := p.entry(targetHash(p.target.name)); r != nil {
		for _, f := range r.FailedIn {
			if at, is := readProof(p.Name, f.Cohort); is && f.Attempt >= p.target.attempt && !p.proofs[r.Hash][at] {
				p.failures[at] = f
			}
		}
	}
}

// failedIn: what is stable has failed in the cohort of a member, so that nobody else of it is tried, whatever becomes of the node that has shown it.
func (p *pool) failedIn(m *member) bool {
	_, is := p.failures[m.node.cohortWith(m.want)]
	return is
}

// bar keeps the failure of a cohort in the status.
func (p *pool) bar(v *harm, now metav1.Time) {
	f := v1alpha1.CohortFailure{Cohort: v.at.text(p.Name), Attempt: p.target.attempt, Node: v.node, Reason: v.reason, Message: bounded.Text(message(v.words), reasonLimit), Time: now}
	if r := p.entry(targetHash(p.target.name)); r != nil {
		if len(r.FailedIn) >= failureLimit {
			r.FailedIn = slices.DeleteFunc(slices.Clone(r.FailedIn), func(f v1alpha1.CohortFailure) bool { return !p.isMembers(f.Cohort) })
		}
		if len(r.FailedIn) < failureLimit {
			r.FailedIn = append([]v1alpha1.CohortFailure{f}, r.FailedIn...)
		}
	}
	p.failures[v.at] = f
}

// isMembers: a member is in the cohort now.
func (p *pool) isMembers(cohort string) bool {
	at, is := readProof(p.Name, cohort)
	return is && slices.ContainsFunc(p.members, func(m member) bool { return at == m.node.cohortWith(m.want) || at == m.node.assignedIn() })
}

// keepFailures drops those that are over: the cohort has proven the target, or somebody has asked again.
func (p *pool) keepFailures(all []v1alpha1.CohortFailure) []v1alpha1.CohortFailure {
	return slices.DeleteFunc(slices.Clone(all), func(f v1alpha1.CohortFailure) bool {
		at, _ := readProof(p.Name, f.Cohort)
		return f.Attempt < p.target.attempt || p.proofs[targetHash(p.target.name)][at]
	})
}

// entry is what the status says of a revision.
func (p *pool) entry(hash string) *v1alpha1.RevisionStatus {
	if i := slices.IndexFunc(p.status.Revisions, func(r v1alpha1.RevisionStatus) bool { return r.Hash == hash }); i >= 0 {
		return &p.status.Revisions[i]
	}
	return nil
}

// keepProofs notes in which cohorts the target is proven now. It is the stable revision.
func (p *pool) keepProofs(entry *v1alpha1.RevisionStatus, now metav1.Time) {
	for i := range p.members {
		if m := &p.members[i]; m.class == Proven && m.node.Source == m.want && m.node.Ready && !m.seen.Upgraded {
			p.noteProof(entry, m.node, now)
		}
	}
}

// noteProof notes that the cohort of a node has proven what the node has.
func (p *pool) noteProof(entry *v1alpha1.RevisionStatus, n *Node, now metav1.Time) {
	at := n.cohortWith(n.Source)
	if p.trusts(entry.Hash, at) {
		return
	}
	if len(entry.ProvenIn) >= proofLimit {
		entry.ProvenIn = slices.DeleteFunc(slices.Clone(entry.ProvenIn), func(c v1alpha1.CohortProof) bool { return !p.isMembers(c.Cohort) })
	}
	if len(entry.ProvenIn) >= proofLimit { // whoever is not among them needs a canary
		return
	}
	entry.ProvenIn = append([]v1alpha1.CohortProof{{Cohort: at.text(p.Name), Time: now}}, entry.ProvenIn...)
	if p.proofs[entry.Hash] == nil {
		p.proofs[entry.Hash] = map[proof]bool{}
	}
	p.proofs[entry.Hash][at] = true
}

// boundProofs forgets proofs and failures of the oldest revisions, which need a canary then. Those of the target stay.
func boundProofs(revisions []v1alpha1.RevisionStatus, target string) {
	proofs, failures := proofsLimit, 2*failureLimit
	for i := range revisions {
		if r := &revisions[i]; r.Hash == target {
			proofs, failures = proofs-len(r.ProvenIn), failures-len(r.FailedIn)
		}
	}
	for i := range revisions {
		r := &revisions[i]
		if r.Hash == target {
			continue
		}
		r.ProvenIn, r.FailedIn = r.ProvenIn[:min(len(r.ProvenIn), proofs):min(len(r.ProvenIn), proofs)], r.FailedIn[:min(len(r.FailedIn), failures):min(len(r.FailedIn), failures)]
		proofs, failures = proofs-len(r.ProvenIn), failures-len(r.FailedIn)
	}
}

// findStable finds again what ran where the pool has no status: it was made anew, or restored. Absence of a status does not say that nothing ever ran.
// What was completed is a kept revision that members have proven and none has failed: the newest of which nobody who could have it has something else,
// or, in the middle of a rollout, the oldest.
func (d *decision) findStable(p *pool) {
	if p.Status.Target != nil || p.Status.Stable != nil || !d.w.Synced {
		return
	}
	var best *Revision
	wholly := false
	for i := range p.Revisions {
		r := &p.Revisions[i]
		if r.Tampered {
			continue
		}
		runs, whole := d.ranOf(p, r)
		if runs && (best == nil || whole && (!wholly || r.Number > best.Number) || !whole && !wholly && r.Number < best.Number) {
			best, wholly = r, whole
		}
	}
	if best == nil {
		return
	}
	name := v1alpha1.RevisionName{Revision: best.Number, Hash: best.Hash}
	p.status.Stable = &name
	p.noteCompletion(name, metav1.NewTime(d.w.Now))
	entry := v1alpha1.RevisionStatus{RevisionName: name, Result: v1alpha1.ResultCompleted}
	v := newVariants(best)
	for _, at := range p.own {
		if n := d.nodes[at]; n.Ready && n.hasProven() && v.sourceFor(n) == n.Source {
			p.noteProof(&entry, n, metav1.NewTime(d.w.Now))
		}
	}
	p.status.Revisions = append([]v1alpha1.RevisionStatus{entry}, p.status.Revisions...)
}

// ranOf: members have been assigned a revision, and have proven it; whole: all that could have it have what it gives them. One that has failed at it has
// only its own trouble then; else nothing was completed.
func (d *decision) ranOf(p *pool, r *Revision) (runs, whole bool) {
	v := newVariants(r)
	whole, failed, bare := true, false, false
	for _, at := range p.own {
		n := d.nodes[at]
		has, gets := p.recorded(n, r.Hash), v.sourceFor(n)
		proven := n.hasProven() && gets == n.Source
		runs = runs || has && proven
		able := n.Ready && n.Supervised && n.Layered && !n.Cordoned && !n.Leaving && !n.Updating && !d.held[at]
		switch {
		case has && d.seen[at].Phase == Failed:
			failed = true
		case !able || proven || gets == nodev1.Local && n.Source == nodev1.Local:
		case n.Mark.Pool == "" && n.Source == "":
			bare = bare || gets != nodev1.Local
		case n.Mark.Pool == p.Name && n.Mark.Records(n.Source):
			whole = false
		}
	}
	return runs && !(failed && (!whole || bare)), whole
}

// noteCompletion puts a revision in front of those that were completed.
func (p *pool) noteCompletion(name v1alpha1.RevisionName, now metav1.Time) {
	all := []v1alpha1.Completion{{RevisionName: name, Time: now}}
	for _, old := range p.status.Completions {
		if targetHash(old.RevisionName) != targetHash(name) && len(all) < completionMax {
			all = append(all, old)
		}
	}
	p.status.Completions = all
}

// Before is the revision that was completed before the target of a pool, which an undo goes back to; nil: there is none that is kept.
func (p *Pool) Before() *Revision {
	for _, c := range p.Status.Completions {
		if t := p.Status.Target; t != nil && t.Hash == c.Hash {
			continue
		}
		if i := slices.IndexFunc(p.Revisions, func(r Revision) bool { return r.Hash == c.Hash && !r.Tampered }); i >= 0 {
			return &p.Revisions[i]
		}
	}
	return nil
}
