package rollout

import (
	"fmt"
	"slices"
	"testing"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// One word is one act: the stop of the target is lifted, those of other revisions hold on.
func TestAWordLiftsTheStopOfTheTargetAlone(t *testing.T) {
	w := newTable(t)
	w.pool.Status.Stops = []v1alpha1.Stop{{Hash: w.retry.Hash, Revision: 2, Attempt: 1, Node: "n1"}, {Hash: "other", Revision: 7, Attempt: 1, Node: "n2"},
		{Hash: "older", Revision: 6, Attempt: 0, Node: "n3"}}
	w.pool.Spec.Rollout.Retry = "again"
	plan, status := w.decide(w.old("n1"))
	if got := w.written(plan); got != "Move n1 T" || status.Target.Attempt != 2 || !slices.Equal(status.Retries, []string{"again"}) {
		t.Errorf("it writes %s, in attempt %d, after the words %q", got, status.Target.Attempt, status.Retries)
	}
	for hash, want := range map[string]int64{w.retry.Hash: 1, "other": 2, "older": 0} {
		if got := attemptOf(status.Stops, hash); got != want {
			t.Errorf("%s is stopped up to attempt %d, want %d", hash, got, want)
		}
	}
	if stop := w.pool.Status.Stops[1]; stop.Attempt != 1 {
		t.Errorf("it wrote into the status that it was given: %+v", stop)
	}

	w.pool.Status = status
	for _, word := range []string{"again", "", "again"} {
		w.pool.Spec.Rollout.Retry = word
		if _, after := w.decide(w.onT("n1", nodev1.ReasonRejected, nil)); after.Target.Attempt != 2 {
			t.Errorf("the word %q makes attempt %d", word, after.Target.Attempt)
		}
	}
}

// A pool that has no target yet has nothing to try again. The newest words are remembered, so that an older manifest revives nothing.
func TestWordsThatWereHeard(t *testing.T) {
	w := newTable(t)
	w.pool.Status = v1alpha1.KubeletPoolStatus{}
	w.pool.Spec.Rollout.Retry = "0"
	for i := range 20 {
		var status v1alpha1.KubeletPoolStatus
		if _, status = w.decide(w.old("n1")); status.Target.Attempt != int64(i+1) || status.Retries[0] != w.pool.Spec.Rollout.Retry {
			t.Fatalf("attempt %d after the words %q", status.Target.Attempt, status.Retries)
		}
		w.pool.Status, w.pool.Spec.Rollout.Retry = status, fmt.Sprint(i+1)
	}
	if heard := w.pool.Status.Retries; len(heard) != 16 || heard[0] != "19" || heard[15] != "4" {
		t.Errorf("heard are %q", heard)
	}
}
