//go:build e2e

package fleet

import (
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// The controller's requests do not wait with those of other service accounts: its Lease goes with the elections of the cluster itself, and all else
// with what Kubernetes' own controllers ask for.
func TestFlowSchemas(t *testing.T) {
	t.Parallel()
	f := shared(t)
	config, err := f.IdentityConfig(controllerUser)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for path, schema := range map[string]string{
		"/apis/coordination.k8s.io/v1/namespaces/kubelet-supervisor/leases/kubelet-supervisor-controller": "kubelet-supervisor-controller-lease",
		"/api/v1/nodes?limit=1": "kubelet-supervisor-controller",
	} {
		uid, err := f.Kubectl(t.Context(), "get", "flowschema", schema, "-o", "jsonpath={.metadata.uid}")
		if err != nil {
			t.Fatal(err)
		}
		var got string
		until(t, path+" is of FlowSchema "+schema, 30*time.Second, func() bool {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := transport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			got = answer.Header.Get("X-Kubernetes-Pf-Flowschema-Uid")
			return got == uid
		})
		dangling, err := f.Kubectl(t.Context(), "get", "flowschema", schema, "-o", `jsonpath={.status.conditions[?(@.type=="Dangling")].status}`)
		if err != nil || dangling != "False" {
			t.Errorf("%s is dangling: %s, %v", schema, dangling, err)
		}
	}
}
