//go:build e2e

package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
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
		return is != nil && is.Reason == reason
	})
}

// request is a PATCH of a Node by the controller.
type request struct {
	node string
	at   time.Time // when it was received
	code int
}

// patches are what the audit log has of the controller's PATCHes of the crew's Nodes, in their order.
func (c *crew) patches() (sent []request) {
	c.t.Helper()
	file, err := os.Open(c.f.AuditLog())
	if err != nil {
		c.t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var e struct {
			Stage, Verb string
			At          time.Time `json:"requestReceivedTimestamp"`
			User        struct{ Username string }
			Object      struct{ Resource, Subresource, Name string } `json:"objectRef"`
			Answer      struct{ Code int }                           `json:"responseStatus"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // the line is being written
		}
		if e.Stage == "ResponseComplete" && e.Verb == "patch" && e.User.Username == controllerUser && e.Object.Resource == "nodes" &&
			c.owns(e.Object.Name, e.At) {
			sent = append(sent, request{e.Object.Name, e.At, e.Answer.Code})
		}
	}
	slices.SortFunc(sent, func(a, b request) int { return a.at.Compare(b.at) })
	return sent
}

// assigned are the PATCHes that arrived, one for each Node; more than one is an error. Of one whose sender was killed the API server notes 504,
// whether it arrived or not: it did, where no other one came after it.
func (c *crew) assigned() (sent []request) {
	c.t.Helper()
	seen := map[string]bool{}
	all := c.patches()
	for i, r := range all {
		lost := r.code >= 500 && !slices.ContainsFunc(all[i+1:], func(later request) bool { return later.node == r.node })
		if r.code != 200 && !lost {
			continue
		}
		if seen[r.node] {
			c.t.Errorf("%s was patched twice", r.node)
		}
		seen[r.node] = true
		sent = append(sent, r)
	}
	return sent
}

// checkWaves: a wave begins after all nodes of the wave before it have said Active, and so many may be unavailable at once.
func (c *crew) checkWaves(source string, settle time.Duration, maxUnavailable int, goals ...int) {
	c.t.Helper()
	sent := c.assigned()
	if want := goals[len(goals)-1]; len(sent) != want {
		c.t.Errorf("%d of %d Nodes were patched", len(sent), want)
	}
	wave, active := 0, time.Time{}
	for i, r := range sent {
		if i == goals[wave] {
			wave++
			if r.at.Before(active) {
				c.t.Errorf("wave %d began %v before the last node of wave %d was Active", wave+1, active.Sub(r.at), wave)
			}
		}
		at := c.puppets[r.node].said("Active", source)
		if at.IsZero() {
			c.t.Errorf("%s never said Active of %s", r.node, source)
		}
		if at.After(active) {
			active = at
		}
	}
	c.checkUnavailable(sent, source, settle, maxUnavailable)
}

func (c *crew) checkUnavailable(sent []request, source string, settle time.Duration, limit int) {
	c.t.Helper()
	for i, r := range sent {
		away := 0
		for _, before := range sent[:i+1] {
			if runs := c.puppets[before.node].said("InTrial", source); runs.IsZero() || runs.Add(settle).After(r.at) {
				away++
			}
		}
		if away > limit {
			c.t.Errorf("when %s was patched, %d were unavailable, more than %d", r.node, away, limit)
		}
	}
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
