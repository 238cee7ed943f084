package plugin

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclient "k8s.io/client-go/testing"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

func pruneObjects() []runtime.Object {
	old := configMapOf("assignments.n1", "") // as an earlier version kept the record
	old.Labels[purposeLabel] = purposeRecord
	assigned, active, good, before, young, foreign := configMapOf("assigned", someConfig), configMapOf("active", someConfig), configMapOf("good", someConfig),
		configMapOf("before", someConfig), configMapOf("young", someConfig), configMapOf("foreign", someConfig)
	young.CreationTimestamp = metav1.NewTime(noon)
	foreign.Labels = nil
	node := saying(newNode("n1"), "kubelet-config/assigned/kubelet", "Refused", corev1.ConditionFalse, "", active, good)
	node.Annotations[nodev1.ConfigSourceAnnotation] = "kubelet-config/assigned/kubelet"
	node.Annotations[recordAnnotation] = `[{"source": "kubelet-config/unused/kubelet"}, {"source": "kubelet-config/before/kubelet"}, {"source": "kubelet-config/assigned/kubelet"}]`
	field := localNode("n2")
	field.Spec.ConfigSource = &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: "assigned", KubeletConfigKey: "kubelet"}}
	objects := []runtime.Object{node, field, assigned, active, good, before, young, foreign, configMapOf("unused", someConfig),
		old}
	objects = append(objects, grantFor("assigned", "n1", "n2", "gone")...)
	return append(objects, grantFor("unused", "n1")...)
}

func TestPrune(t *testing.T) {
	b := newBench(t, pruneObjects()...)
	stdout, _ := b.do(t, "prune", "--dry-run=client")
	if want := "configmap/assignments.n1 pruned (dry run)\nconfigmap/unused pruned (dry run)\n"; !strings.HasPrefix(stdout, want) {
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
		left[c.Name] = true
	}
	if got, want := strings.Join(sortedKeys(left), " "), "active assigned before foreign good young"; got != want {
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
	b := newBench(t, localNode("n1"), configMapOf("late", someConfig), configMapOf("unused", someConfig))
	b.input.WriteString("y\n")
	looks := 0
	b.PrependReactor("list", "nodes", func(testingclient.Action) (bool, runtime.Object, error) {
		if looks++; looks == 2 {
			late := localNode("n1")
			late.Annotations[nodev1.ConfigSourceAnnotation] = "kubelet-config/late/kubelet"
			return false, nil, b.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), late, "")
		}
		return false, nil, nil
	})
	stdout, stderr := b.do(t, "prune")
	if stdout != "configmap/unused pruned\n" {
		t.Errorf("removed:\n%s", stdout)
	}
	contains(t, stderr, "ConfigMap kubelet-config/late stays: somebody uses it now.")
}
