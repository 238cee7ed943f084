package main

import (
	"fmt"
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
			points, first := pointsOf(t, of)
			var met atomic.Int32
			t.Cleanup(func() {
				for i, what := range points {
					t.Logf("%3d %s", first+i+1, what)
				}
				t.Logf("%s: killed at %d of %d points", name, met.Load(), len(points))
				if int(met.Load()) < len(points)*9/10-2 { // how often state.json is written depends on what comes at once
					t.Error("too few of the points were met again")
				}
			})
			for i, what := range points {
				t.Run(fmt.Sprintf("%03d %s", first+i+1, what), func(t *testing.T) {
					t.Parallel()
					l := newLife(t, of)
					p, over, _ := l.live(first + i + 1)
					if over && killed(p) {
						met.Add(1)
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

// pointsOf goes through a scenario without a crash, and gives its points from number first on, counted from 0.
func pointsOf(t *testing.T, of scenario) (points []string, first int) {
	t.Helper()
	l := newLife(t, of)
	p, over, first := l.live(0)
	points = l.pointsPassed()
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
	return points[first:], first
}
