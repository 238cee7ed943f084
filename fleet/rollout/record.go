package rollout

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

const (
	completionMax = 50
	reasonLimit   = 200 // bytes of the message of a failure in a cohort
	retryLimit    = 16  // how many values of spec.rollout.retry are remembered
	stopLimit     = 32
)

// record is the status of a pool as it will be written, with its proofs and failures decoded.
type record struct {
	pool     string
	status   v1alpha1.KubeletPoolStatus
	proofs   map[string]map[proof]bool        // by revision hash: the cohorts in which the revision was completed
	failures map[proof]v1alpha1.CohortFailure // the cohorts in which the target has failed since a user last asked for a retry
}

// readRecord begins with the current status. Lists in it are replaced, except for the two that are copied.
func readRecord(p *Pool) record {
	r := record{pool: p.Name, status: p.Status, proofs: make(map[string]map[proof]bool, len(p.Status.Revisions))}
	r.status.Revisions, r.status.Conditions = slices.Clone(p.Status.Revisions), slices.Clone(p.Status.Conditions)
	for i := range r.status.Revisions {
		of := &r.status.Revisions[i]
		known := make(map[proof]bool, len(of.ProvenIn))
		for _, c := range of.ProvenIn {
			if at, is := readProof(p.Name, c.Cohort); is {
				known[at] = true
			}
		}
		r.proofs[of.Hash] = known
	}
	return r
}

// entry returns what the status says about a revision.
func (r *record) entry(hash string) *v1alpha1.RevisionStatus {
	if i := slices.IndexFunc(r.status.Revisions, func(of v1alpha1.RevisionStatus) bool { return of.Hash == hash }); i >= 0 {
		return &r.status.Revisions[i]
	}
	return nil
}

// stableHash returns the hash of the stable revision: until one has been completed, that of the nodes' own
// configuration.
func (r *record) stableHash() string {
	if r.status.Stable == nil {
		return localHash
	}
	return targetHash(*r.status.Stable)
}

// wasCompleted reports whether a revision was ever completed. The nodes' own configuration always was.
func (r *record) wasCompleted(hash string) bool {
	if hash == localHash || r.status.Stable != nil && targetHash(*r.status.Stable) == hash {
		return true
	}
	of := r.entry(hash)
	return of != nil && of.Result == v1alpha1.ResultCompleted
}

// gaveUp reports whether what the node has was never completed. For a revision that the status no longer names,
// the node's own report counts.
func (r *record) gaveUp(n *Node) bool {
	hash := n.Retry.Hash
	switch {
	case r.wasCompleted(hash):
		return false
	case r.entry(hash) != nil, slices.ContainsFunc(r.status.Stops, func(s v1alpha1.Stop) bool { return s.Hash == hash }):
		return true
	}
	return !n.hasProven()
}

// stopOf returns the stop of a revision in an attempt, or in a later one.
func (r *record) stopOf(hash string, attempt int64) *v1alpha1.Stop {
	for i := range r.status.Stops {
		if stop := &r.status.Stops[i]; stop.Hash == hash && attempt <= stop.Attempt {
			return stop
		}
	}
	return nil
}

// hasStopped reports whether what a node has was stopped in its attempt. The target may be the same revision in a
// later attempt.
func (r *record) hasStopped(retry Retry) bool { return r.stopOf(retry.Hash, retry.Attempt) != nil }

// latch stores a stop in the status, so that it outlives this process, the node, and the pool's next revision.
func (r *record) latch(stop *v1alpha1.Stop) *v1alpha1.Stop {
	stops := []v1alpha1.Stop{*stop}
	for _, old := range r.status.Stops {
		if old.Hash != stop.Hash && len(stops) < stopLimit {
			stops = append(stops, old)
		}
	}
	r.status.Stops = stops
	return &r.status.Stops[0]
}

// readRetry reads spec.rollout.retry. A new value raises the attempt of the target, so that it is tried again, and
// the attempts of other revisions' stops, so that these stay. Without a target it raises nothing.
func (r *record) readRetry(word string, t *target) {
	if word == "" {
		return
	}
	before := r.status.Retries
	known := slices.Contains(before, word)
	heard := append([]string{word}, slices.DeleteFunc(slices.Clone(before), func(w string) bool { return w == word })...) // a repeated value is not forgotten
	r.status.Retries = heard[:min(len(heard), retryLimit)]
	if known || r.status.Target == nil {
		return
	}
	hash := targetHash(t.name)
	r.status.Stops = slices.Clone(r.status.Stops)
	for i := range r.status.Stops {
		if stop := &r.status.Stops[i]; stop.Hash != hash && stop.Attempt >= t.attempt {
			stop.Attempt = t.attempt + 1
		}
	}
	for i := range r.status.Revisions {
		of := &r.status.Revisions[i]
		if of.Hash == hash {
			continue
		}
		of.FailedIn = slices.Clone(of.FailedIn)
		for j := range of.FailedIn {
			if f := &of.FailedIn[j]; f.Attempt >= t.attempt {
				f.Attempt = t.attempt + 1
			}
		}
	}
	t.attempt++
}

