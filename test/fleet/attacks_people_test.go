//go:build e2e

package fleet

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
)

// What the attacks are about. n1 and n2 are assigned, and n1 has spoken; goneNode is the path of a Node that is not there.
const (
	n1, n2, nodes = nodes + "/attacks-1", nodes + "/attacks-2", "/api/v1/nodes"
	configMaps    = "/api/v1/namespaces/kubelet-config/configmaps"
	assignedMap   = configMaps + "/attacks-config"
	systemMap     = "/api/v1/namespaces/kube-system/configmaps/attacks-config"
	revisions     = "/apis/apps/v1/namespaces/kubelet-config/controllerrevisions"
	allPools      = "/apis/kubelet-supervisor.io/v1alpha1/kubeletpools"
	thePool       = allPools + "/attacks-pool"
	policies      = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/" + deploy.Policy
	bindings      = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/" + deploy.Policy
	inConfig      = "/apis/rbac.authorization.k8s.io/v1/namespaces/kubelet-config"
	pipelineUser  = "system:serviceaccount:attacks-ci:pipeline"
)

// attacks has what they are about.
type attacks struct {
	*rights
	admin *rest.Config
}

func newAttacks(t *testing.T) *attacks {
	t.Helper()
	f := shared(t)
	a := &attacks{&rights{t: t, crew: &crew{t: t, f: f, pool: "attacks"}, pool: "attacks-pool"}, f.AdminConfig()}
	for i := 1; i <= 2; i++ {
		a.place(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: a.rights.node(i), Labels: map[string]string{"example.com/pool": "a"},
			Annotations: map[string]string{nodev1.ConfigSourceAnnotation: "kubelet-config/attacks-config/kubelet"}}})
	}
	a.place(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "attacks-ci"}})
	for namespace, account := range map[string]string{"attacks-ci": "pipeline", deploy.Namespace: "attacks", deploy.ControllerNamespace: "attacks"} {
		a.place(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}})
	}
	for _, namespace := range []string{deploy.Namespace, metav1.NamespaceSystem} {
		a.place(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "attacks-config"}, Data: map[string]string{"kubelet": "a"}})
	}
	pool := smallPool(a.pool)
	pool.Spec.Rollout.Paused = true
	a.place(pool)
	if code, answer := a.really(a.admin, http.MethodPost, revisions, "application/json", revisionOf("attacks-unlabelled", "")); code != http.StatusCreated {
		t.Fatal(code, answer)
	}
	t.Cleanup(func() {
		_, _ = f.Kubectl(context.Background(), "delete", "controllerrevision", "-n", deploy.Namespace, "attacks-unlabelled")
	})
	a.host()
	return a
}

// revisionOf is a ControllerRevision, with the label of a pool if one is named.
func revisionOf(name, pool string) string {
	labels := ""
	if pool != "" {
		labels = fmt.Sprintf(`,"labels":{"kubelet-supervisor.io/pool":%q}`, pool)
	}
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":%q%s},"revision":1,"data":{}}`, name, labels)
}

// An attacker has ClusterRoles for the whole cluster, and in namespaces ClusterRoles and Roles.
type attacker struct {
	user     string
	groups   []string
	clusters []string            // ClusterRoles
	in       map[string][]string // ClusterRoles in namespaces
	roles    []string            // Roles in kubelet-config
}

// attackers are those of the review. What a controller manager puts together, edit and admin, is bound in its parts.
func (a *attacks) attackers() map[string]attacker {
	edit := []string{"system:aggregate-to-edit", "system:aggregate-to-view"}
	administer := append([]string{"system:aggregate-to-admin"}, edit...)
	configs := func(roles ...string) map[string][]string { return map[string][]string{deploy.Namespace: roles} }
	return map[string]attacker{
		"node n1":                   {user: "system:node:attacks-1", groups: []string{"system:nodes"}},
		"node that is not there":    {user: "system:node:attacks-9", groups: []string{"system:nodes"}},
		"node without its group":    {user: "system:node:attacks-1", clusters: []string{"attacks-nodes"}},
		"patcher":                   {user: "attacks-patcher", clusters: []string{"attacks-nodes"}},
		"status patcher":            {user: "attacks-status", clusters: []string{"attacks-node-status"}},
		"writer of ConfigMaps":      {user: "attacks-cmer", in: configs("attacks-configmaps")},
		"writer of pools":           {user: "attacks-pooler", clusters: []string{"attacks-pools"}},
		"writer of revisions":       {user: "attacks-reviser", in: configs("attacks-revisions")},
		"pool operator":             {user: "attacks-poolop", clusters: []string{deploy.PoolOperatorRole}},
		"operator":                  {user: "attacks-op", clusters: []string{deploy.OperatorRole, deploy.PoolOperatorRole}, roles: []string{deploy.OperatorRole}},
		"operator of n1":            {user: "attacks-op1", clusters: []string{"attacks-assign-n1", deploy.PoolOperatorRole}, roles: []string{deploy.OperatorRole}},
		"pipeline":                  {user: pipelineUser, groups: []string{"system:serviceaccounts"}, clusters: []string{deploy.PipelineRole}, roles: []string{deploy.OperatorRole}},
		"editor":                    {user: "attacks-editor", in: configs(edit...)},
		"namespace administrator":   {user: "attacks-admin", in: configs(administer...)},
		"administrator who joined":  {user: "attacks-joined", in: configs(administer...), roles: []string{deploy.OperatorRole}},
		"editor of the controller":  {user: "attacks-tenant", in: map[string][]string{deploy.ControllerNamespace: edit}},
		"editor everywhere":         {user: "attacks-everywhere", clusters: edit},
		"administrator everywhere":  {user: "attacks-all", clusters: administer},
		"editor of the pipeline":    {user: "attacks-ci-edit", in: map[string][]string{"attacks-ci": edit}},
		"viewer of the pipeline":    {user: "attacks-ci-view", in: map[string][]string{"attacks-ci": {"system:aggregate-to-view"}}},
		"impersonator of users":     {user: "attacks-impersonator", clusters: []string{"attacks-impersonate"}},
		"viewer":                    {user: "attacks-viewer", clusters: []string{deploy.ViewerRole, deploy.PoolViewerRole}, roles: []string{deploy.ViewerRole}},
		"administrator of the rest": {user: "admin", groups: []string{"system:masters"}},
	}
}

