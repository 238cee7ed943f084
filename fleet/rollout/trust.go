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
		m := &p.members[i]
		if m.class != Proven || m.want == nodev1.Local || m.node.Source != m.want || p.trusts(entry.Hash, m.node, m.want) {
			continue
		}
		hash := strings.TrimPrefix(variantOf(m.want), variantPrefix+p.Name+"-")
		cohort := v1alpha1.CohortProof{Cohort: m.node.Minor + "/" + m.node.Arch + "/" + hash, Time: now}
		entry.ProvenIn = append([]v1alpha1.CohortProof{cohort}, entry.ProvenIn[:min(len(entry.ProvenIn), proofLimit-1)]...)
		p.proofs[entry.Hash] = withProof(p.proofs[entry.Hash], proof{m.node.Minor, m.node.Arch, m.want})
	}
}

func withProof(known map[proof]bool, one proof) map[proof]bool {
	if known == nil {
		known = map[proof]bool{}
	}
	known[one] = true
	return known
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
