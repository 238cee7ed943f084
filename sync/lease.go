package sync

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// LeaseRenewTime reads when the kubelet last renewed its Lease, kube-node-lease/NODENAME, by one GET. An error of the API
// server is wrapped as it is (apierrors.IsNotFound and the like work on it); a Lease that was never renewed is an error.
// With cached the API server answers from its memory (resourceVersion=0): that spares it a read of etcd, and can be behind.
func LeaseRenewTime(ctx context.Context, client rest.Interface, nodeName string, cached bool) (time.Time, error) {
	// Read as bare JSON: the coordination types would only be needed for this one field.
	request := client.Get().
		AbsPath("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", nodeName).
		SetHeader("Accept", "application/json").
		Timeout(RequestTimeout).MaxRetries(0)
	if cached {
		request.Param("resourceVersion", "0")
	}
	raw, err := request.DoRaw(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the Lease kube-node-lease/%s: %w", nodeName, err)
	}
	var lease struct {
		Spec struct {
			RenewTime *metav1.MicroTime `json:"renewTime"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &lease); err != nil {
		return time.Time{}, fmt.Errorf("decoding the Lease kube-node-lease/%s: %w", nodeName, err)
	}
	if lease.Spec.RenewTime == nil {
		return time.Time{}, fmt.Errorf("the Lease kube-node-lease/%s has never been renewed", nodeName)
	}
	return lease.Spec.RenewTime.Time, nil
}
