//go:build e2e

package fleet

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// always is the nature of a configuration at all nodes.
func always(nature string) func(string, string) string {
	return func(string, string) string { return nature }
}

// stopped waits until the pool has stopped, and says which node's fault it was.
func (c *crew) stopped(reason string) v1alpha1.Stop {
	c.t.Helper()
	p := c.awaitReason(v1alpha1.ConditionStalled, "Stopped", 30*time.Second)
	if len(p.Status.Stops) != 1 || p.Status.Stops[0].Reason != reason {
		c.t.Fatalf("the stops are %+v, not for %s", p.Status.Stops, reason)
	}
	if ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); ready.Reason != "Stopped" {
		c.t.Errorf("Ready is %+v", ready)
	}
	return p.Status.Stops[0]
}

// A canary that refuses stops the pool with the kubelet's own words, and nobody else is patched; the same content is not tried again by a
// re-apply, but by another attempt.
func TestCanaryRefuses(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 12, nil)
	c.nature = always(nodev1.ReasonRefused)
	c.f.steady(t)
	c.roll(quick)
	stop := c.stopped(nodev1.ReasonRefused)
	if !strings.Contains(stop.Message, refusedWords) || stop.Revision != 1 || stop.Attempt != 1 {
		t.Errorf("the stop is %+v", stop)
	}
	if got := c.assigned(); len(got) != 1 || got[0].node != stop.Node {
		t.Errorf("patched were %v", got)
	}
	c.change(`{"spec":{"layers":[{"name":"density","inline":{"maxPods":249}}]}}`)
	c.await("the other content is stopped, too", 30*time.Second, func(p *v1alpha1.KubeletPool) bool { return len(p.Status.Stops) == 2 })
	c.change(`{"spec":{"layers":[{"name":"density","inline":{"maxPods":250}}]}}`)
	c.awaitReason(v1alpha1.ConditionStalled, "Stopped", 10*time.Second)
	before := len(c.patches())
	c.nature = nil
	c.change(`{"spec":{"rollout":{"retry":"again"}}}`)
	c.awaitReason(v1alpha1.ConditionReady, "Completed", 60*time.Second)
	if len(c.patches()) < before+12 {
		t.Errorf("the second attempt took %d PATCHes", len(c.patches())-before)
	}
}

// A canary that dies holds at RolledBack, and stops at Rejected.
func TestCanaryDies(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 12, nil)
	c.trial = 2 * time.Second
	c.nature = always(nodev1.ReasonRejected)
	c.f.steady(t)
	c.roll(quick)
	c.awaitReason(v1alpha1.ConditionProgressing, "Held", 30*time.Second)
	if p := c.now(); len(p.Status.Stops) > 0 {
		t.Errorf("it is stopped before the verdict: %+v", p.Status.Stops)
	}
	stop := c.stopped(nodev1.ReasonRejected)
	if got := c.assigned(); len(got) != 1 || got[0].node != stop.Node {
		t.Errorf("patched were %v", got)
	}
}

// A node that fails in a wave of many: nothing is sent a second after its verdict, and what has not begun is taken back. It is about a second, so
// no other test runs beside it.
func TestFailureInAWave(t *testing.T) {
	c := newCrew(t, name(t), 100, nil)
	c.trial = 100 * time.Millisecond
	all := intstr.FromString("100%")
	c.f.steady(t)
	c.nature = refusedByThe(40)
	c.roll(quick, func(p *v1alpha1.KubeletPool) {
		p.Spec.Rollout.MaxUnavailable = &all
		p.Spec.Rollout.Waves = []v1alpha1.Wave{{Nodes: all}}
	})
	c.checkAfterVerdict(c.stopped(nodev1.ReasonRefused))
}

// refusedByThe is the nature of what only that one refuses which hears of it as the nth.
func refusedByThe(nth int64) func(string, string) string {
	var heard atomic.Int64
	return func(string, string) string {
		if heard.Add(1) == nth {
			return nodev1.ReasonRefused
		}
		return ""
	}
}

