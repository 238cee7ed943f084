package rollout

import (
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

const (
	eventsEach = 200
	usual      = 300 // schedules: enough to reach everything, and few enough for every test run
)

// Whatever happens, in whatever order, the invariants hold: nodes that refuse, die, lie, vanish and reboot; people who assign, reset, label
// and cordon; late and lost news; processes that are killed at any request, and two that believe they lead.
func TestRandomSchedules(t *testing.T) {
	n := schedules(t, usual)
	ends := func(s *sim) { s.ends = s.random.IntN(3) == 0 }
	reached, failed := explore(t, n, ends)
	for _, f := range failed {
		small := shrink(f.seed, schedule(f.seed, eventsEach), ends, f.fault.invariant)
		_, fault := live(f.seed, small, ends)
		t.Errorf("seed %d breaks invariant %d: %s\n%d events are enough: %s", f.seed, fault.invariant, fault.words, len(small), describe(small))
	}
	t.Logf("%d schedules of %d events", n, eventsEach)
	for _, name := range slices.Sorted(maps.Keys(reached)) {
		t.Logf("%10d %s", reached[name], name)
	}
	for _, name := range everything() {
		if n >= usual && reached[name] == 0 {
			t.Errorf("%s was never reached", name)
		}
	}
}

// everything is each class, reason, event and kind of write.
func everything() []string {
	var all []string
	for _, class := range Classes() {
		all = append(all, "class "+string(class))
	}
	all = append(all, "Ready Completed", "Ready Rolling", "Ready Stopped", "Ready InvalidSpec", "Ready LayerMissing", "Ready Conflict",
		"Progressing Wave", "Progressing Soaking", "Progressing Joining", "Progressing Completed", "Progressing Paused", "Progressing Held",
		"Progressing BudgetExhausted", "Progressing WaitsForPods", "Progressing DeadlineExceeded", "Progressing WindowClosed",
		"Stalled Stopped", "Stalled RevisionTampered",
		"Stalled NoUpdatableNode")
	for _, event := range []string{EventRolloutBegun, EventWaveBegun, EventWavePassed, EventRolloutHeld, EventRolloutStopped, EventRolloutCompleted,
		EventNodeConflict, EventPoolAssigned, EventPoolDrains, EventPoolDrainEnded} {
		all = append(all, "event "+event)
	}
	for _, why := range []Why{WhyUndrain, WhyRevert, WhyJoin, WhyRollback, WhyConsent, WhyDrain, WhyAdvance, WhyLate} {
		all = append(all, "write "+string(why))
	}
	return all
}

// schedules is how many random schedules are lived: SCHEDULES from the environment where it is set, for the long test.
func schedules(t *testing.T, otherwise uint64) uint64 {
	text := os.Getenv("SCHEDULES")
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("SCHEDULES: %v", err)
	}
	return n
}

type failure struct {
	seed  uint64
	fault *broken
}

// explore lives many schedules on all processors, and stops at the first few that break something.
func explore(t *testing.T, n uint64, change func(*sim)) (map[string]int, []failure) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	var lock sync.Mutex
	var next atomic.Uint64
	var workers sync.WaitGroup
	reached := map[string]int{}
	var failed []failure
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			own := map[string]int{}
			for seed := next.Add(1); seed <= n; seed = next.Add(1) {
				s, fault := live(seed, schedule(seed, eventsEach), change)
				for name, times := range s.reached {
					own[name] += times
				}
				if fault != nil {
					lock.Lock()
					if failed = append(failed, failure{seed, fault}); len(failed) >= 3 {
						next.Store(n)
					}
					lock.Unlock()
				}
			}
			lock.Lock()
			defer lock.Unlock()
			for name, times := range own {
				reached[name] += times
			}
		})
	}
	workers.Wait()
	return reached, failed
}
