//go:build e2e

package fleet

import (
	"context"
	"os"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/pages"
)

const securityPage = "docs/why/security.md"

// The table of docs/why/security.md about pools is true: who it names tries what it names, and is let or refused by what it says. Almost every
// request is a dry run, and admission answers as it would.
func TestRights(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../" + securityPage)
	if err != nil {
		t.Fatal(err)
	}
	header, rows, found := pages.Table(string(text), "| to | ")
	if !found {
		t.Fatalf("%s has no table of rights", securityPage)
	}
	r := newRights(t)
	acts, people := r.acts(), r.people()
	r.render(people["controller"])
	r.budgetStatus(people)
	for _, row := range rows {
		act, known := acts[row[0]]
		if !known {
			t.Errorf("the table has the act %q, which this test does not know", row[0])
			continue
		}
		delete(acts, row[0])
		for column, want := range row[1:] {
			who, known := people[header[column+1]]
			if !known {
				t.Fatalf("the table has %q, whom this test does not know", header[column+1])
			}
			if err := act(who); cluster.RefusedBy(err) != want {
				t.Errorf("%s: to %s: the page says %s, and the answer is %s: %v", header[column+1], row[0], want, cluster.RefusedBy(err), err)
			}
		}
	}
	for act := range acts {
		t.Errorf("the table does not have the act %q", act)
	}
	for who := range people {
		if !slices.Contains(header, who) {
			t.Errorf("the table does not have %q", who)
		}
	}
}

// rights has what the requests are about: a pool, and two nodes.
type rights struct {
	t *testing.T
	*crew
	pool    string
	replica *authenticationv1.BoundObjectReference // a pod of the controller
}

func newRights(t *testing.T) *rights {
	t.Helper()
	r := &rights{t: t, crew: newCrew(t, "rights", 2, nil), pool: "rights-pool"}
	pool := smallPool(r.pool)
	pool.Spec.Rollout.Paused = true
	r.place(pool)
	r.crew.pod("web", r.node(2), nil)
	r.host()
	return r
}

// node is one of the two.
func (r *rights) node(i int) string { return r.crew.pool + "-" + string(rune('0'+i)) }

// place makes an object, which goes with the test.
func (r *rights) place(object client.Object) {
	r.t.Helper()
	if err := r.f.admin.Create(r.t.Context(), object); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = r.f.admin.Delete(context.Background(), object) })
}

// person makes requests.
type person struct {
	client.Client
	config *rest.Config
}

// people are the columns.
func (r *rights) people() map[string]*person {
	r.t.Helper()
	r.clusterRole("rights-patch-nodes", "nodes")
	r.clusterRole("rights-patch-status", "nodes/status", "kubeletpools/status", "kubeletrolloutbudgets/status")
	people := map[string]*person{"controller": r.replicaPerson()}
	for name, who := range map[string]struct {
		user     string
		groups   []string
		clusters []string // ClusterRoles that are bound to him
		role     string   // one in kubelet-config
	}{
		"controller outside": {controllerUser, nil, nil, ""},
		"operator":           {"olga", nil, []string{deploy.OperatorRole, deploy.PoolOperatorRole}, deploy.OperatorRole},
		"pool writer":        {"walter", nil, []string{deploy.PoolOperatorRole}, ""},
		"viewer":             {"vera", nil, []string{deploy.PoolViewerRole}, ""},
		"patcher":            {"paula", nil, []string{"rights-patch-nodes"}, ""},
		"status patcher":     {"stan", nil, []string{"rights-patch-status"}, ""},
		"node n1":            {"system:node:" + r.node(1), []string{"system:nodes"}, nil, ""},
		"host of a replica":  {"system:node:" + r.node(2), []string{"system:nodes"}, nil, ""},
		// What the ClusterRole edit consists of: that one is put together by a controller manager, of which there is none here.
		"editor everywhere": {"eddie", nil, []string{"system:aggregate-to-edit", "system:aggregate-to-view"}, ""},
		"administrator":     {"admin", []string{"system:masters"}, nil, ""},
	} {
		for _, role := range who.clusters {
			r.bind("clusterrolebinding", "clusterrole", role, who.user)
		}
		if who.role != "" {
			r.bind("rolebinding", "role", who.role, who.user, "--namespace="+deploy.Namespace)
		}
		people[name] = r.f.person(r.t, who.user, who.groups...)
	}
	return people
}

// clusterRole lets patch these.
func (r *rights) clusterRole(name string, resources ...string) {
	r.t.Helper()
	r.place(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"", v1alpha1.GroupName}, Resources: resources, Verbs: []string{"patch"}}}})
}

func (r *rights) bind(kind, of, role, user string, more ...string) {
	r.t.Helper()
	words := append([]string{"create", kind, "rights-" + user + "-" + role, "--" + of + "=" + role, "--user=" + user}, more...)
	if _, err := r.f.Kubectl(r.t.Context(), words...); err != nil {
		r.t.Fatal(err)
	}
}

func (f *fleet) person(t *testing.T, user string, groups ...string) *person {
	t.Helper()
	config, err := f.IdentityConfig(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	as, err := newClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return &person{as, config}
}