// checkAfterVerdict: from the first verdict on, what was in flight arrives and nothing else, and nothing a second later.
func (c *crew) checkAfterVerdict(stop v1alpha1.Stop) {
	c.t.Helper()
	c.quiet(3 * time.Second)
	verdict := c.verdict(stop.Reason)
	var sent, after []request
	seen := map[string]bool{}
	for _, r := range c.attempts() {
		if seen[r.node] {
			continue // it is taken back
		}
		seen[r.node], sent = true, append(sent, r)
		if r.at.After(verdict) {
			after = append(after, r)
		}
	}
	late := time.Duration(0)
	for _, r := range after {
		if late = r.at.Sub(verdict); late > time.Second {
			c.t.Errorf("%s was patched %v after the verdict of %s", r.node, late, stop.Node)
		}
	}
	if len(after) > 8 {
		c.t.Errorf("%d PATCHes were sent after the verdict", len(after))
	}
	c.t.Logf("%d of %d were patched, %d after the verdict, the last %v after it", len(sent), len(c.puppets), len(after), late)
}

// verdict is when the first one was on its Node.
func (c *crew) verdict(reason string) (first time.Time) {
	c.t.Helper()
	own := c.requests(true)
	for name, p := range c.puppets {
		p.mutex.Lock()
		words := slices.Collect(maps.Keys(p.words))
		p.mutex.Unlock()
		for _, word := range words {
			if source, is := strings.CutPrefix(word, reason+" "); is {
				if at := c.told(own, name, reason, source).done; !at.IsZero() && (first.IsZero() || at.Before(first)) {
					first = at
				}
			}
		}
	}
	return first
}

// quiet waits until nothing has been patched for that long.
func (c *crew) quiet(long time.Duration) {
	c.t.Helper()
	last, since := -1, time.Now()
	for deadline := time.Now().Add(time.Minute); time.Since(since) < long; {
		if now := len(c.attempts()); now != last {
			last, since = now, time.Now()
		}
		if time.Now().After(deadline) {
			c.t.Fatal("Nodes are patched for ever")
		}
		wait(c.t.Context(), 200*time.Millisecond)
	}
}

// Bad input is named, with the field, and what runs goes on.
func TestBadInput(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 3, nil)
	c.f.steady(t)
	c.roll(quick)
	c.awaitReason(v1alpha1.ConditionReady, "Completed", 60*time.Second)
	source := c.source()
	for patch, words := range map[string]string{
		`{"spec":{"layers":[{"name":"density","inline":{"kind":"Pod"}}]}}`:           "spec.layers[density]: inline",
		`{"spec":{"layers":[{"name":"density","inline":{"staticPodPath":"here"}}]}}`: "relative path",
		`{"spec":{"rollout":{"pin":{"revision":77}}}}`:                               "spec.rollout.pin: there is no revision 77",
	} {
		c.change(patch)
		p := c.awaitReason(v1alpha1.ConditionReady, "InvalidSpec", 10*time.Second)
		if got := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady).Message; !strings.Contains(got, words) {
			t.Errorf("%s: it says %q", patch, got)
		}
		c.change(`{"spec":{"layers":[{"name":"density","inline":{"maxPods":250}}],"rollout":{"pin":null}}}`)
		c.awaitReason(v1alpha1.ConditionReady, "Completed", 10*time.Second)
	}
	for _, patch := range []string{`{"spec":{"selector":{"matchLabels":null}}}`, `{"spec":{"rollout":{"waves":[{"nodes":"50%"}]}}}`,
		`{"spec":{"rollout":{"settle":"soon"}}}`, `{"spec":{"layers":[{"name":"one","inline":{}},{"name":"one","inline":{}}]}}`,
		`{"spec":{"rollout":{"pin":{}}}}`, `{"spec":{"rollout":{"pin":{"revision":1,"local":true}}}}`, `{"spec":{"rollout":{"pin":{"local":false}}}}`,
		`{"spec":{"rollout":{"pin":{"revision":0}}}}`, `{"spec":{"rollout":{"retry":"two words"}}}`} {
		if _, err := c.f.Kubectl(t.Context(), "patch", "kpool", c.pool, "--type=merge", "-p", patch); err == nil {
			t.Errorf("the API server takes %s", patch)
		}
	}
	if got := c.assigned(); len(got) != 3 || c.source() != source {
		t.Errorf("bad input moved nodes: %v", got)
	}
}
