package rollout

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// Trust names what it was about (rule 23): a revision that was completed is proven in the cohorts in which it was, and nowhere else. Under a newer
// kubelet, on another architecture or with other layers it needs a canary again, whatever the move to it is called.

const (
	proofLimit  = 32  // of one revision
	proofsLimit = 256 // of all of a pool, so that its status stays small
)

// proof is a cohort for which a revision was proven: the kubelet's minor version, the architecture, and the nodes'
// variant of the revision.
type proof struct{ minor, arch, source string }

// cohortWith returns the cohort of a node with source.
func (n *Node) cohortWith(source string) proof { return proof{n.Minor, n.Arch, source} }

// assignedIn returns the cohort of a node with its current assignment.
func (n *Node) assignedIn() proof { return n.cohortWith(n.Mark.Assignment) }

// at returns the cohort of a node that vanished.
func (g *Gone) at() proof { return proof{g.Minor, g.Arch, g.Assignment} }

// isLocal reports whether the proof is for the nodes' own configuration.
func (at proof) isLocal() bool { return at.source == nodev1.Local }

// text returns the cohort in the form that a status has.
func (at proof) text(pool string) string {
	return escaped(at.minor) + "/" + escaped(at.arch) + "/" + strings.TrimPrefix(variantOf(at.source), variantPrefix+pool+"-")
}

// escaped makes text from a node safe, because a kubelet can report any version and architecture.
func escaped(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "%", "%25"), "/", "%2F")
}

func unescaped(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "%2F", "/"), "%25", "%")
}

// readProof decodes the result of text.
func readProof(pool, text string) (at proof, is bool) {
	words := strings.Split(text, "/")
	if len(words) != 3 {
		return proof{}, false
	}
	return proof{unescaped(words[0]), unescaped(words[1]), sourceOf(variantPrefix + pool + "-" + words[2])}, true
}

// boundProofs removes proofs and failures of the oldest revisions, which then need a canary. Those of the target
// stay.
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

// findStable finds the stable revision of a pool without status, which was created again or restored. A missing
// status does not mean that nothing ever ran. The stable revision is a stored revision that members have proven
// and none has failed: the newest one that all nodes have that could have it or, during a rollout, the oldest.
func (p *aim) findStable(w *World, f *fleet) {
	if p.Status.Target != nil || p.Status.Stable != nil || !w.Synced {
		return
	}
	var best *Revision
	wholly := false
	for i := range p.Revisions {
		r := &p.Revisions[i]
		if r.Tampered {
			continue
		}
		runs, whole := p.ranOf(f, r)
		if runs && (best == nil || whole && (!wholly || r.Number > best.Number) || !whole && !wholly && r.Number < best.Number) {
			best, wholly = r, whole
		}
	}
	if best == nil {
		return
	}
	now := metav1.NewTime(w.Now)
	name := v1alpha1.RevisionName{Revision: best.Number, Hash: best.Hash}
	p.noteCompletion(name, now)
	entry := v1alpha1.RevisionStatus{RevisionName: name, Result: v1alpha1.ResultCompleted}
	v := newVariants(best)
	for _, at := range p.own {
		if n := f.nodes[at]; n.Ready && n.hasProven() && v.sourceFor(n) == n.Source {
			p.noteProof(&entry, n, func(proof) bool { return false }, now)
		}
	}
	p.status.Revisions = append([]v1alpha1.RevisionStatus{entry}, p.status.Revisions...)
}

// ranOf reports whether members have been assigned a revision and have proven it. whole reports whether all
// members that could have it do; then a failed member counts as an exception. Otherwise a failure means that the
// revision was not completed.
func (p *aim) ranOf(f *fleet, r *Revision) (runs, whole bool) {
	v := newVariants(r)
	whole, failed, bare := true, false, false
	for _, at := range p.own {
		n := f.nodes[at]
		has, gets := n.recorded(p.Name, r.Hash), v.sourceFor(n)
		proven := n.hasProven() && gets == n.Source
		runs = runs || has && proven
		able := n.Ready && n.Supervised && n.Layered && !n.Cordoned && !n.Leaving && !n.Updating && !f.held[at]
		switch {
		case has && f.seen[at].Phase == Failed:
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

// Before returns the revision that was completed before the target of a pool, which an undo goes back to; nil if
// none is stored.
func (p *Pool) Before() *Revision {
	for _, c := range p.Status.Completions {
		if t := p.Status.Target; t != nil && t.Hash == c.Hash {
			continue
		}
		if r := p.kept(c.Hash); r != nil {
			return r
		}
	}
	return nil
}

// kept returns a stored revision whose content matches its name.
func (p *Pool) kept(hash string) *Revision {
	return p.keptWith(func(r *Revision) bool { return r.Hash == hash })
}

func (p *Pool) keptNumber(number int64) *Revision {
	return p.keptWith(func(r *Revision) bool { return r.Number == number })
}

func (p *Pool) keptWith(is func(*Revision) bool) *Revision {
	for i := range p.Revisions {
		if r := &p.Revisions[i]; !r.Tampered && is(r) {
			return r
		}
	}
	return nil
}
