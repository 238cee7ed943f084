package sync

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// ReadNode reads the Node by one GET.
func ReadNode(ctx context.Context, client rest.Interface, nodeName string) (*corev1.Node, error) {
	var node corev1.Node
	if err := client.Get().Resource("nodes").Name(nodeName).Timeout(RequestTimeout).MaxRetries(0).Do(ctx).Into(&node); err != nil {
		return nil, fmt.Errorf("reading Node %s: %w", nodeName, err)
	}
	return &node, nil
}

// OpenPods asks for the pods that are bound to the Node, as the API server lets the kubelet's identity: a PodList in JSON, for the caller
// to read piece by piece and to close. It ends with ctx, and is an error beyond 16 MiB.
func OpenPods(ctx context.Context, client rest.Interface, nodeName string) (io.ReadCloser, error) {
	list, err := client.Get().AbsPath("/api/v1/pods").Param("fieldSelector", "spec.nodeName="+nodeName).
		SetHeader("Accept", "application/json").MaxRetries(0).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the pods of Node %s: %w", nodeName, err)
	}
	return list, nil
}
