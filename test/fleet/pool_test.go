//go:build e2e

package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// smallPool is the smallest one that is useful.
func smallPool(name string) *v1alpha1.KubeletPool {
	p := &v1alpha1.KubeletPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Selector.MatchLabels = map[string]string{poolLabel: name}
	p.Spec.Layers = []v1alpha1.Layer{{Name: "density", Inline: &runtime.RawExtension{Raw: []byte(`{"maxPods":250}`)}}}
	return p
}

// quick is a pool that settles at once.
func quick(p *v1alpha1.KubeletPool) { p.Spec.Rollout.Settle = &metav1.Duration{} }

// roll makes the crew's pool. It goes with the test.
func (c *crew) roll(changes ...func(*v1alpha1.KubeletPool)) *v1alpha1.KubeletPool {
	c.t.Helper()
	p := smallPool(c.pool)
	for _, change := range changes {
		change(p)
	}
	if err := c.f.admin.Create(c.t.Context(), p); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if c.t.Failed() {
			now, err := c.f.Kubectl(context.Background(), "get", "kpool", p.Name, "-o", "yaml")
			c.t.Logf("the pool at last: %v\n%s", err, now)
		}
	})
	return p
}

// change patches the spec, as a person would.
func (c *crew) change(patch string) {
	c.t.Helper()
	p := &v1alpha1.KubeletPool{ObjectMeta: metav1.ObjectMeta{Name: c.pool}}
	if err := c.f.admin.Patch(c.t.Context(), p, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		c.t.Fatal(err)
	}
}

func (c *crew) now() *v1alpha1.KubeletPool {
	c.t.Helper()
	var p v1alpha1.KubeletPool
	if err := c.f.admin.Get(c.t.Context(), types.NamespacedName{Name: c.pool}, &p); err != nil {
		c.t.Fatal(err)
	}
	return &p
}

// await waits until the pool's status is so.
func (c *crew) await(what string, within time.Duration, holds func(*v1alpha1.KubeletPool) bool) *v1alpha1.KubeletPool {
	c.t.Helper()
	deadline := time.Now().Add(within)
	for {
		p := c.now()
		if p.Status.ObservedGeneration == p.Generation && holds(p) {
			return p
		}
		if time.Now().After(deadline) {
			text, _ := json.MarshalIndent(p.Status, "", " ")
			c.t.Fatalf("waited %v in vain until %s: %s", within, what, text)
		}
		wait(c.t.Context(), 100*time.Millisecond)
	}
}

// awaitReason waits for a reason of a condition.
func (c *crew) awaitReason(condition, reason string, within time.Duration) *v1alpha1.KubeletPool {
	c.t.Helper()
	return c.await("its "+condition+" is "+reason, within, func(p *v1alpha1.KubeletPool) bool {
		is := meta.FindStatusCondition(p.Status.Conditions, condition)
		known := p.Status.Nodes.Selected > 0 || len(c.puppets) == 0 // a pool whose nodes are still on their way to the controller is empty, and so completed
		return is != nil && is.Reason == reason && known
	})
}

// source is what the only variant of a pool's target is assigned as.
func (c *crew) source() string {
	c.t.Helper()
	for _, p := range c.puppets {
		p.mutex.Lock()
		running := p.running
		p.mutex.Unlock()
		if strings.HasPrefix(running, "kubelet-config/pool-"+c.pool+"-") {
			return running
		}
	}
	c.t.Fatal("nobody runs anything of the pool")
	return ""
}

func name(t *testing.T) string {
	return strings.ToLower(fmt.Sprintf("%.30s", strings.TrimPrefix(t.Name(), "Test")))
}
