package cmdutil

import (
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// PatchNode sends a merge patch. For a client dry run it applies the patch locally.
func PatchNode(ctx context.Context, client kubernetes.Interface, node *corev1.Node, patch map[string]any, dry DryRun) (*corev1.Node, error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("writing a patch: %w", err)
	}
	if dry == DryRunClient {
		return patchedNode(node, body)
	}
	return client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: FieldManager, DryRun: dry.Option()})
}

func patchedNode(node *corev1.Node, patch []byte) (*corev1.Node, error) {
	original, err := json.Marshal(node)
	if err != nil {
		return nil, fmt.Errorf("writing node %s: %w", node.Name, err)
	}
	merged, err := jsonpatch.MergePatch(original, patch)
	if err != nil {
		return nil, fmt.Errorf("patching node %s: %w", node.Name, err)
	}
	patched := &corev1.Node{}
	if err := json.Unmarshal(merged, patched); err != nil {
		return nil, fmt.Errorf("reading node %s: %w", node.Name, err)
	}
	return patched, nil
}
