package sync

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// ReadNode reads the Node by one GET.
func ReadNode(ctx context.Context, client rest.Interface, nodeName string) (*corev1.Node, error) {
	var node corev1.Node
	if err := client.Get().Resource("nodes").Name(nodeName).Timeout(RequestTimeout).MaxRetries(0).Do(ctx).Into(&node); err != nil {
		return nil, fmt.Errorf("reading Node %s: %w", nodeName, steady(err))
	}
	return &node, nil
}

// AsCached is the resourceVersion of a list as the API server's cache has it.
const AsCached = "0"

// OpenPods asks for the pods that are bound to the Node, as the API server lets the kubelet's identity, and not older than this
// resourceVersion: a PodList in JSON, for the caller to read piece by piece and to close. It ends with ctx, and is an error beyond 16 MiB.
//
// The API server answers from its cache, where the pods of a node have an index. Without a resourceVersion, one before
// 1.31 would read all pods of the cluster from etcd.
func OpenPods(ctx context.Context, client rest.Interface, nodeName, resourceVersion string) (io.ReadCloser, error) {
	list, err := client.Get().AbsPath("/api/v1/pods").Param("fieldSelector", "spec.nodeName="+nodeName).
		Param("resourceVersion", resourceVersion).Param("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan)).
		SetHeader("Accept", "application/json").MaxRetries(0).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the pods of Node %s: %w", nodeName, steady(err))
	}
	return list, nil
}

// CacheIsBehind reports whether the error is that the API server's cache has not got as far as the resourceVersion that was asked for.
func CacheIsBehind(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}
