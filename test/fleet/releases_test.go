//go:build e2e && long

package fleet

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// Commits of this project that stand for releases before this one.
const (
	withoutLayers = "de8319d" // its supervisor knows nothing of layers, and it has no controller
	withoutDrains = "7b6d7bb" // all there, but a pool has no drain
)

// A fleet goes from a release to this one and back, one part after the other, as docs/operate/upgrades.md says. Its supervisors are of this tree, of a
// release before, and of one that is too old for pools: the latter are told apart, and left alone until they are upgraded, too. Nothing moves
// because something was upgraded.
func TestLongAFleetBetweenTwoReleases(t *testing.T) {
	t.Skip("no commit yet has another release of the same API: pools of the commits above are written in words that this one does not read")
	t.Parallel()
	f := bare(t)
	ancient := releaseOf(t, withoutLayers, "kubelet-supervisor")
	before := releaseOf(t, withoutDrains, "kubelet-supervisor", "kubelet-supervisor-controller")
	now := builtIn(t, "../..", "this", "kubelet-supervisor", "kubelet-supervisor-controller")

	f.apply(t, before)
	controller := f.from(t, before, nil)
	m := f.mix(t, ancient, ancient, before, before, now, now)
	p := smallPool(mixedPool)
	together(p)
	if err := f.admin.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	m.completed(1, 4, 2)
	m.leftAlone(0, 1)

	// The definition first, then the controller.
	nodes := m.all()
	f.stop(t, controller) // for it writes the status at its own times
	pool := m.pool()
	f.apply(t, now)
	m.isKept("the newer definition", pool, m.pool())
	controller = f.from(t, before, nil)
	m.change(`{"spec":{"revisionHistoryLimit":9}}`)
	m.completed(1, 4, 2)
	controller = f.from(t, now, controller)
	m.change(`{"spec":{"rollout":{"disruption":"Drain"}}}`)
	m.completed(1, 4, 2)
	m.unmoved("the newer controller", nodes)
	m.change(`{"spec":{"layers":[{"name":"density","inline":{"maxPods":251}}]}}`)
	m.completed(2, 4, 2)
	m.leftAlone(0, 1)

	// Then the supervisors. Those that were too old are moved as soon as the pool may.
	m.change(`{"spec":{"rollout":{"paused":true}}}`)
	for i := range 2 {
		m.restarts(i, now)
		m.becomes(i+2, now)
	}
	m.change(`{"spec":{"rollout":{"paused":false}}}`)
	m.completed(2, 6, 0)
	for i := 1; i < 6; i += 2 {
		m.becomes(i, before)
	}

	// The way back: the controller first.
	nodes = m.all()
	controller = f.from(t, before, controller)
	m.change(`{"spec":{"revisionHistoryLimit":8}}`)
	m.completed(2, 6, 0)
	f.stop(t, controller)
	pool = m.pool()
	f.apply(t, before)
	after := m.pool()
	if had, has := pool.drain(), after.drain(); !strings.Contains(fmt.Sprint(had), "when:WhenHeld") || has != nil {
		t.Errorf("the older definition shows the drain %v, and the newer one %v", has, had)
	}
	m.isKept("the older definition", pool, after)
	f.from(t, before, nil)
	m.change(`{"spec":{"revisionHistoryLimit":7}}`)
	m.completed(2, 6, 0)
	m.unmoved("the older controller", nodes)
	m.change(`{"spec":{"layers":[{"name":"density","inline":{"maxPods":252}}]}}`)
	m.completed(3, 6, 0)
	for i := range m.folders {
		m.becomes(i, before)
	}

	// What the older one does not know is lost as soon as somebody writes.
	f.apply(t, now)
	if drain := fmt.Sprint(m.pool().drain()); !strings.Contains(drain, "when:Never") {
		t.Errorf("the newer definition shows the drain %v again", drain)
	}
}

// from starts a release's controller in the place of another, or of none.
func (f *fleet) from(t *testing.T, r release, instead *cluster.Program) *cluster.Program {
	t.Helper()
	if instead != nil {
		f.stop(t, instead)
	}
	f.binary = r.controller
	return f.own(t, r.version)
}

func (f *fleet) stop(t *testing.T, controller *cluster.Program) {
	t.Helper()
	if err := controller.Stop(30 * time.Second); err != nil || controller.Err != nil {
		t.Errorf("asked to end, the controller ends with %v, %v", err, controller.Err)
	}
}

// leftAlone: these nodes have supervisors that are too old. Nobody has assigned anything to them, and they run their own configuration.
func (m *mixed) leftAlone(nodes ...int) {
	m.t.Helper()
	for _, i := range nodes {
		if is := m.known(i); is.source != "" || is.mark != (rollout.Mark{}) || is.reason != "Local" || is.config.Active != nil {
			m.t.Errorf("node %d, which is too old, has %+v", i, is)
		}
	}
}

// unmoved: all nodes are what they were.
func (m *mixed) unmoved(after string, before []knownOfNode) {
	m.t.Helper()
	if now := m.all(); !reflect.DeepEqual(now, before) {
		m.t.Errorf("after %s the nodes have\n%+v\nand had\n%+v", after, now, before)
	}
}
