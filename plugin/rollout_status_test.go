package plugin

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// rolling is a pool in its second wave, with a node of every kind.
func rolling(t *testing.T) (*fakePool, []*corev1.Node) {
	t.Helper()
	p := newFakePool(t, few, many)
	p.Status.Wave = &v1alpha1.WaveStatus{Number: 2, Goal: 4}
	p.Status.Nodes = v1alpha1.NodeCounts{Selected: 12, Old: 3, OnTrial: 2, Applying: 1, Proven: 1, Unavailable: 3, Held: 1, Skipped: 1, Manual: 1, Unsupervised: 1}
	p.says(v1alpha1.ConditionReady, false, rollout.ReasonRolling, "wave 2")
	p.says(v1alpha1.ConditionProgressing, true, rollout.ReasonWave, "wave 2")
	canary, trial, second, applies := p.member("n1", 2, "Active"), p.member("n2", 2, "InTrial"), p.member("n3", 2, "InTrial"), p.member("n4", 2, "Applying")
	for i, n := range []*corev1.Node{applies, trial, second, canary} {
		n.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet-supervisor-controller", Time: new(metav1.NewTime(noon.Add(-time.Duration(i) * time.Hour))),
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:kubelet-supervisor.io/pool-assigned":{}}}}`)}}
	}
	arm := p.member("n5", 1, "Active")
	arm.Status.NodeInfo.Architecture = "arm64"
	away, cordoned, held := p.member("n6", 1, "Active"), p.member("n7", 1, "Active"), p.member("n8", 1, "Active")
	away.Status.Conditions[0].Status, away.Status.Conditions[0].LastTransitionTime = corev1.ConditionUnknown, metav1.NewTime(noon.Add(-3*time.Hour))
	cordoned.Spec.Unschedulable = true
	held.Labels[rollout.RolloutLabel] = "hold"
	byHand := p.member("n9", 1, "Active")
	byHand.Annotations[nodev1.ConfigSourceAnnotation] = "kubelet-config/own/kubelet"
	byHand.Annotations[view.RecordAnnotation] = `[{"source": "kubelet-config/own/kubelet", "by": "admin"}]`
	released := p.member("other", 1, "Active")
	released.Labels[rollout.PoolLabel] = view.NoPool
	return p, []*corev1.Node{canary, trial, second, applies, arm, away, cordoned, held, byHand, newNode("n10"), released}
}

func TestRolloutStatus(t *testing.T) {
	p, nodes := rolling(t)
	b := newPoolBench(t, p, nodes...)
	stdout, _ := b.do(t, "rollout", "status", "workers", "--watch=false")
	golden(t, "rollout-status.txt", stdout)

	p.Spec.Rollout.Paused, p.Spec.Rollout.Pin = true, pinnedTo(2)
	p.says(v1alpha1.ConditionProgressing, false, rollout.ReasonPaused, "spec.rollout.paused")
	b.set(t, p)
	stdout, _ = b.do(t, "rollout", "status", "workers", "--watch=false")
	contains(t, stdout, "  paused: kubectl kubelet rollout resume workers", "  pinned to revision 2, whatever its layers say: kubectl kubelet rollout unpin workers")
}

func TestRolloutStatusStopped(t *testing.T) {
	p := newFakePool(t, few, deadly).stops("n4")
	p.Status.Nodes = v1alpha1.NodeCounts{Selected: 3, Old: 2, Failed: 1}
	b := newPoolBench(t, p, p.member("n1", 1, "Active"), p.member("n2", 1, "Active"), p.member("n4", 2, "Refused"))
	for _, watch := range []string{"--watch=false", "--watch"} {
		code, stdout, stderr := b.run(t, "rollout", "status", "workers", watch)
		if code != 1 || stdout != "" {
			t.Errorf("exit code %d, stdout %q", code, stdout)
		}
		golden(t, "rollout-stopped.txt", stderr)
	}
	// A change that the controller has not seen yet may be the remedy.
	p.Generation++
	b.set(t, p)
	stdout, _ := b.do(t, "rollout", "status", "workers", "--watch=false")
	contains(t, stdout, "and a change of the pool that the controller has not seen yet")
}

