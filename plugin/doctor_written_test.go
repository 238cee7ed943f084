package plugin

import (
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// boundAt has the bindings made at noon, except for one of another time; without a time it is away.
func boundAt(objects []runtime.Object, name string, at time.Time) (installed []runtime.Object) {
	for _, object := range objects {
		made := noon
		switch o := object.(type) {
		case *admissionregistrationv1.ValidatingAdmissionPolicy:
			o.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
		case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
			if o.Name == name {
				if made = at; at.IsZero() {
					continue
				}
			}
			o.CreationTimestamp = metav1.NewTime(made)
		}
		installed = append(installed, object)
	}
	return installed
}

// wroteAt is an object that somebody wrote a field of at this time, relative to noon.
func wroteAt[O metav1.Object](object O, field string, after time.Duration) O {
	at := metav1.NewTime(noon.Add(after))
	object.SetCreationTimestamp(metav1.NewTime(noon.Add(-10 * time.Hour)))
	object.SetManagedFields(append(object.GetManagedFields(), metav1.ManagedFieldsEntry{Manager: "x", Operation: metav1.ManagedFieldsOperationUpdate, Time: &at,
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:` + field + `":{}}},"f:` + field + `":{}}`)}))
	return object
}

// What was written while a binding was away, or before it was made, is listed for each policy that refuses: labels as well as ConfigMaps, pools
// and their revisions.
func TestDoctorListsWhatIsOlderThanTheBindings(t *testing.T) {
	const label = guardedPrefix + "pool-of"
	labelled := func(name string, after time.Duration) *corev1.Node {
		node := localNode(name)
		node.Labels[label] = "workers"
		return wroteAt(node, label, after)
	}
	retried := annotated("n3", map[string]string{nodev1.RetryAnnotation: "x"})
	revision := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: rollout.Namespace, Name: "workers-1", Labels: map[string]string{rollout.PoolLabel: "workers"}}}
	objects := func(away string) []runtime.Object {
		p := newFakePool(t, `{"maxPods":110}`, `{"maxPods":250}`)
		all := append(append(policies(t), poolPolicies(t)...), namespaceOf(map[string]string{enforceLabel: restricted}))
		return append(boundAt(all, away, time.Time{}), append(p.objects, labelled("n1", -time.Minute), labelled("n2", time.Minute), wroteAt(retried.DeepCopy(), nodev1.RetryAnnotation, -time.Hour),
			wroteAt(configMapOf("old", someConfig), "data", -time.Hour), wroteAt(configMapOf("new", someConfig), "data", time.Hour), wroteAt(revision.DeepCopy(), "data", -time.Hour))...)
	}
	doctor := func(away string) string {
		p := newFakePool(t, `{"maxPods":110}`, `{"maxPods":250}`)
		b := newPoolBench(t, p)
		for _, object := range objects(away) {
			_ = b.Tracker().Add(object) // revisions are there already
		}
		b.factory.Now = func() time.Time { return noon.Add(2 * time.Hour) }
		_, stdout, _ := b.run(t, "doctor", "--all")
		return stdout
	}
	stdout := doctor("")
	contains(t, stdout, "note    the binding of the admission policy kubelet-supervisor-assignment exists since 2026-11-21T12:00:00Z: without it everybody who may patch nodes or nodes/status can assign",
		"note    written before the admission policy kubelet-supervisor-assignment held: annotation kubelet-supervisor.io/retry of node n3\n",
		"note    written before the admission policy kubelet-supervisor-assignment held: label kubelet-supervisor.io/pool-of of node n1\n",
		"note    the binding of the admission policy kubelet-supervisor-configmaps exists since",
		"note    written before the admission policy kubelet-supervisor-configmaps held: ConfigMap old\n",
		"note    written before the admission policy kubelet-supervisor-pools held: KubeletPool workers\n",
		"note    written before the admission policy kubelet-supervisor-revisions held: ControllerRevision ", "workers-1, ")
	for _, policy := range protecting(t) {
		if !strings.Contains(stdout, "the binding of the admission policy "+policy+" exists since") {
			t.Errorf("the age of %s is not told:\n%s", policy, stdout)
		}
	}
	stdout = doctor(deploy.Policy)
	contains(t, stdout, "WRONG   the admission policy kubelet-supervisor-assignment has lost its binding",
		"note    written while the admission policy kubelet-supervisor-assignment does not hold: annotation kubelet-supervisor.io/retry of node n3\n",
		"note    written while the admission policy kubelet-supervisor-assignment does not hold: label kubelet-supervisor.io/pool-of of node n1, n2\n")
	if strings.Contains(doctor(""), "ConfigMap new") {
		t.Errorf("what is younger than the binding is listed")
	}
}

// protecting are the policies that refuse, by their bindings.
func protecting(t *testing.T) (names []string) {
	t.Helper()
	for _, object := range append(policies(t), poolPolicies(t)...) {
		binding, is := object.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding)
		if is && binding.Spec.ValidationActions[0] == admissionregistrationv1.Deny {
			names = append(names, binding.Name)
		}
	}
	return names
}
