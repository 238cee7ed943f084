package plugin

import (
	"fmt"
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

// wroteAt is an object of which a user wrote a field at this time, relative to noon; path is the field in FieldsV1.
func wroteAt[O metav1.Object](object O, after time.Duration, path ...string) O {
	at := metav1.NewTime(noon.Add(after))
	object.SetCreationTimestamp(metav1.NewTime(noon.Add(-10 * time.Hour)))
	object.SetManagedFields(append(object.GetManagedFields(), metav1.ManagedFieldsEntry{Manager: "x", Operation: metav1.ManagedFieldsOperationUpdate, Time: &at,
		FieldsV1: metav1.NewFieldsV1(`{"` + strings.Join(path, `":{"`) + `":{}` + strings.Repeat("}", len(path)))}))
	return object
}

// What was written while a binding was away, or before it was made, is listed for each policy that refuses: labels as well as ConfigMaps, pools
// and their revisions.
func TestDoctorListsWhatIsOlderThanTheBindings(t *testing.T) {
	const label = guardedPrefix + "pool-of"
	labelled := func(name string, after time.Duration) *corev1.Node {
		node := localNode(name)
		node.Labels[label] = "workers"
		return wroteAt(node, after, labelField(label)...)
	}
	retried := annotated("n3", map[string]string{nodev1.RetryAnnotation: "x"})
	revision := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: rollout.Namespace, Name: "workers-1", Labels: map[string]string{rollout.PoolLabel: "workers"}}}
	objects := func(away string) []runtime.Object {
		p := newFakePool(t, `{"maxPods":110}`, `{"maxPods":250}`)
		all := append(append(policies(t), poolPolicies(t)...), namespaceOf(map[string]string{enforceLabel: restricted}))
		return append(boundAt(all, away, time.Time{}), append(p.objects, labelled("n1", -time.Minute), labelled("n2", time.Minute), wroteAt(retried.DeepCopy(), -time.Hour, annotationField(nodev1.RetryAnnotation)...),
			wroteAt(configMapOf("old", someConfig), -time.Hour, "f:data"), wroteAt(configMapOf("new", someConfig), time.Hour, "f:data"), wroteAt(revision.DeepCopy(), -time.Hour, "f:data"))...)
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
	contains(t, stdout, "note    no field that the admission policy kubelet-supervisor-assignment has was written since 2026-11-21T12:00:00Z (an exception that was added and removed leaves no trace): without it everybody who may patch nodes or nodes/status can assign",
		"note    written before the admission policy kubelet-supervisor-assignment held: annotation kubelet-supervisor.io/retry of node n3 (2026-11-21T11:00:00Z)\n",
		"note    written before the admission policy kubelet-supervisor-assignment held: label kubelet-supervisor.io/pool-of of node n1 (2026-11-21T11:59:00Z)\n",
		"note    no field that the admission policy kubelet-supervisor-configmaps has was written since",
		"note    written before the admission policy kubelet-supervisor-configmaps held: ConfigMap old (2026-11-21T11:00:00Z)\n",
		"note    written before the admission policy kubelet-supervisor-pools held: KubeletPool workers (",
		"note    written before the admission policy kubelet-supervisor-revisions held: ControllerRevision ", "workers-1 (2026-11-21T11:00:00Z), ")
	for _, policy := range protecting(t) {
		if !strings.Contains(stdout, "no field that the admission policy "+policy+" has was written since") {
			t.Errorf("the age of %s is not told:\n%s", policy, stdout)
		}
	}
	stdout = doctor(deploy.Policy)
	contains(t, stdout, "WRONG   the admission policy kubelet-supervisor-assignment has lost its binding",
		"note    written while the admission policy kubelet-supervisor-assignment does not hold: annotation kubelet-supervisor.io/retry of node n3 (2026-11-21T11:00:00Z)\n",
		"note    written while the admission policy kubelet-supervisor-assignment does not hold: label kubelet-supervisor.io/pool-of of node n2 (2026-11-21T12:01:00Z), n1 (2026-11-21T11:59:00Z)\n")
	if strings.Contains(doctor(""), "ConfigMap new") {
		t.Errorf("what is younger than the binding is listed")
	}
}

