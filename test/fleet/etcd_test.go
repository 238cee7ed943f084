//go:build e2e

package fleet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// rewrite changes a puppet's Node in etcd: what no client may write, but what a Node has that is older than the test, or than this API server.
// The puppet has said what it has to say by then.
func (c *crew) rewrite(i int, change func(*corev1.Node)) {
	c.t.Helper()
	for c.node(i).Annotations[nodev1.ConfigStatusAnnotation] == "" {
		wait(c.t.Context(), 50*time.Millisecond)
	}
	if err := c.store(c.node(i), change); err != nil {
		c.t.Fatal(err)
	}
}

// store writes a Node into etcd as it is after a change.
func (c *crew) store(n *corev1.Node, change func(*corev1.Node)) error {
	n.APIVersion, n.Kind, n.ResourceVersion = "v1", "Node", ""
	change(n)
	value, err := json.Marshal(n)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string][]byte{"key": []byte("/registry/minions/" + n.Name), "value": value})
	if err != nil {
		return err
	}
	return c.f.askEtcd("/v3/kv/put", body)
}

func (f *fleet) askEtcd(path string, body []byte) error {
	transport := &http.Transport{DialContext: f.Dial}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Post("http://127.0.0.1:2379"+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if words, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd answers %s: %s, %w", answer.Status, words, err)
	}
	return nil
}

// old is a Node that has been there for a day.
func old(n *corev1.Node) { n.CreationTimestamp = metav1.NewTime(time.Now().Add(-24 * time.Hour)) }

// A Node whose spec.configSource a person has set, at an API server that still had the feature, is that person's. So it is where the field names
// what a pool would name.
func TestHandsOffTheField(t *testing.T) {
	t.Parallel()
	c := newCrew(t, name(t), 4, nil)
	c.rewrite(1, func(n *corev1.Node) { n.Spec.ConfigSource = sourceOf("kubelet-config/by-hand/kubelet") })
	if n := c.node(1); n.Spec.ConfigSource == nil {
		t.Fatal("the API server forgets the field")
	}
	c.f.steady(t)
	c.roll(quick)
	p := c.awaitReason(v1alpha1.ConditionReady, "Completed", 60*time.Second)
	if n := p.Status.Nodes; n.Manual != 1 || n.Proven != 3 {
		t.Errorf("it counts %+v", n)
	}
	source := c.source()
	c.rewrite(2, func(n *corev1.Node) {
		n.Spec.ConfigSource = sourceOf(source)
		for _, key := range []string{nodev1.ConfigSourceAnnotation, rollout.MarkAnnotation, nodev1.RetryAnnotation} {
			delete(n.Annotations, key)
		}
	})
	c.await("both are manual", 10*time.Second, func(p *v1alpha1.KubeletPool) bool { return p.Status.Nodes.Manual == 2 })
	c.change(`{"spec":{"layers":[{"name":"density","inline":{"maxPods":249}}]}}`)
	c.await("another revision is through", 60*time.Second, func(p *v1alpha1.KubeletPool) bool { return p.Status.Stable.Revision == 2 })
	for i, want := range map[int]int{1: 0, 2: 1, 3: 2, 4: 2} {
		if got := c.patched()[i]; got != want {
			t.Errorf("node %d was patched %d times, not %d", i, got, want)
		}
	}
}
