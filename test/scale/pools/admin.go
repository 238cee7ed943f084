//go:build linux

package pools

import (
	"context"
	"net/http"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// newClient is the administrator's. It can speak as each node, over one connection: a policy lets nobody else write a node's words.
func newClient(c *cluster.Cluster) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	config := c.AdminConfig()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return asNode{next} })
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

type nodeName struct{}

// as makes a request one of the node.
func as(ctx context.Context, n *corev1.Node) context.Context {
	return context.WithValue(ctx, nodeName{}, n.Name)
}

type asNode struct{ next http.RoundTripper }

// RoundTrip sends a request as whom its context says.
func (a asNode) RoundTrip(request *http.Request) (*http.Response, error) {
	if name, is := request.Context().Value(nodeName{}).(string); is {
		request = request.Clone(request.Context())
		request.Header.Set(transport.ImpersonateUserHeader, "system:node:"+name)
		request.Header.Set(transport.ImpersonateGroupHeader, "system:nodes")
	}
	return a.next.RoundTrip(request)
}