// A policy or binding that was changed and put back keeps the time at which it was made: managedFields say when it was put back.
func TestDoctorKnowsSinceWhenAPolicyIsAsItIs(t *testing.T) {
	const since = "no field that the admission policy kubelet-supervisor-assignment has was written since "
	for name, row := range map[string]struct {
		change func(policy *admissionregistrationv1.ValidatingAdmissionPolicy, binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding)
		want   string
	}{
		"never changed": {func(*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
		}, since + "2026-11-21T12:00:00Z"},
		"a binding that was put back": {func(_ *admissionregistrationv1.ValidatingAdmissionPolicy, binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
			wroteAt(binding, time.Hour, "f:spec", "f:validationActions")
		}, since + "2026-11-21T13:00:00Z"},
		"a policy that was put back": {func(policy *admissionregistrationv1.ValidatingAdmissionPolicy, _ *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
			wroteAt(policy, time.Hour, "f:spec", "f:validations")
		}, since + "2026-11-21T13:00:00Z"},
		"a label of the binding": {func(_ *admissionregistrationv1.ValidatingAdmissionPolicy, binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
			wroteAt(binding, time.Hour, "f:metadata", "f:labels", "f:spec")
			binding.CreationTimestamp = metav1.NewTime(noon)
		}, since + "2026-11-21T12:00:00Z"},
		"a binding that only audits": {func(_ *admissionregistrationv1.ValidatingAdmissionPolicy, binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
			binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit}
		}, "written while the admission policy kubelet-supervisor-assignment does not hold: annotation kubelet-supervisor.io/retry of node n1 (2026-11-21T12:30:00Z)\n"},
	} {
		objects := boundAt(policies(t), "", time.Time{})
		var policy *admissionregistrationv1.ValidatingAdmissionPolicy
		var binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding
		for _, object := range objects {
			switch o := object.(type) {
			case *admissionregistrationv1.ValidatingAdmissionPolicy:
				if o.Name == deploy.Policy {
					policy = o
				}
			case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
				if o.Name == deploy.Policy {
					binding = o
				}
			}
		}
		row.change(policy, binding)
		retried := wroteAt(annotated("n1", map[string]string{nodev1.RetryAnnotation: "x"}), 30*time.Minute, annotationField(nodev1.RetryAnnotation)...)
		b := newBench(t, append(objects, namespaceOf(map[string]string{enforceLabel: restricted}), retried)...)
		b.factory.Now = func() time.Time { return noon } // this machine's clock is behind that of the API server
		_, stdout, _ := b.run(t, "doctor", "--all")
		if !strings.Contains(stdout, row.want) {
			t.Errorf("%s: no %q:\n%s", name, row.want, stdout)
		}
		if meanwhile := strings.Contains(stdout, "of node n1 (2026-11-21T12:30:00Z)"); meanwhile == strings.Contains(stdout, since+"2026-11-21T12:00:00Z") {
			t.Errorf("%s: what was written at half past twelve is listed: %t\n%s", name, meanwhile, stdout)
		}
	}
}

// What was written last is named, and what is older is counted.
func TestTheNewestIsNamedFirst(t *testing.T) {
	found := guarded{}
	for i := range 37 {
		object := configMapOf(fmt.Sprintf("a%02d", i), someConfig)
		found.add("ConfigMap", wroteAt(object, time.Duration(i-60)*time.Minute, "f:data"), configFields...)
	}
	lines := found.before(noon)
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "ConfigMap a36 (2026-11-21T11:36:00Z), a35 (") || !strings.HasSuffix(lines[0], ", a07 (2026-11-21T11:07:00Z) and 7 older") {
		t.Errorf("%q", lines)
	}
}

// Only the field itself counts: a label or a key of the same name is another.
func TestWrittenAt(t *testing.T) {
	for name, row := range map[string]struct {
		wrote  fieldPath
		fields []fieldPath
		is     bool
	}{
		"data":                         {fieldPath{"f:data", "f:kubelet"}, configFields, true},
		"binaryData":                   {fieldPath{"f:binaryData"}, configFields, true},
		"immutable":                    {fieldPath{"f:immutable"}, configFields, true},
		"a label data":                 {labelField("data"), configFields, false},
		"an annotation data":           {annotationField("data"), configFields, false},
		"a key f:immutable":            {fieldPath{"f:metadata", "f:annotations", "f:f:immutable"}, configFields, false},
		"the label":                    {labelField("x"), []fieldPath{labelField("x")}, true},
		"an annotation of its name":    {annotationField("x"), []fieldPath{labelField("x")}, false},
		"a status beside a spec":       {fieldPath{"f:status"}, []fieldPath{specField}, false},
		"a spec in the status":         {fieldPath{"f:status", "f:spec"}, []fieldPath{specField}, false},
		"all labels, and none of them": {fieldPath{"f:metadata", "f:labels"}, []fieldPath{labelField("x")}, false},
	} {
		at := writtenAt(wroteAt(configMapOf("a", someConfig), time.Hour, row.wrote...), row.fields...)
		if is := at.Equal(noon.Add(time.Hour)); is != row.is {
			t.Errorf("%s: written at %s", name, at)
		}
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
