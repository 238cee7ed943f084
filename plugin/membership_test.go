package plugin

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// strangers are nodes in and out of the hands of the pool.
func strangers(p *fakePool) []*corev1.Node {
	byHand, released := p.member("n2", 1, "Active"), p.member("n3", 1, "Active")
	byHand.Annotations[nodev1.ConfigSourceAnnotation] = "kubelet-config/own/kubelet"
	released.Labels[rollout.PoolLabel] = view.NoPool
	return []*corev1.Node{p.member("n1", 1, "Active"), byHand, released, localNode("n4")}
}

// The column is there where somebody is in a pool.
func TestStatusTellsPools(t *testing.T) {
	p := newFakePool(t, few, many)
	b := newPoolBench(t, p, strangers(p)...)
	stdout, _ := b.do(t, "status")
	golden(t, "status-pools.txt", stdout)
	stdout, _ = b.do(t, "status", "n1", "-o", "wide")
	contains(t, stdout, "KUBELET", "POOL", "MESSAGE", "v1.36.3", "workers", "Active")
	if stdout, _ = b.do(t, "status", "n4"); strings.Contains(stdout, "POOL") {
		t.Errorf("nobody is in a pool:\n%s", stdout)
	}
	stdout, _ = b.do(t, "status", "-o", "jsonpath={range .items[*]}{.pool.name}:{.pool.member} {end}")
	if stdout != "workers:true workers:false workers:false : " {
		t.Errorf("for machines it says %q", stdout)
	}
	stdout, _ = b.do(t, "describe", "n2")
	contains(t, stdout, "Pool:", "workers (by hand)")
}

// A change by hand says of which pool it takes a node.
func TestChangesByHandTakeOutOfThePool(t *testing.T) {
	const words = "out of pool workers; kubectl kubelet rollout adopt"
	for name, row := range map[string]struct {
		arguments []string
		change    func(*bench, *fakePool)
		want      string
	}{
		"assign":                    {[]string{"assign", "n1", "--config=own"}, nil, "This takes n1 " + words + " n1 gives it back."},
		"reset":                     {[]string{"reset", "n1"}, nil, "This takes n1 " + words + " n1 gives it back."},
		"assign, before its turn":   {[]string{"assign", "n1", "n4", "--config=own"}, nil, "This takes n1, n4 " + words + " n1 n4 gives them back."},
		"reset of what has nothing": {[]string{"reset", "n4"}, nil, ""},
		"one out of hand":           {[]string{"assign", "n2", "--config=own"}, nil, ""},
		"one that was released":     {[]string{"assign", "n3", "--config=own"}, nil, ""},
		"a pool that takes nobody":  {[]string{"assign", "n4", "--config=own"}, func(_ *bench, p *fakePool) { p.Spec.Adoption = v1alpha1.AdoptNever }, ""},
		"who may not list pools": {[]string{"reset", "n1"}, func(b *bench, _ *fakePool) { b.forbidPools() },
			"This takes n1 " + words + " n1 gives it back."},
	} {
		t.Run(name, func(t *testing.T) {
			p := newFakePool(t, few, many)
			b := newPoolBench(t, p, strangers(p)...)
			if err := b.Tracker().Add(configMapOf("own", someConfig)); err != nil {
				t.Fatal(err)
			}
			if row.change != nil {
				row.change(b, p)
				b.set(t, p)
			}
			code, _, stderr := b.run(t, row.arguments...) // nobody answers
			if code != 1 || row.want == "" && strings.Contains(stderr, "out of pool") {
				t.Errorf("exit code %d\n%s", code, stderr)
			}
			contains(t, stderr, row.want, "? [y/N]", "nothing was changed")
		})
	}
}

// forbidPools refuses to list them. By its discovery the API server knows the kind.
func (b *bench) forbidPools() {
	b.pools.PrependReactor("list", "kubeletpools", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.GroupName, Resource: "kubeletpools"}, "", errors.New("no"))
	})
	b.Resources = append(b.Resources, &metav1.APIResourceList{GroupVersion: v1alpha1.GroupVersion().String()})
}

