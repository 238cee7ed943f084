package plugin

import (
	"fmt"
	"testing"
	"testing/synctest"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
)

// manyNodes are nodes of the pool workers.
func manyNodes(count int) (objects []runtime.Object) {
	for i := range count {
		objects = append(objects, localNode(fmt.Sprintf("n%03d", i)))
	}
	return objects
}

// Many nodes are granted by one write, and cost the same number of requests each, however many they are.
func TestAssignIsLinear(t *testing.T) {
	perNode := map[int]int{}
	for _, count := range []int{60, 120} {
		synctest.Test(t, func(t *testing.T) {
			config := configMapOf("workers", someConfig)
			config.Namespace = "kube-system"
			b := newBench(t, append(manyNodes(count), config)...)
			b.answers(t, runsIt(config))
			b.knowsGrants()
			b.do(t, "assign", "-l", "pool=workers", "--config=kube-system/workers", "--yes", "--wait=false", "--parallel=20")
			requests := map[string]int{}
			for _, action := range b.Actions() {
				requests[action.GetVerb()+" "+action.GetResource().Resource]++
			}
			t.Log(count, requests)
			if writes := requests["create rolebindings"] + requests["update rolebindings"]; writes > 2 {
				t.Errorf("%d nodes: %d writes of RoleBindings", count, writes)
			}
			if got := requests["patch nodes"]; got != count+1 { // and one dry run: does the API server keep the field?
				t.Errorf("%d nodes: %d patches", count, got)
			}
			perNode[count] = len(b.Actions()) / count
			bindings, err := b.RbacV1().RoleBindings("kube-system").List(t.Context(), metav1.ListOptions{})
			if err != nil || len(bindings.Items) != 1 || len(bindings.Items[0].Subjects) != count {
				t.Errorf("%d RoleBindings, %v", len(bindings.Items), err)
			}

			b.ClearActions()
			b.do(t, "reset", "-l", "pool=workers", "--yes", "--wait=false", "--parallel=20")
			if got := len(b.Actions()); got > count+8 {
				t.Errorf("a reset of %d nodes: %d requests", count, got)
			}
			if bindings, err = b.RbacV1().RoleBindings("kube-system").List(t.Context(), metav1.ListOptions{}); err != nil || len(bindings.Items) != 0 {
				t.Errorf("left are %d RoleBindings, %v", len(bindings.Items), err)
			}
		})
	}
	if perNode[120] > perNode[60] || perNode[120] > 4 {
		t.Errorf("requests for each node: %v", perNode)
	}
}

// knowsGrants answers whether a node may read a ConfigMap by the grants that there are.
func (b *bench) knowsGrants() {
	b.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		list, err := b.Tracker().List(rolebindings, rolebindingKind, review.Spec.ResourceAttributes.Namespace)
		if err != nil {
			return true, nil, err
		}
		review.Status.Allowed = hasSubject(list, review.Spec.User)
		return true, review, nil
	})
}

// A grant that prune took back while nodes were still being assigned is made again, for the node that needs it.
func TestGrantThatWasTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := configMapOf("workers", someConfig)
		config.Namespace = "kube-system"
		b := newBench(t, append(manyNodes(3), config)...)
		b.answers(t, runsIt(config))
		b.knowsGrants()
		patched := 0
		b.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if patched++; patched == 3 { // the dry run, and two nodes
				_ = b.Tracker().Delete(rolebindings, "kube-system", grantName("workers"))
			}
			return false, nil, nil
		})
		b.do(t, "assign", "-l", "pool=workers", "--config=kube-system/workers", "--yes", "--wait=false")
		bindings, err := b.RbacV1().RoleBindings("kube-system").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(bindings.Items) != 1 || !hasSubject(bindings, nodeUser("n002")) {
			t.Errorf("%+v, %v", bindings.Items, err)
		}
	})
}

// A Role or RoleBinding of that name that somebody has prepared gives a node no more than to read the ConfigMap: assign refuses.
func TestGrantThatSomebodyPrepared(t *testing.T) {
	name := grantName("workers")
	meta := metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: map[string]string{document.PurposeLabel: document.PurposeGrant}}
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"workers"}, Verbs: []string{"get", "list", "watch"}}
	wide := rule
	wide.ResourceNames = nil
	secrets := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}}
	binding := func(kind, role string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}}
	}
	for _, test := range []struct {
		name    string
		there   []runtime.Object
		refusal string
	}{
		{"the same", []runtime.Object{&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}, binding("Role", name)}, ""},
		{"a rule more", []runtime.Object{&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule, secrets}}},
			"Role kube-system/kubelet-supervisor:workers exists and has other rules than reading this ConfigMap; find out who made it, then delete it: kubectl delete role -n kube-system kubelet-supervisor:workers"},
		{"all ConfigMaps", []runtime.Object{&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{wide}}}, "has other rules"},
		{"another Role", []runtime.Object{binding("Role", "secrets")}, "RoleBinding kube-system/kubelet-supervisor:workers exists and is for Role secrets"},
		{"a ClusterRole of that name", []runtime.Object{binding("ClusterRole", name)}, "is for ClusterRole kubelet-supervisor:workers; find out who made it, then delete it: kubectl delete rolebinding -n kube-system"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := configMapOf("workers", someConfig)
				config.Namespace = "kube-system"
				b := newBench(t, append(test.there, localNode("n000"), config)...)
				b.answers(t, runsIt(config))
				b.knowsGrants()
				code, _, stderr := b.run(t, "assign", "n000", "--config=kube-system/workers", "--yes", "--wait=false")
				bindings, err := b.RbacV1().RoleBindings("kube-system").List(t.Context(), metav1.ListOptions{})
				if err != nil || hasSubject(bindings, nodeUser("n000")) != (test.refusal == "") || (code == 0) != (test.refusal == "") {
					t.Errorf("exit code %d, %+v, %v", code, bindings.Items, err)
				}
				contains(t, stderr, test.refusal)
			})
		})
	}
}

var (
	rolebindings    = rbacv1.SchemeGroupVersion.WithResource("rolebindings")
	rolebindingKind = rbacv1.SchemeGroupVersion.WithKind("RoleBinding")
)

func hasSubject(list runtime.Object, user string) bool {
	for _, binding := range list.(*rbacv1.RoleBindingList).Items {
		for _, subject := range binding.Subjects {
			if subject.Name == user {
				return true
			}
		}
	}
	return false
}
