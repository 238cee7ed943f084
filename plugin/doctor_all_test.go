package plugin

import (
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

func namespaceOf(labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cmdutil.ConfigNamespace, Labels: labels}}
}

// annotated is a node that says nothing.
func annotated(name string, annotations map[string]string) *corev1.Node {
	node := localNode(name)
	for key, value := range annotations {
		node.Annotations[key] = value
	}
	return node
}

// After a policy was away, what was assigned meanwhile is what no record and no pool accounts for.
func TestDoctorListsWhatNothingAccountsFor(t *testing.T) {
	const a, b = "kubelet-config/a/kubelet", "kubelet-config/b/kubelet"
	objects := append(policies(t), namespaceOf(map[string]string{enforceLabel: restricted}),
		annotated("by-person", map[string]string{nodev1.ConfigSourceAnnotation: a, view.RecordAnnotation: `[{"source":"` + a + `","by":"alice"}]`}),
		annotated("by-nobody", nil),
		annotated("reset", map[string]string{view.RecordAnnotation: `[{"source":"` + a + `"},{"source":"local"}]`}))
	objects[1].(*admissionregistrationv1.ValidatingAdmissionPolicyBinding).CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	stdout, _ := newBench(t, objects...).do(t, "doctor", "--all")
	contains(t, stdout, "ok      namespace kubelet-config admits no privileged pod",
		"ok      the admission policy kubelet-supervisor-assignment limits who may assign",
		"note    no field that the admission policy kubelet-supervisor-assignment has was written since 2026-01-02T03:04:05Z",
		"ok      the record or the pool of each of 3 nodes accounts for what it is assigned")

	objects = append(objects,
		annotated("no-such-pool", map[string]string{nodev1.ConfigSourceAnnotation: a, rollout.MarkAnnotation: `{"pool":"p","assignment":"` + a + `","attempt":1}`}),
		annotated("unrecorded", map[string]string{nodev1.ConfigSourceAnnotation: a}),
		annotated("another", map[string]string{nodev1.ConfigSourceAnnotation: b, view.RecordAnnotation: `[{"source":"` + a + `"}]`}),
		annotated("taken", map[string]string{view.RecordAnnotation: `[{"source":"` + a + `"}]`}),
		annotated("left-pool", map[string]string{nodev1.ConfigSourceAnnotation: b, rollout.MarkAnnotation: `{"pool":"p","assignment":"` + a + `","attempt":1}`}),
		annotated("unreadable", map[string]string{nodev1.ConfigSourceAnnotation: a, view.RecordAnnotation: "?"}))
	stdout, _ = newBench(t, objects...).do(t, "doctor", "--all")
	contains(t, stdout, "note    node another: it is assigned "+b+", and the last record is of "+a,
		"note    node left-pool: it is assigned "+b+" without a record",
		"note    node no-such-pool: it is assigned "+a+" without a record",
		"note    node taken: its assignment "+a+" was removed without a record",
		"note    node unreadable: it is assigned "+a+", and its record cannot be read",
		"note    node unrecorded: it is assigned "+a+" without a record",
		"note    who assigned these is in the audit log of the API server: "+auditPage)
}

func TestDoctorAllAndNodes(t *testing.T) {
	for _, arguments := range [][]string{{"doctor"}, {"doctor", "--all", "n1"}, {"doctor", "n1", "n2"}} {
		if code, _, _ := newBench(t, localNode("n1")).run(t, arguments...); code != 1 {
			t.Errorf("%v: exit code %d", arguments, code)
		}
	}
}

// The namespace of configurations admits no privileged pod.
func TestDoctorAndTheNamespace(t *testing.T) {
	for name, test := range map[string]struct {
		there []runtime.Object
		code  int
		want  string
	}{
		"as installed": {[]runtime.Object{namespaceOf(map[string]string{enforceLabel: restricted})}, 0, "ok      namespace kubelet-config admits no privileged pod"},
		"no label":     {[]runtime.Object{namespaceOf(nil)}, 1, "WRONG   namespace kubelet-config does not have the label pod-security.kubernetes.io/enforce=restricted"},
		"a weaker one": {[]runtime.Object{namespaceOf(map[string]string{enforceLabel: "baseline"})}, 1, "WRONG   namespace kubelet-config does not have the label"},
		"none":         {nil, 0, "note    namespace kubelet-config is not there; kubectl kubelet install"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, _ := newBench(t, append(policies(t), test.there...)...).run(t, "doctor", "--all")
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			contains(t, stdout, test.want)
		})
	}
}