// Configurations that pools have layers from, and those that the kept revisions were made of, stay.
func TestPruneKeepsWhatPoolsName(t *testing.T) {
	now, before, unused := pushedOf("layer-of-now", "maxPods: 1\n"), pushedOf("layer-of-before", "maxPods: 1\n"), pushedOf("unused", "maxPods: 1\n")
	p := newFakePool(t, few, many)
	p.Spec.Layers = append(p.Spec.Layers, v1alpha1.Layer{Name: "shared", ConfigMap: &v1alpha1.ConfigMapKey{Name: now.Name}})
	old := p.kept[0]
	old.Number, old.Hash, old.Layers = 7, "0123456789", []rollout.RevisionLayer{{Name: "x", From: "kubelet-config/" + before.Name, Patch: []byte(`{}`)}}
	p.keep(t, old, noon)
	b := newPoolBench(t, p, strangers(p)...)
	for _, object := range []*corev1.ConfigMap{now, before, unused} {
		if err := b.Tracker().Add(object); err != nil {
			t.Fatal(err)
		}
	}
	stdout, _ := b.do(t, "prune", "--dry-run=client")
	if stdout != "configmap/"+unused.Name+" pruned (dry run)\n" {
		t.Errorf("it would remove\n%s", stdout)
	}
	b.forbidPools()
	code, stdout, stderr := b.run(t, "prune", "--yes")
	if code != 1 || stdout != "" {
		t.Errorf("exit code %d, removed:\n%s", code, stdout)
	}
	contains(t, stderr, "listing pools: ", "which configurations they have layers from is not known")
	b.Resources = nil // there is no such kind
	if stdout, _ := b.do(t, "prune", "--dry-run=client"); strings.Count(stdout, "\n") != 3 {
		t.Errorf("without pools it would remove\n%s", stdout)
	}
}

func TestDoctorAndPools(t *testing.T) {
	lease := func(ago time.Duration) runtime.Object {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: deploy.ControllerNamespace, Name: deploy.ControllerName},
			Spec: coordinationv1.LeaseSpec{RenewTime: new(metav1.NewMicroTime(noon.Add(-ago)))}}
	}
	for name, row := range map[string]struct {
		node    int
		change  func(*fakePool, *corev1.Node)
		objects []runtime.Object
		code    int
		want    []string
	}{
		"a member": {0, nil, append(poolPolicies(t), lease(time.Second)), 0, []string{"ok      the node is in pool workers", "ok      kubelet-supervisor-controller runs: its Lease was renewed 1s ago",
			"ok      the admission policy kubelet-supervisor-pools limits who may write pools", "policy kubelet-supervisor-pool-status", "policy kubelet-supervisor-revisions"}},
		"selected by a label of anybody": {0, nil, []runtime.Object{lease(0)}, 0, []string{"note    pool workers selects by the label pool, which everybody writes who may patch nodes or nodes/status"}},
		"by hand":                        {1, nil, []runtime.Object{lease(0)}, 0, []string{"note    pool workers selects the node, and leaves it alone: a person has assigned or reset it; kubectl kubelet rollout adopt n2"}},
		"released":                       {2, nil, []runtime.Object{lease(0)}, 0, []string{"note    the node is in no pool, by its label kubelet-supervisor.io/pool=none"}},
		"outside": {3, func(_ *fakePool, n *corev1.Node) { n.Labels = nil }, []runtime.Object{lease(0)}, 0,
			[]string{"ok      no pool selects the node", "note    the admission policy kubelet-supervisor-pools is not installed", "kubectl kubelet install --controller"}},
		"no controller": {0, nil, nil, 1, []string{"WRONG   no kubelet-supervisor-controller has run yet"}},
		"a dead one":    {0, nil, []runtime.Object{lease(time.Hour)}, 1, []string{"WRONG   no kubelet-supervisor-controller leads: its Lease was renewed last 60m ago"}},
		"a pool not seen": {0, func(p *fakePool, _ *corev1.Node) { p.Generation++ }, []runtime.Object{lease(0)}, 0,
			[]string{"note    the controller has not seen pool workers as it is now"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newFakePool(t, few, many)
				nodes := strangers(p)
				if row.change != nil {
					row.change(p, nodes[row.node])
				}
				b := newPoolBench(t, p, nodes...)
				for _, object := range append(row.objects, configMapOf(strings.Split(p.kept[0].SourceFor(nil), "/")[1], someConfig), configMapOf("own", someConfig)) {
					if err := b.Tracker().Add(object); err != nil {
						t.Fatal(err)
					}
				}
				b.answersReview(func(string, string) bool { return true })
				b.enforces()
				b.configz["maxPods"] = int64(42)
				_, stdout, stderr := b.run(t, "doctor", nodes[row.node].Name)
				wrong := strings.Count(stdout, "WRONG") - strings.Count(stdout, "WRONG   the supervisor has not answered") // of those by hand
				if (wrong > 0) != (row.code > 0) {
					t.Errorf("%d things are wrong\n%s%s", wrong, stdout, stderr)
				}
				contains(t, stdout, row.want...)
			})
		})
	}
}