// people binds them all, and waits until the API server knows it.
func (a *attacks) people() map[string]*person {
	a.t.Helper()
	a.clusterRoles()
	people := map[string]*person{}
	for name, who := range a.attackers() {
		for _, role := range who.clusters {
			a.bindTo("clusterrolebinding", "clusterrole", role, who.user, "")
		}
		for namespace, roles := range who.in {
			for _, role := range roles {
				a.bindTo("rolebinding", "clusterrole", role, who.user, namespace)
			}
		}
		for _, role := range who.roles {
			a.bindTo("rolebinding", "role", role, who.user, deploy.Namespace)
		}
		people[name] = a.f.person(a.t, who.user, who.groups...)
	}
	people["controller"] = a.controllerInPod()
	// The API server hears of bindings in their order, so the last of each kind stand for all.
	a.bindTo("clusterrolebinding", "clusterrole", "attacks-impersonate", "attacks-last", "")
	a.bindTo("rolebinding", "clusterrole", "attacks-configmaps", "attacks-last", deploy.Namespace)
	last := a.f.person(a.t, "attacks-last")
	a.await("the roles are known", func() bool {
		everywhere, _ := read(nodes)(a, last)
		inOne, _ := read(configMaps)(a, last)
		return everywhere == http.StatusOK && inOne == http.StatusOK
	})
	return people
}

// bindTo binds a role, and takes the binding away with the test.
func (a *attacks) bindTo(kind, of, role, user, namespace string) {
	a.t.Helper()
	name := "attacks-" + fmt.Sprintf("%x", user+role)
	words := []string{"create", kind, name, "--" + of + "=" + role, "--user=" + user}
	gone := []string{"delete", kind, name, "--ignore-not-found"}
	if namespace != "" {
		words, gone = append(words, "--namespace="+namespace), append(gone, "--namespace="+namespace)
	}
	if _, err := a.f.Kubectl(a.t.Context(), words...); err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _, _ = a.f.Kubectl(context.Background(), gone...) })
}

func (a *attacks) clusterRoles() {
	a.t.Helper()
	all := []string{"get", "list", "create", "update", "patch", "delete", "deletecollection"}
	for name, rule := range map[string]rbacv1.PolicyRule{
		"attacks-nodes":       {APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"create", "update", "patch", "delete"}},
		"attacks-node-status": {APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"update", "patch"}},
		"attacks-configmaps":  {APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: all},
		"attacks-pools":       {APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"kubeletpools", "kubeletpools/status"}, Verbs: all},
		"attacks-revisions":   {APIGroups: []string{"apps"}, Resources: []string{"controllerrevisions"}, Verbs: all},
		"attacks-assign-n1":   {APIGroups: []string{""}, Resources: []string{"nodes"}, ResourceNames: []string{"attacks-1"}, Verbs: []string{"get", "patch", deploy.AssignVerb}},
		"attacks-impersonate": {APIGroups: []string{""}, Resources: []string{"users", "nodes"}, Verbs: []string{"impersonate", "list"}},
	} {
		a.place(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}})
	}
}

// controllerInPod has a token of the controller's account that is bound to a pod of it, as the kubelet of that pod's node gives it.
func (a *attacks) controllerInPod() *person {
	a.t.Helper()
	asked := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: a.replica, ExpirationSeconds: new(int64(time.Hour / time.Second))}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: deploy.ControllerNamespace, Name: deploy.ControllerName}}
	if err := a.f.admin.SubResource("token").Create(a.t.Context(), account, asked); err != nil {
		a.t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(a.admin)
	config.BearerToken = asked.Status.Token
	return &person{nil, config}
}