// It tells what happens until the rollout is through.
func TestRolloutStatusWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, nodes := rolling(t)
		b := newPoolBench(t, p, nodes...)
		done := make(chan struct{})
		go func() {
			defer close(done)
			time.Sleep(1500 * time.Millisecond)
			p.Status.Nodes.Proven, p.Status.Nodes.OnTrial = 3, 0
			b.set(t, p)
			time.Sleep(time.Second)
			p.Status.Wave.Number, p.Status.Wave.Goal = 3, 7
			b.set(t, p)
			time.Sleep(time.Second)
			p.Status.Nodes = v1alpha1.NodeCounts{Selected: 12, Proven: 12}
			p.completed()
			b.set(t, p)
		}()
		stdout, _ := b.do(t, "rollout", "status", "workers")
		<-done
		contains(t, stdout, "workers: revision 2 (maxPods 110 → 250 in layer fleet), wave 2 of 4, attempt 1", "workers: 12 nodes: 3 old, 1 applying, 3 proven, 0 failed\n",
			"wave 3 of 4", "workers: revision 2 (maxPods 250 in layer fleet), completed\n  12 nodes: 12 proven, 0 failed")
	})
}

// through: every node of the pool has proven its revision.
func through(p *fakePool) {
	p.completed().Status.Nodes = v1alpha1.NodeCounts{Selected: 12, Proven: 12}
}

// A node that became a member after the revision was completed is waited for, where it can be moved.
func TestRolloutStatusWaitsForLateNodes(t *testing.T) {
	for name, row := range map[string]struct {
		late func(*corev1.Node)
		code int
	}{
		"it is Ready":    {func(*corev1.Node) {}, 1},
		"it is NotReady": {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, 0},
		"it is cordoned": {func(n *corev1.Node) { n.Spec.Unschedulable = true }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newFakePool(t, few, many).completed()
				p.Status.Nodes = v1alpha1.NodeCounts{Selected: 2, Proven: 1, Late: 1}
				late := localNode("n2")
				knowing(late)
				row.late(late)
				code, stdout, stderr := newPoolBench(t, p, p.member("n1", 2, "Active"), late).run(t, "rollout", "status", "workers", "--timeout=5s")
				if code != row.code {
					t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
				}
			})
		})
	}
}

// What the controller had not seen yet is told again when it has.
func TestRolloutStatusTellsWhatWasSeenAtLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePool(t, few, many)
		through(p)
		p.Generation++
		b := newPoolBench(t, p, p.member("n1", 2, "Active"))
		done := make(chan struct{})
		go func() {
			defer close(done)
			time.Sleep(1500 * time.Millisecond)
			p.Status.ObservedGeneration = p.Generation
			b.set(t, p)
		}()
		stdout, _ := b.do(t, "rollout", "status", "workers", "--timeout=1m")
		<-done
		contains(t, stdout, "that the controller has not seen yet\n", "workers: revision 2 (maxPods 250 in layer fleet), completed\n")
	})
}

