//go:build machine

package machine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// number is a variable of make test-machine's.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s=%s: %v", name, text, err)
	}
	return n
}

// chance is the random choice of a test, told so that a run can be repeated as far as a machine's timing lets it.
func chance(t *testing.T) *rand.Rand {
	t.Helper()
	seed := number(t, "KUBELET_SUPERVISOR_TEST_SEED", int(time.Now().UnixNano()%1e6))
	t.Logf("the seed: %d", seed)
	return rand.New(rand.NewPCG(uint64(seed), 0))
}

// share is how likely the disk forgets a write at a cut: sometimes none, sometimes all.
func share(chance *rand.Rand) float64 { return []float64{0, 0.1, 0.5, 0.9, 1}[chance.IntN(5)] }

// Power cuts at random moments of changes, on a disk that forgets what was not flushed, in no order: nothing is torn, there is always a
// kubelet, and it runs what is assigned, what is last known good, or local.
func TestPowerCuts(t *testing.T) {
	b := newBareNode(t)
	chance := chance(t)
	cuts := number(t, "CUTS", 10)
	for i := range cuts {
		when := b.oneCut(t, chance, i)
		t.Logf("cut %d of %d, %s: %d assignments so far, %+v", i+1, cuts, when, len(b.steps), b.disk.Counts())
		if t.Failed() {
			break
		}
	}
	if counts := b.disk.Counts(); counts.Flushes == 0 || counts.Forgotten == 0 && cuts >= 50 { // a few cuts meet few writes, or forget none of them
		t.Errorf("the disk has forgotten nothing: %+v", counts)
	}
}

// oneCut switches the machine on and cuts its power, and says when. Most machines go on from the snapshot, and one in ten boots.
func (b *bareNode) oneCut(t *testing.T, chance *rand.Rand, number int) (when string) {
	t.Helper()
	defer func() { b.cut(chance, share(chance)) }()
	switch chance.IntN(20) {
	case 0:
		b.start()
		after := time.Duration(chance.IntN(20000)) * time.Millisecond
		select {
		case <-time.After(after):
		case <-b.agent.booted:
		}
		return fmt.Sprintf("%s after it was switched on", time.Since(b.since).Round(time.Millisecond))
	case 1:
		lost := b.disk.LosePowerAt(1 + chance.IntN(10))
		b.resume()
		select {
		case <-lost:
			return "at a write of the file system's recovery"
		case <-b.agent.booted:
			return "when its file system was recovered"
		case <-time.After(patience):
			b.Fatalf("the file system is not recovered within %s; the console: %s", patience, b.console())
		}
	case 2:
		b.start()
	default:
		b.resume()
	}
	b.booted("")
	found := b.check(number)
	b.supervise()
	runs := b.healthy()
	if !found.may(runs) {
		t.Errorf("the kubelet runs %v, with %v assigned and %v last known good", runs, found.assigned, found.lastKnownGood)
	}
	b.must("ip link set eth0 up && ip route add default via 10.0.2.2")
	// A change takes some seconds here. Assignments overtake each other, or leave each the time to be run, tried and promoted.
	pause, until, writes := 4*time.Second, 15*time.Second, 80
	if chance.IntN(2) == 0 {
		pause, until, writes = 14*time.Second, 45*time.Second, 250
	}
	var lost <-chan struct{}
	if chance.IntN(4) == 0 { // at any time, else in the middle of the writes of a change
		until = time.Duration(chance.Int64N(int64(until)))
	} else {
		lost = b.disk.LosePowerAt(1 + chance.IntN(writes))
	}
	begin := time.Now()
	b.changes(chance, pause, until, lost)
	after := time.Since(begin).Round(time.Millisecond)
	starts, waited := b.starts()
	return fmt.Sprintf("%s after the kubelet was healthy (of %d starts, %d waited at a lock)", after, starts, waited)
}

