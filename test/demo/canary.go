//go:build linux

package main

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// mostTebibytes is far more than three nodes need until one content has a given one of them first.
const mostTebibytes = 100

// tebibytesFor gives how much memory the deadly layer has to reserve, so that this node is its canary. A pool orders nodes by a hash of node
// and content, so that none is always the first, and the demo's fake kubelets would not die of it.
func tebibytesFor(canary string, nodes []corev1.Node) (int, error) {
	for tebibytes := 1; tebibytes <= mostTebibytes; tebibytes++ {
		first, err := canaryOf(deadlyLayer(tebibytes), nodes)
		if err != nil || first == canary {
			return tebibytes, err
		}
	}
	return 0, fmt.Errorf("no content has %s as its canary", canary)
}

// canaryOf asks the core of the controller whom the pool would assign this layer first.
func canaryOf(layer string, nodes []corev1.Node) (string, error) {
	pool := &v1alpha1.KubeletPool{}
	if err := yaml.Unmarshal([]byte(poolYAML), pool); err != nil {
		return "", fmt.Errorf("reading the pool: %w", err)
	}
	pool.Spec.Layers[0].Inline = &runtime.RawExtension{Raw: []byte(layer)}
	w := rollout.World{Now: time.Now(), Synced: true, Pools: []rollout.Pool{rollout.ReadPool(pool, nil, time.LoadLocation)}}
	for i := range nodes {
		node := nodes[i].DeepCopy()
		for _, assigned := range []string{nodev1.ConfigSourceAnnotation, rollout.MarkAnnotation, nodev1.RetryAnnotation} {
			delete(node.Annotations, assigned)
		}
		w.Nodes = append(w.Nodes, rollout.ReadNode(node))
	}
	plan := rollout.Decide(w)
	if len(plan.Writes) == 0 {
		return "", errors.New("the pool would assign nobody anything")
	}
	return plan.Writes[0].Node, nil
}
