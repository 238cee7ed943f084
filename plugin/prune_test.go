package plugin

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclient "k8s.io/client-go/testing"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

func pruneObjects() []runtime.Object {
	assigned, active, good, before, young := pushedOf("assigned", someConfig), pushedOf("active", someConfig), pushedOf("good", someConfig),
		pushedOf("before", someConfig), pushedOf("young", someConfig)
	young.CreationTimestamp = metav1.NewTime(noon)
	source := func(c *corev1.ConfigMap) string { return "kubelet-config/" + c.Name + "/kubelet" }
	node := saying(newNode("n1"), source(assigned), "Refused", corev1.ConditionFalse, "", active, good)
	node.Annotations[nodev1.ConfigSourceAnnotation] = source(assigned)
	node.Annotations[view.RecordAnnotation] = fmt.Sprintf(`[{"source": "kubelet-config/unused/kubelet"}, {"source": %q}, {"source": %q}]`, source(before), source(assigned))
	field := localNode("n2")
	field.Spec.ConfigSource = &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: "assigned", KubeletConfigKey: "kubelet"}}
	objects := []runtime.Object{node, field, assigned, active, good, before, young, pushedOf("unused", someConfig)}
	objects = append(objects, notPushed()...)
	objects = append(objects, grantFor("assigned", "n1", "n2", "gone")...)
	return append(objects, grantFor("unused", "n1")...)
}

// notPushed is what looks a little like something of push's, and is somebody's own.
func notPushed() []runtime.Object {
	foreign, edited, copied, labelled := pushedOf("foreign", someConfig), pushedOf("edited", someConfig), pushedOf("copied", someConfig), configMapOf("labelled", someConfig)
	foreign.Labels = nil
	edited.Data["kubelet"] += "maxPods: 7\n"
	copied.Name = "copied-by-hand"
	return []runtime.Object{foreign, edited, copied, labelled}
}

func TestPrune(t *testing.T) {
	b := newBench(t, pruneObjects()...)
	stdout, _ := b.do(t, "prune", "--dry-run=client")
	if want := "configmap/" + pushedOf("unused", someConfig).Name + " pruned (dry run)\nrolebinding"; !strings.HasPrefix(stdout, want) {
		t.Errorf("the dry run prints\n%s", stdout)
	}
	if code, _, stderr := b.run(t, "prune"); code != 1 { // nobody answers
		t.Errorf("without an answer: exit code %d\n%s", code, stderr)
	}
	b.do(t, "prune", "--yes")
	left := map[string]bool{}
	list, err := b.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list.Items {
		name, _, _ := strings.Cut(c.Name, "-")
		left[name] = true
	}
	if got, want := strings.Join(document.SortedKeys(left), " "), "active assigned before copied edited foreign good labelled young"; got != want {
		t.Errorf("left are %s, want %s", got, want)
	}
	bindings, err := b.RbacV1().RoleBindings("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(bindings.Items) != 1 {
		t.Fatalf("%v, %d RoleBindings, want 1", err, len(bindings.Items))
	}
	// kube-system/assigned is n2's; n1 is assigned another of the name, and gone is gone.
	if s := bindings.Items[0].Subjects; len(s) != 1 || s[0].Name != "system:node:n2" {
		t.Errorf("left are the subjects %v", s)
	}
	if _, stderr := b.do(t, "prune", "--yes"); !strings.Contains(stderr, "Nothing to remove") {
		t.Errorf("pruning again says %s", stderr)
	}
}

// What somebody assigns while the question stands is not removed.
func TestPruneLooksAgain(t *testing.T) {
	used, unused := pushedOf("late", someConfig), pushedOf("unused", someConfig)
	b := newBench(t, localNode("n1"), used, unused)
	b.input.WriteString("y\n")
	looks := 0
	b.PrependReactor("list", "nodes", func(testingclient.Action) (bool, runtime.Object, error) {
		if looks++; looks == 2 {
			late := localNode("n1")
			late.Annotations[nodev1.ConfigSourceAnnotation] = "kubelet-config/" + used.Name + "/kubelet"
			return false, nil, b.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), late, "")
		}
		return false, nil, nil
	})
	stdout, stderr := b.do(t, "prune")
	if stdout != "configmap/"+unused.Name+" pruned\n" {
		t.Errorf("removed:\n%s", stdout)
	}
	contains(t, stderr, "ConfigMap kubelet-config/"+used.Name+" stays, because it is in use now.")
}

// A grant is known by label, name and Role together, and a Role by its own label: what a person has copied, or made before, stays.
func TestPruneLeavesForeignGrants(t *testing.T) {
	named, other, foreign := grantFor("named", "gone"), grantFor("other", "gone"), grantFor("foreign", "gone")
	named[1].(*rbacv1.RoleBinding).Name = "copied"
	other[1].(*rbacv1.RoleBinding).RoleRef.Name = "cluster-admin"
	foreign[0].(*rbacv1.Role).Labels = nil
	own := grantFor("own", "gone")[1].(*rbacv1.RoleBinding)
	own.Name, own.RoleRef.Name = "own", "own"
	b := newBench(t, append(append(append(named, other...), foreign...), own)...)
	stdout, _ := b.do(t, "prune", "--yes")
	if want := "rolebinding.rbac.authorization.k8s.io/kubelet-supervisor:foreign pruned\n"; stdout != want {
		t.Errorf("removed:\n%s", stdout)
	}
	for _, name := range []string{"kubelet-supervisor:named", "kubelet-supervisor:other", "kubelet-supervisor:foreign"} {
		if _, err := b.RbacV1().Roles("kube-system").Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("a Role is gone: %v", err)
		}
	}
	for _, name := range []string{"copied", "own", "kubelet-supervisor:other"} {
		if _, err := b.RbacV1().RoleBindings("kube-system").Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("a RoleBinding is gone: %v", err)
		}
	}
}
