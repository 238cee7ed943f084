package sync

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Lease is what the kubelet's own Lease says.
type Lease struct {
	RenewTime time.Time     // on the kubelet's wall clock
	Duration  time.Duration // the kubelet renews it after a quarter of this; 0 = not said
}

// ReadLease reads the kubelet's Lease, kube-node-lease/NODENAME, by one GET. An error of the API server is wrapped as it is
// (apierrors.IsNotFound and the like work on it); a Lease that was never renewed is an error.
// With cached the API server answers from its memory (resourceVersion=0): that spares it a read of etcd, and can be behind.
func ReadLease(ctx context.Context, client rest.Interface, nodeName string, cached bool) (Lease, error) {
	// Read as bare JSON: the coordination types would only be needed for these two fields.
	request := client.Get().
		AbsPath("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", nodeName).
		SetHeader("Accept", "application/json").
		Timeout(RequestTimeout).MaxRetries(0)
	if cached {
		request.Param("resourceVersion", "0")
	}
	raw, err := request.DoRaw(ctx)
	if err != nil {
		return Lease{}, fmt.Errorf("reading the Lease kube-node-lease/%s: %w", nodeName, err)
	}
	var lease struct {
		Spec struct {
			RenewTime            *metav1.MicroTime `json:"renewTime"`
			LeaseDurationSeconds int32             `json:"leaseDurationSeconds"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &lease); err != nil {
		return Lease{}, fmt.Errorf("decoding the Lease kube-node-lease/%s: %w", nodeName, err)
	}
	if lease.Spec.RenewTime == nil {
		return Lease{}, fmt.Errorf("the Lease kube-node-lease/%s has never been renewed", nodeName)
	}
	duration := time.Duration(max(0, lease.Spec.LeaseDurationSeconds)) * time.Second
	return Lease{RenewTime: lease.Spec.RenewTime.Time, Duration: duration}, nil
}
