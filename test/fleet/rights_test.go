//go:build e2e

package fleet

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/packaging"
)

// Each identity may do what it is for, and nothing else of this. Every request is a dry run, so admission answers as it would.
func TestRights(t *testing.T) {
	t.Parallel()
	f := shared(t)
	c := newCrew(t, "rights", 2, nil)
	f.grant(t)
	pool := smallPool("rights-pool")
	pool.Spec.Rollout.Paused = true
	if err := f.admin.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	rendered := func() client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: packaging.Namespace, Name: "pool-rights-0123456789"}}
	}
	labelled := func() client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: packaging.Namespace, Name: "layer", Labels: map[string]string{"kubelet-supervisor.io/pool": "rights"}}}
	}
	revision := func() client.Object {
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: packaging.Namespace, Name: "rights-0123456789",
			Labels: map[string]string{"kubelet-supervisor.io/pool": "rights"}}, Revision: 1,
			Data: runtime.RawExtension{Raw: []byte("{}")}}
	}
	patch := func(object client.Object, body string) func(client.Client) error {
		return func(as client.Client) error {
			return as.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(body)), client.DryRunAll)
		}
	}
	status := func(as client.Client) error {
		return as.Status().Patch(t.Context(), &v1alpha1.KubeletPool{ObjectMeta: metav1.ObjectMeta{Name: pool.Name}},
			client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":77}}`)), client.DryRunAll)
	}
	create := func(object func() client.Object) func(client.Client) error {
		return func(as client.Client) error { return as.Create(t.Context(), object(), client.DryRunAll) }
	}
	spec := patch(&v1alpha1.KubeletPool{ObjectMeta: metav1.ObjectMeta{Name: pool.Name}}, `{"spec":{"priority":7}}`)
	label := patch(&v1alpha1.KubeletPool{ObjectMeta: metav1.ObjectMeta{Name: pool.Name}}, `{"metadata":{"labels":{"a":"b"}}}`)
	mark := patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.pool + "-1"}}, `{"metadata":{"annotations":{"kubelet-supervisor.io/pool-assigned":"{\"pool\":\"p\"}"}}}`)
	makePool := create(func() client.Object { return smallPool("rights-more") })
	dropPool := func(as client.Client) error {
		return as.Delete(t.Context(), &v1alpha1.KubeletPool{ObjectMeta: metav1.ObjectMeta{Name: pool.Name}}, client.DryRunAll)
	}
	getPool := func(as client.Client) error {
		return as.Get(t.Context(), types.NamespacedName{Name: pool.Name}, &v1alpha1.KubeletPool{})
	}
	c.pod("web", c.pool+"-2", nil)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: c.pool + "-web"}}
	evict := func(as client.Client) error {
		return as.SubResource("eviction").Create(t.Context(), pod, &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}})
	}
	remove := func(as client.Client) error { return as.Delete(t.Context(), pod, client.DryRunAll) }
	// Of these there are some, which nobody names.
	kept := func(object client.Object) client.Object {
		object.SetLabels(map[string]string{"kubelet-supervisor.io/pool": "rights"})
		config, err := f.IdentityConfig(controllerUser, controllerGroups...)
		if err != nil {
			t.Fatal(err)
		}
		as, err := newClient(config)
		if err != nil {
			t.Fatal(err)
		}
		c.make(as, object)
		t.Cleanup(func() { _ = as.Delete(context.Background(), object) })
		return object
	}
	oldMap := kept(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: packaging.Namespace, Name: "pool-rights-abcdef0123"}})
	oldRevision := kept(&appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: packaging.Namespace, Name: "rights-abcdef0123"}, Revision: 1,
		Data: runtime.RawExtension{Raw: []byte("{}")}})
	drop := func(object client.Object) func(client.Client) error {
		return func(as client.Client) error {
			return as.Delete(t.Context(), object.DeepCopyObject().(client.Object), client.DryRunAll)
		}
	}
	actions := []struct {
		what string
		do   func(client.Client) error
		may  string // of the people below, in their order
	}{
		//                             controller operator writer viewer node admin
		{"read a pool", getPool, "yyyyny"},
		{"make a pool", makePool, "nynnny"},
		{"change its spec", spec, "nynnny"},
		{"label it", label, "nyynny"},
		{"delete it", dropPool, "nynnny"},
		{"write its status", status, "ynnnnn"},
		{"make a rendered ConfigMap", create(rendered), "ynnnnn"},
		{"make one with the label", create(labelled), "ynnnnn"},
		{"make a revision", create(revision), "ynnnnn"},
		{"change a rendered ConfigMap", patch(oldMap, `{"data":{"kubelet":"maxPods: 1"}}`), "nnnnnn"},
		{"relabel one", patch(oldMap, `{"metadata":{"labels":{"kubelet-supervisor.io/pool":null}}}`), "nnnnnn"},
		{"delete one", drop(oldMap), "yynnny"},
		{"delete a revision", drop(oldRevision), "ynnnny"},
		{"mark a Node", mark, "yynnny"},
		{"evict a pod", evict, "ynnnny"},
		{"delete a pod", remove, "nnnnny"},
	}
	for column, who := range f.people(t, c) {
		for _, action := range actions {
			err := action.do(who.client)
			if err != nil && !apierrors.IsForbidden(err) {
				t.Errorf("%s: %s: %v", who.name, action.what, err)
				continue
			}
			if may := action.may[column] == 'y'; may != (err == nil) {
				t.Errorf("%s may %s: %v, and is told: %v", who.name, action.what, may, err)
			}
		}
	}
}

type person struct {
	name   string
	client client.Client
}

// grant binds an operator, one who may write pools and has no verb on nodes, and a viewer.
func (f *fleet) grant(t *testing.T) {
	t.Helper()
	for binding, of := range map[string][2]string{
		"pool-operator-1": {"kubelet-supervisor-operator", "olga"}, "pool-operator-2": {"kubelet-supervisor-pool-operator", "olga"},
		"pool-writer": {"kubelet-supervisor-pool-operator", "walter"}, "pool-viewer": {"kubelet-supervisor-pool-viewer", "vera"},
	} {
		if _, err := f.Kubectl(t.Context(), "create", "clusterrolebinding", binding, "--clusterrole="+of[0], "--user="+of[1]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Kubectl(t.Context(), "create", "rolebinding", "olga", "-n", packaging.Namespace, "--role=kubelet-supervisor-operator", "--user=olga"); err != nil {
		t.Fatal(err)
	}
}

func (f *fleet) people(t *testing.T, c *crew) (all []person) {
	t.Helper()
	for _, who := range []struct {
		name, user string
		groups     []string
	}{
		{"the controller", controllerUser, controllerGroups}, {"an operator", "olga", nil}, {"who may write pools alone", "walter", nil},
		{"a viewer", "vera", nil}, {"a node", fmt.Sprintf("system:node:%s-1", c.pool), []string{"system:nodes"}}, {"an administrator", "admin", []string{"system:masters"}},
	} {
		config, err := f.IdentityConfig(who.user, who.groups...)
		if err != nil {
			t.Fatal(err)
		}
		as, err := newClient(config)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, person{who.name, as})
	}
	return all
}
