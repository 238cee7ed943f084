//go:build linux

package rollout

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// mostPods is how many ended pods a cluster keeps before it collects them (kube-controller-manager, --terminated-pod-gc-threshold).
const mostPods = 12_500

// clouds are so many nodes with the labels that clouds give them, of which every eighth has a GPU.
func (tab *table) clouds(n int, make func(name string) Node) []Node {
	nodes := tab.many(n, "ip-10-0-128-", make)
	for i := range nodes {
		l := map[string]string{"pool": "a", "kubernetes.io/hostname": nodes[i].Name, "topology.kubernetes.io/zone": fmt.Sprint("zone-", i%3)}
		for j := range 12 {
			l[fmt.Sprintf("cloud.example.com/label-%02d", j)] = fmt.Sprint("value-", i%(j+1))
		}
		if i%8 == 0 {
			l["gpu"] = "true"
		}
		nodes[i].Labels, nodes[i].UID = l, types.UID(fmt.Sprintf("%08d-5d1c-4f5e-9d53-7a3c1f0e2b11", i*7919%100_003))
		nodes[i].ResourceVersion, nodes[i].BootID = fmt.Sprint(1_000_000+i), fmt.Sprint("boot-", i)
	}
	return nodes
}

// layered gives the pool layers that only some nodes get, and so makes another T.
func (tab *table) layered() {
	only := func(layer v1alpha1.Layer, label, value string) v1alpha1.Layer {
		layer.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{label: value}}
		return layer
	}
	tab.pool.Spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":250}`), only(inline("gpu", `{"maxPods":60}`), "gpu", "true"),
		only(inline("zone", `{"podsPerCore":9}`), "topology.kubernetes.io/zone", "zone-1"), only(inline("nobody", `{"maxPods":9}`), "nothing", "here")}
	tab.t, tab.retry = tab.adopt()
}

// run lets those of the nodes run their variant of T that shall.
func (tab *table) run(nodes []Node, shall func(i int) bool) {
	of := newVariants(&tab.kept[len(tab.kept)-1])
	for i := range nodes {
		if shall(i) {
			v, _ := of.variantFor(labels.Set(nodes[i].Labels))
			tab.has(&nodes[i], v.source, tab.retry, nodev1.ReasonActive)
		}
		tab.remembers(nodes[i], nil)
	}
	tab.world.Nodes = nodes
}

// halfway is a fleet in the last wave: half of it has proven T, half has S.
func (tab *table) halfway(n int) {
	tab.layered()
	tab.run(tab.clouds(n, tab.old), func(i int) bool { return i%2 == 0 })
	tab.pool.Status.Wave = &v1alpha1.WaveStatus{Number: 2}
	tab.world.Pools = []Pool{ReadPool(tab.pool, tab.kept, time.LoadLocation)}
}

// steady is a fleet that has T, and nothing to do.
func (tab *table) steady(n int) {
	tab.layered()
	tab.run(tab.clouds(n, tab.old), func(int) bool { return true })
	tab.world.Pools = []Pool{ReadPool(tab.pool, tab.kept, time.LoadLocation)}
	for range 3 { // until it is completed, and says so
		if status, is := Decide(tab.world).Status["workers"]; is {
			tab.pool.Status = status
		}
		tab.world.Pools = []Pool{ReadPool(tab.pool, tab.kept, time.LoadLocation)}
	}
}

// beside adds pools that select nobody.
func (tab *table) beside(n int) {
	for i := range n {
		name := fmt.Sprint("other-", i)
		tab.world.Pools = append(tab.world.Pools, ReadPool(newPool(name, nil), nil, time.LoadLocation))
	}
}

// turnsAway lets the world have all the failed pods that a cluster keeps.
func (tab *table) turnsAway() {
	for i := range mostPods {
		n := &tab.world.Nodes[i%len(tab.world.Nodes)]
		tab.world.Turned = append(tab.world.Turned, TurnedAway{Node: n.UID, Age: time.Hour})
	}
}

// processorTime is that of this thread. Unlike the time of day it means something on a machine that does other things, too.
func processorTime(tb testing.TB) time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// How long a decision takes, and what it allocates. The budget is 10 ms at 5,000 nodes, and 100 ms beside 1,000 pools.
func BenchmarkDecide(b *testing.B) {
	worlds := []struct {
		name string
		make func(tab *table, n int)
	}{
		{"halfway", (*table).halfway},
		{"steady", (*table).steady},
		{"beside 20 pools", func(tab *table, n int) { tab.halfway(n); tab.beside(20) }},
		{"beside 1000 pools", func(tab *table, n int) { tab.halfway(n); tab.beside(1000) }},
		{"with failed pods", func(tab *table, n int) { tab.halfway(n); tab.turnsAway() }},
	}
	for _, w := range worlds {
		for _, n := range []int{100, 1000, 5000, 15_000} {
			b.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(w.name, " ", "-"), n), func(b *testing.B) {
				tab := newTable(b)
				w.make(tab, n)
				b.ReportAllocs()
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				began := processorTime(b)
				for b.Loop() {
					Decide(tab.world)
				}
				b.ReportMetric(float64(processorTime(b)-began)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// What is measured is what it is said to be.
func TestWhatTheBenchmarkMeasures(t *testing.T) {
	tab := newTable(t)
	tab.halfway(800)
	plan := Decide(tab.world)
	if now := plan.Status["workers"]; len(plan.Writes) != rate || now.Nodes.Proven != 400 || now.Nodes.Old != 400 || len(now.Cohorts) != 4 {
		t.Errorf("%d are written, and there are %+v, %v", len(plan.Writes), now.Nodes, now.Cohorts)
	}
	tab = newTable(t)
	tab.steady(800)
	if plan := Decide(tab.world); len(plan.Writes)+len(plan.Status) != 0 || tab.pool.Status.Nodes.Proven != 800 || tab.pool.Status.Stable.Hash != tab.retry.Hash {
		t.Errorf("%d are written, and the status is %+v", len(plan.Writes), tab.pool.Status)
	}
}