// trusts reports whether a revision was completed in a cohort. A node always trusts its own configuration.
func (r *record) trusts(hash string, at proof) bool {
	return hash == localHash || at.isLocal() || r.proofs[hash][at]
}

// readFailures reads the cohorts in which the target has failed since a user last asked for a retry.
func (r *record) readFailures(t *target) {
	r.failures = map[proof]v1alpha1.CohortFailure{}
	if of := r.entry(targetHash(t.name)); of != nil {
		for _, f := range of.FailedIn {
			if at, is := readProof(r.pool, f.Cohort); is && f.Attempt >= t.attempt && !r.proofs[of.Hash][at] {
				r.failures[at] = f
			}
		}
	}
}

// failedIn reports whether the stable revision has failed in the cohort of a member. Then no other node of the
// cohort is tried, even if the node that failed is gone.
func (r *record) failedIn(m *member) bool {
	_, is := r.failures[m.node.cohortWith(m.want)]
	return is
}

// noteFailure stores the failure of a cohort in the status. To make room it drops failures of cohorts without
// members.
func (r *record) noteFailure(v *harm, t *target, inhabited func(proof) bool, now metav1.Time) {
	f := v1alpha1.CohortFailure{Cohort: v.at.text(r.pool), Attempt: t.attempt, Node: v.node, Reason: v.reason, Message: bounded.Text(message(v.words), reasonLimit), Time: now}
	if of := r.entry(targetHash(t.name)); of != nil {
		if len(of.FailedIn) >= failureLimit {
			of.FailedIn = slices.DeleteFunc(slices.Clone(of.FailedIn), func(f v1alpha1.CohortFailure) bool { return !r.isIn(f.Cohort, inhabited) })
		}
		if len(of.FailedIn) < failureLimit {
			of.FailedIn = append([]v1alpha1.CohortFailure{f}, of.FailedIn...)
		}
	}
	r.failures[v.at] = f
}

func (r *record) isIn(cohort string, inhabited func(proof) bool) bool {
	at, is := readProof(r.pool, cohort)
	return is && inhabited(at)
}

// keepFailures drops failures of cohorts that have proven the target since, and all failures if a user has asked
// for a retry.
func (r *record) keepFailures(all []v1alpha1.CohortFailure, t *target) []v1alpha1.CohortFailure {
	return slices.DeleteFunc(slices.Clone(all), func(f v1alpha1.CohortFailure) bool {
		at, _ := readProof(r.pool, f.Cohort)
		return f.Attempt < t.attempt || r.proofs[targetHash(t.name)][at]
	})
}

// noteProof records that the cohort of a node has proven what the node has. To make room it drops proofs of
// cohorts without members.
func (r *record) noteProof(of *v1alpha1.RevisionStatus, n *Node, inhabited func(proof) bool, now metav1.Time) {
	at := n.cohortWith(n.Source)
	if r.trusts(of.Hash, at) {
		return
	}
	if len(of.ProvenIn) >= proofLimit {
		of.ProvenIn = slices.DeleteFunc(slices.Clone(of.ProvenIn), func(c v1alpha1.CohortProof) bool { return !r.isIn(c.Cohort, inhabited) })
	}
	if len(of.ProvenIn) >= proofLimit { // a cohort that is dropped needs a canary
		return
	}
	of.ProvenIn = append([]v1alpha1.CohortProof{{Cohort: at.text(r.pool), Time: now}}, of.ProvenIn...)
	if r.proofs[of.Hash] == nil {
		r.proofs[of.Hash] = map[proof]bool{}
	}
	r.proofs[of.Hash][at] = true
}

// noteCompletion adds a revision as the newest completed one, and makes it the stable revision.
func (r *record) noteCompletion(name v1alpha1.RevisionName, now metav1.Time) {
	all := []v1alpha1.Completion{{RevisionName: name, Time: now}}
	for _, old := range r.status.Completions {
		if targetHash(old.RevisionName) != targetHash(name) && len(all) < completionMax {
			all = append(all, old)
		}
	}
	r.status.Completions, r.status.Stable = all, &name
}

// clearStops removes the stops of a revision, because it was completed.
func (r *record) clearStops(hash string) {
	stops := r.status.Stops[:0:0]
	for _, stop := range r.status.Stops {
		if stop.Hash != hash {
			stops = append(stops, stop)
		}
	}
	r.status.Stops = stops
}

// supersede marks the revisions in progress as superseded, except for one.
func (r *record) supersede(by string) {
	for i := range r.status.Revisions {
		if of := &r.status.Revisions[i]; of.Hash != by && of.Result == v1alpha1.ResultRolling {
			of.Result = v1alpha1.ResultSuperseded
		}
	}
}

// forgetRevisions removes the oldest revisions over the limit that are not needed.
func (r *record) forgetRevisions(limit int, needed func(hash string) bool) {
	for i := len(r.status.Revisions) - 1; i > 0 && len(r.status.Revisions) > limit; i-- {
		if !needed(r.status.Revisions[i].Hash) {
			r.status.Revisions = slices.Delete(r.status.Revisions, i, i+1)
		}
	}
}
