//go:build linux

package cli

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// The tests of this file kill -9 a supervisor at every point of a change, where the build tag crashpoints numbers them: before and after
// each blocking action, and before each change of the disk. No service manager cleans up, so the kubelet is left behind each time. Then
// a supervisor is started that is not killed, and has to come to the same end.

func TestCrashAtEveryPoint(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of lives")
	}
	for name, of := range scenarios {
		t.Run(name, func(t *testing.T) {
			points := pointsOf(t, of)
			if os.Getenv("EVERY_POINT") == "" { // make test has time for every other one, make test-long for all
				points = everyOther(points)
			}
			var met, certain atomic.Int32
			t.Cleanup(func() {
				t.Logf("%s: killed at %d of %d points, at %d of those that a change surely has", name, met.Load(), len(points), certain.Load())
				if most := countCertain(points); int(certain.Load()) < most*9/10-2 { // what comes at once is saved at once
					t.Errorf("only %d of %d points were met again: %q", certain.Load(), most, points)
				}
			})
			for i, point := range points {
				t.Run(fmt.Sprintf("%03d %s", i+1, point), func(t *testing.T) {
					t.Parallel()
					l := newLife(t, of)
					p, over, _ := l.live(point)
					if over && killed(p) {
						met.Add(1)
						certain.Add(int32(countCertain([]string{point})))
						l.checkDisk()
					} else if over && p.code != exitOK {
						t.Fatalf("it died: %s", p.ProcessState)
					}
					if over {
						p = l.again()
					}
					l.checkRules(p)
				})
			}
		})
	}
}

func everyOther(points []string) (kept []string) {
	for i := 0; i < len(points); i += 2 {
		kept = append(kept, points[i])
	}
	return kept
}

// countCertain leaves out the writes of state.json: how many there are depends on what happens at once.
func countCertain(points []string) (count int) {
	for _, point := range points {
		if !strings.HasSuffix(point, "run/state.json") {
			count++
		}
	}
	return count
}

// pointsOf goes through a scenario without a crash, and gives its points: those of the change, or all.
func pointsOf(t *testing.T, of scenario) []string {
	t.Helper()
	l := newLife(t, of)
	p, over, first := l.live("")
	points := l.pointsPassed()
	if over {
		if p.code != exitOK {
			t.Fatalf("it died without a crash: %s", p.ProcessState)
		}
		p = l.again()
	}
	l.checkRules(p)
	if of.whole {
		first = 0
	}
	return points[first:]
}