// changes assigns one configuration after another, with pauses of at most so long, for some time, or until the disk loses its power, and
// notes what the Node says of it.
func (b *bareNode) changes(chance *rand.Rand, longest, until time.Duration, lost <-chan struct{}) {
	ctx, cancel := context.WithTimeout(b.Context(), until)
	defer cancel()
	for ctx.Err() == nil {
		b.step(b.T, chance)
		pause := time.NewTimer(time.Duration(chance.Int64N(int64(longest))))
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				waiting = false
			case <-lost:
				b.listen(b.T)
				return
			case <-pause.C:
				waiting = false
			case <-time.After(pollInterval):
			}
			b.listen(b.T)
		}
	}
}

// check looks at what the supervisor is about to find, and keeps it where it breaks the contract.
func (b *bareNode) check(cut int) pointers {
	b.machine.Helper()
	archive, err := b.agent.raw("cat /run/machine/state.tar 2>/dev/null || :", "")
	if err != nil {
		b.Fatal(err)
	}
	if len(archive) == 0 && b.told == 0 {
		return pointers{}
	}
	p, err := b.history.check(archive)
	if err != nil {
		b.Errorf("after cut %d the state is broken (kept as %s): %v", cut, keep(archive, fmt.Sprintf("bare-%d", cut)), err)
	}
	return p
}

// The same with the whole of a node, a few times. All that follows the finding of its disk is real each time, what is before that only
// once in five.
func TestPowerCutsOfANode(t *testing.T) {
	n := runningNode(t)
	chance := chance(t)
	n.letNodesRead(t)
	h := &history{steps: []assigned{{good: true}}}
	cuts := number(t, "NODE_CUTS", 2)
	for i := range cuts {
		h.stepOf(t, n.outside, withPods(60+i), true)
		begin := time.Now()
		<-time.After(time.Duration(chance.IntN(60000)) * time.Millisecond)
		h.listenTo(t, n.outside)
		n.cut(chance, share(chance))
		when := time.Since(begin).Round(time.Millisecond)
		back := n.away(t)
		switch {
		case i == 0:
			n.takeSnapshot()
			n.resume()
		case i%5 == 4:
			n.start()
		default:
			n.resume()
		}
		n.booted("")
		runs := n.checkCut(h, i)
		t.Logf("cut %d of %d, %s after an assignment: runs %v, the disk: %+v", i+1, cuts, when, runs, n.disk.Counts())
		back()
		if i%4 == 3 || i == cuts-1 { // the change goes on, and ends
			n.says(t, h.steps[len(h.steps)-1].text(), "InTrial", "Active", "RolledBack", "Rejected")
		}
		if t.Failed() {
			break
		}
	}
}

// checkCut looks at what the supervisor found after a cut, waits for its kubelet, and gives what that runs, which must be one of these.
func (n *node) checkCut(h *history, cut int) (runs *corev1.ConfigMapNodeConfigSource) {
	n.machine.Helper()
	archive, err := n.agent.raw("cat /run/machine/state.tar", "")
	if err != nil {
		n.Fatal(err)
	}
	p, err := h.check(archive)
	if err != nil {
		n.Errorf("after cut %d the state is broken (kept as %s): %v", cut, keep(archive, fmt.Sprintf("node-%d", cut)), err)
	}
	n.healthy()
	var config map[string]any
	await(n.T, "the kubelet's configuration", func() (err error) { // its port is up some time after its health
		config, err = n.Configz(n.Context())
		return err
	})
	for _, step := range h.steps {
		if step.source != nil && config["maxPods"] == float64(60+h.find(step.source)-1) {
			runs = step.source
		}
	}
	if !p.may(runs) {
		n.Errorf("the kubelet runs %v, with %v assigned and %v last known good", runs, p.assigned, p.lastKnownGood)
	}
	return runs
}

// keep writes a broken state down, and says where.
func keep(archive []byte, name string) string {
	path := filepath.Join(shared, "state-after-cut-"+name+".tar")
	if err := os.WriteFile(path, archive, 0o600); err != nil {
		return err.Error()
	}
	return path
}
