//go:build e2e

package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/packaging"
)

// noted is what docs/howto/audit.md searches the log for.
type noted struct {
	Verb             string
	User             struct{ Username string }
	ImpersonatedUser struct{ Username string }
	ObjectRef        struct{ Resource, Subresource, Namespace, Name, APIGroup string }
	RequestObject    json.RawMessage
	ResponseStatus   struct{ Code int }
}

// With packaging/audit-policy.yaml the audit log says who assigned what, also who tried to, and who took an identity or a configuration. The status
// that nodes report is there without its content.
func TestTheAuditLogTellsWhoAssigned(t *testing.T) {
	t.Parallel()
	f := shared(t)
	const name, source = "audited", "kubelet-config/audited/kubelet"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	layer := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: packaging.Namespace, Name: name}, Data: map[string]string{"kubelet": "a"}}
	for _, object := range []client.Object{node, layer} {
		if err := f.admin.Create(t.Context(), object.DeepCopyObject().(client.Object)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.admin.Delete(context.Background(), object) })
	}
	admin := f.person(t, "audited-admin", "system:masters")
	as := rest.CopyConfig(admin.config)
	as.Impersonate.UserName = "audited-somebody"
	somebody, err := client.New(as, client.Options{Scheme: f.admin.Scheme(), Mapper: f.admin.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	assign := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+nodev1.ConfigSourceAnnotation+`":"`+source+`"}}}`))
	if err := somebody.Patch(t.Context(), node.DeepCopy(), assign); err == nil {
		t.Fatal("somebody assigned")
	}
	if err := admin.Patch(t.Context(), node.DeepCopy(), assign); err != nil {
		t.Fatal(err)
	}
	edit := client.RawPatch(types.MergePatchType, []byte(`{"data":{"kubelet":"edited"}}`))
	if err := admin.Patch(t.Context(), layer.DeepCopy(), edit); err != nil {
		t.Fatal(err)
	}
	status := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+nodev1.StatusAnnotation+`":"{}"}}}`))
	if err := f.person(t, "system:node:"+name, "system:nodes").Status().Patch(t.Context(), node.DeepCopy(), status); err != nil {
		t.Fatal(err)
	}
	for what, is := range map[string]func(*noted) bool{
		"the assignment": func(e *noted) bool {
			return e.User.Username == "audited-admin" && e.ImpersonatedUser.Username == "" && e.ObjectRef.Resource == "nodes" && bytes.Contains(e.RequestObject, []byte(source)) && e.ResponseStatus.Code == 200
		},
		"the attempt, on behalf of somebody": func(e *noted) bool {
			return e.User.Username == "audited-admin" && e.ImpersonatedUser.Username == "audited-somebody" && e.ObjectRef.Resource == "nodes" && e.ResponseStatus.Code == 403
		},
		"the edit": func(e *noted) bool {
			return e.ObjectRef.Resource == "configmaps" && e.Verb == "patch" && bytes.Contains(e.RequestObject, []byte("edited"))
		},
		"the status, without its content": func(e *noted) bool {
			return e.User.Username == "system:node:"+name && e.ObjectRef.Subresource == "status" && e.RequestObject == nil
		},
	} {
		until(t, "the audit log has "+what, 20*time.Second, func() bool { return f.hasNoted(t, name, is) })
	}
}

func (f *fleet) hasNoted(t *testing.T, name string, is func(*noted) bool) bool {
	t.Helper()
	log, err := os.ReadFile(f.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(log) {
		var e noted
		if bytes.Contains(line, []byte(name)) && json.Unmarshal(line, &e) == nil && e.ObjectRef.Name == name && is(&e) {
			return true
		}
	}
	return false
}
