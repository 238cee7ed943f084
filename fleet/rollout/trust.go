package rollout

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
)

// Trust names what it was about (rule 23): a revision that was completed is proven in the cohorts in which it was, and nowhere else. Under a newer
// kubelet, on another architecture or with other layers it needs a canary again, whatever the move to it is called.

const (
	proofLimit    = 32  // of one revision
	proofsLimit   = 256 // of all of a pool, so that its status stays small
	completionMax = 50
)

// proof is a cohort for which a revision was proven: the kubelet's minor version, the architecture, and what these nodes get of it.
type proof struct{ minor, arch, source string }

// proofs are those of the revisions that a status names, by their hashes.
func (p *pool) readProofs() {
	p.proofs = map[string]map[proof]bool{}
	for i := range p.status.Revisions {
		r := &p.status.Revisions[i]
		known := make(map[proof]bool, len(r.ProvenIn))
		for _, c := range r.ProvenIn {
			if words := strings.Split(c.Cohort, "/"); len(words) == 3 {
				known[proof{words[0], words[1], sourceOf(variantPrefix + p.Name + "-" + words[2])}] = true
			}
		}
		p.proofs[r.Hash] = known
	}
}

// trusts: a revision was completed in the cohort of a node that has source of it. A node's own configuration is its own.
func (p *pool) trusts(hash string, n *Node, source string) bool {
	return hash == localHash || source == nodev1.Local || p.proofs[hash][proof{n.Minor, n.Arch, source}]
}

// keepProofs notes in which cohorts the target is proven now. It is the stable revision.
func (p *pool) keepProofs(entry *v1alpha1.RevisionStatus, now metav1.Time) {
	for i := range p.members {
		if m := &p.members[i]; m.class == Proven && m.node.Source == m.want {
			p.noteProof(entry, m.node, now)
		}
	}
}

// noteProof notes that the cohort of a node has proven what the node has.
func (p *pool) noteProof(entry *v1alpha1.RevisionStatus, n *Node, now metav1.Time) {
	if p.trusts(entry.Hash, n, n.Source) || len(entry.ProvenIn) >= proofLimit { // whoever is not among them needs a canary
		return
	}
	hash := strings.TrimPrefix(variantOf(n.Source), variantPrefix+p.Name+"-")
	cohort := v1alpha1.CohortProof{Cohort: n.Minor + "/" + n.Arch + "/" + hash, Time: now}
	entry.ProvenIn = append([]v1alpha1.CohortProof{cohort}, entry.ProvenIn[:min(len(entry.ProvenIn), proofLimit-1)]...)
	if p.proofs[entry.Hash] == nil {
		p.proofs[entry.Hash] = map[proof]bool{}
	}
	p.proofs[entry.Hash][proof{n.Minor, n.Arch, n.Source}] = true
}

// boundProofs forgets those of the oldest revisions, which need a canary then.
func boundProofs(revisions []v1alpha1.RevisionStatus) {
	left := proofsLimit
	for i := range revisions {
		r := &revisions[i]
		if len(r.ProvenIn) > left {
			r.ProvenIn = r.ProvenIn[:left:left]
		}
		left -= len(r.ProvenIn)
	}
}

// findStable finds again what ran where the pool has no status: it was made anew, or restored. A kept revision that members run and have proven is
// stable, that of the most of them. Absence of a status does not say that nothing ever ran.
func (d *decision) findStable(p *pool) {
	if p.Status.Target != nil || p.Status.Stable != nil || !d.w.Synced {
		return
	}
	var best *Revision
	most := 0
	for i := range p.Revisions {
		r, runs, v := &p.Revisions[i], 0, newVariants(&p.Revisions[i])
		if r.Tampered {
			continue
		}
		for _, at := range p.own {
			if n := d.nodes[at]; n.Source != nodev1.Local && n.hasProven() && v.sourceFor(n) == n.Source {
				runs++
			}
		}
		if runs > most || runs == most && runs > 0 && r.Number > best.Number {
			best, most = r, runs
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
		if n := d.nodes[at]; n.hasProven() && v.sourceFor(n) == n.Source {
			p.noteProof(&entry, n, metav1.NewTime(d.w.Now))
		}
	}
	p.status.Revisions = append([]v1alpha1.RevisionStatus{entry}, p.status.Revisions...)
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
