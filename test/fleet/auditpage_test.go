//go:build e2e

package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/pages"
)

// noted is what docs/howto/audit.md searches the log for.
type noted struct {
	Verb, Stage      string
	RequestURI       string
	User             struct{ Username string }
	ImpersonatedUser struct{ Username string }
	ObjectRef        struct{ Resource, Subresource, Namespace, Name, APIGroup string }
	RequestObject    json.RawMessage
	ResponseStatus   struct{ Code int }
}

// With deploy/audit-policy.yaml the audit log says who assigned what, also who tried to, and who took an identity or a configuration. The status
// that nodes report is there without its content.
func TestTheAuditLogTellsWhoAssigned(t *testing.T) {
	t.Parallel()
	f := shared(t)
	const name, source = "audited", "kubelet-config/audited/kubelet"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	layer := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: deploy.Namespace, Name: name}, Data: map[string]string{"kubelet": "a"}}
	for _, object := range []client.Object{node, layer} {
		if err := f.admin.Create(t.Context(), object.DeepCopyObject().(client.Object)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.admin.Delete(context.Background(), object) })
	}
	admin := f.person(t, "audited-admin", "system:masters")
	mayPatch := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "audited-patcher"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "patch"}}}}
	bound := &rbacv1.ClusterRoleBinding{ObjectMeta: mayPatch.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: mayPatch.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: mayPatch.Name}}}
	for _, object := range []client.Object{mayPatch, bound} {
		if err := f.admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.admin.Delete(context.Background(), object) })
	}
	assign := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+nodev1.ConfigSourceAnnotation+`":"`+source+`"}}}`))
	for user, refused := range map[string]string{"audited-nobody": "cannot patch resource", mayPatch.Name: deploy.Policy} {
		as := rest.CopyConfig(admin.config)
		as.Impersonate.UserName = user
		caller, err := client.New(as, client.Options{Scheme: f.admin.Scheme(), Mapper: f.admin.RESTMapper()})
		if err != nil {
			t.Fatal(err)
		}
		// Authorizers read a new binding a moment later.
		until(t, user+" is refused: "+refused, 20*time.Second, func() bool {
			err := caller.Patch(t.Context(), node.DeepCopy(), assign)
			if err == nil {
				t.Fatalf("%s assigned", user)
			}
			return strings.Contains(err.Error(), refused)
		})
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
	yaml := "apiVersion: v1\nkind: Node\nmetadata:\n  name: " + name + "\n  annotations: {" + nodev1.ConfigSourceAnnotation + ": " + source + "}\n"
	if err := admin.Patch(t.Context(), node.DeepCopy(), client.RawPatch(types.ApplyPatchType, []byte(yaml)), client.FieldOwner("audited-yaml"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	for what, is := range map[string]func(*noted) bool{
		"the assignment": func(e *noted) bool {
			return e.User.Username == "audited-admin" && e.ImpersonatedUser.Username == "" && e.ObjectRef.Resource == "nodes" && bytes.Contains(e.RequestObject, []byte(source)) && e.ResponseStatus.Code == 200
		},
		"the attempt that RBAC refuses": func(e *noted) bool {
			return e.ImpersonatedUser.Username == "audited-nobody" && e.RequestObject == nil && e.ResponseStatus.Code == 403
		},
		"the attempt that the policy refuses": func(e *noted) bool {
			return e.ImpersonatedUser.Username == mayPatch.Name && bytes.Contains(e.RequestObject, []byte(source)) && e.ResponseStatus.Code == 403
		},
		"the edit": func(e *noted) bool {
			return e.ObjectRef.Resource == "configmaps" && e.Verb == "patch" && bytes.Contains(e.RequestObject, []byte("edited"))
		},
		"the status, without its content": func(e *noted) bool {
			return e.User.Username == "system:node:"+name && e.ObjectRef.Subresource == "status" && e.RequestObject == nil
		},
		"the apply of YAML": func(e *noted) bool {
			return e.Stage == "RequestReceived" && strings.Contains(e.RequestURI, "audited-yaml")
		},
	} {
		until(t, "the audit log has "+what, 20*time.Second, func() bool { return f.hasNoted(t, name, is) })
	}
	found := f.searchAudit(t)
	for what, want := range map[string]string{
		"the assignment":                      "\taudited-admin\t-\t" + name + "\t" + source + "\t200\n",
		"the attempt that RBAC refuses":       "\taudited-admin\taudited-nobody\t" + name + "\t?\t403\n",
		"the attempt that the policy refuses": "\taudited-admin\t" + mayPatch.Name + "\t" + name + "\t" + source + "\t403\n",
		"the apply of YAML":                   "\taudited-admin\t-\t" + name + "\t/api/v1/nodes/" + name + "?fieldManager=audited-yaml&force=true\n",
	} {
		// An API server that can write YAML down has it among the assignments.
		if !strings.Contains(found, want) && (what != "the apply of YAML" || strings.Count(found, "\taudited-admin\t-\t"+name+"\t") != 2) {
			t.Errorf("the commands of the page do not find %s, %q:\n%s", what, want, found)
		}
	}
}

// searchAudit types the commands of the page beside the log, and gives what they find.
func (f *fleet) searchAudit(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("NOT TESTED: the commands of docs/howto/audit.md need jq, and it is not installed: test/parts/debian.sh jq")
	}
	text, err := os.ReadFile("../../docs/howto/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	var found strings.Builder
	for _, fence := range pages.Marked(string(text), "audit") {
		// The last line may be half written.
		command := exec.CommandContext(t.Context(), "sh", "-c", "grep '}$' "+f.AuditLog()+" >audit.log && "+fence[0].Line+"\n"+fence[0].Answer)
		command.Dir = t.TempDir()
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", fence[0].Line, err, output)
		}
		found.Write(output)
	}
	return found.String()
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