func TestRolloutStatusEnds(t *testing.T) {
	for name, row := range map[string]struct {
		arguments []string
		pool      func(*fakePool)
		code      int
		want      []string
	}{
		"completed": {nil, through, 0, nil},
		"completed, and a node that came later is on trial": {[]string{"--timeout=5s"}, func(p *fakePool) {
			through(p)
			p.Status.Nodes.OnTrial, p.Status.Nodes.Proven = 1, 11
		}, 1, []string{`pool workers: not within 5s: revision 2 (maxPods 250 in layer fleet), completed; 12 nodes: 1 on trial, 11 proven, 0 failed; it waits for n4 (applying), n2, n3 (on trial)`}},
		"no time left": {[]string{"--timeout=5s"}, nil, 1,
			[]string{`pool workers: not within 5s: revision 2 (maxPods 110 → 250 in layer fleet), wave 2 of 4, attempt 1; 12 nodes: 3 old, 1 applying, 2 on trial, 1 proven, 0 failed; ` +
				`it waits for n4 (applying), n2, n3 (on trial); its rollout goes on`}},
		"no time left, and a closed window": {[]string{"--timeout=5s"}, func(p *fakePool) {
			p.says(v1alpha1.ConditionProgressing, false, rollout.ReasonWindowClosed, "it has no window open before 2026-11-26T22:00:00Z")
		}, 1, []string{`it waits for n4 (applying), n2, n3 (on trial); WindowClosed: it has no window open before 2026-11-26T22:00:00Z; its rollout goes on`}},
		"overdue": {[]string{"--watch=false"}, func(p *fakePool) {
			p.says(v1alpha1.ConditionProgressing, false, rollout.ReasonDeadlineExceeded, "no progress in wave 2 for more than 1h0m0s: Held: n4 is RolledBack")
		}, 1, []string{`error: pool workers: no progress in wave 2 for more than 1h0m0s: Held: n4 is RolledBack`}},
		"not overdue":      {[]string{"--watch=false"}, nil, 0, nil},
		"another revision": {[]string{"--revision=1"}, nil, 1, []string{`pool "workers" is at revision 2, not at revision 1`}},
		"its revision":     {[]string{"--revision=2"}, through, 0, nil},
		"an invalid spec": {nil, func(p *fakePool) {
			p.says(v1alpha1.ConditionReady, false, rollout.ReasonInvalidSpec, "spec.layers[fleet]: inline: x")
		}, 1,
			[]string{`pool "workers": spec.layers[fleet]: inline: x; the nodes keep what they have`}},
		"below zero": {[]string{"--timeout=-1s"}, nil, 1, []string{"cannot be negative"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, nodes := rolling(t)
				if row.pool != nil {
					row.pool(p)
				}
				code, _, stderr := newPoolBench(t, p, nodes...).run(t, append([]string{"rollout", "status", "workers"}, row.arguments...)...)
				if code != row.code {
					t.Errorf("exit code %d\n%s", code, stderr)
				}
				contains(t, stderr, row.want...)
			})
		})
	}
}

// A request that ends because the time is over says nothing of the API server; one that fails before does.
func TestRolloutStatusEndsWithARequest(t *testing.T) {
	for name, row := range map[string]struct {
		fails time.Duration // of each request but the first
		want  string
	}{
		"the time is over": {10 * time.Second, "error: pool workers: not within 5s: revision 2 (maxPods 110 → 250 in layer fleet), wave 2 of 4, attempt 1; 12 nodes"},
		"it is away":       {0, "not within 5s; last seen: revision 2 (maxPods 110 → 250 in layer fleet), wave 2 of 4, attempt 1; 12 nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, nodes := rolling(t)
				b := newPoolBench(t, p, nodes...)
				asked := 0
				b.pools.PrependReactor("get", "kubeletpools", func(clienttesting.Action) (bool, runtime.Object, error) {
					if asked++; asked == 1 {
						return false, nil, nil
					}
					time.Sleep(row.fails)
					return true, nil, errors.New("client rate limiter Wait returned an error")
				})
				code, _, stderr := b.run(t, "rollout", "status", "workers", "--timeout=5s")
				contains(t, stderr, row.want, "it waits for n4 (applying), n2, n3 (on trial)")
				if away := row.fails == 0; code != 1 || strings.Contains(stderr, "rate limiter") != away {
					t.Errorf("exit code %d, %s", code, stderr)
				}
			})
		})
	}
}

// Who may see only the pool sees how many there are, and why not which.
func TestRolloutStatusWithoutRights(t *testing.T) {
	p, nodes := rolling(t)
	b := newPoolBench(t, p, nodes...)
	b.PrependReactor("list", "controllerrevisions", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "controllerrevisions"}, "", errors.New("no"))
	})
	stdout, _ := b.do(t, "rollout", "status", "workers", "--watch=false")
	contains(t, stdout, "workers: revision 2, wave 2 of 2, attempt 1\n  12 nodes: 3 old", "; 3 unavailable\n", "which nodes these are is not known: listing the revisions of pools")
}

func TestRolloutStatusBefore(t *testing.T) {
	p := newFakePool(t)
	b := newPoolBench(t, p)
	stdout, _ := b.do(t, "rollout", "status", "workers", "--watch=false")
	contains(t, stdout, "workers: no controller has looked at it yet; is kubelet-supervisor-controller running?")
	p.says(v1alpha1.ConditionReady, false, rollout.ReasonLayerMissing, "ConfigMap kubelet-config/fleet/kubelet is not there")
	b.set(t, p)
	stdout, _ = b.do(t, "rollout", "status", "workers", "--watch=false")
	contains(t, stdout, "workers: no revision yet: LayerMissing: ConfigMap kubelet-config/fleet/kubelet is not there")
}
