//go:build linux

package kubelet

import (
	"context"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A kubelet hangs that has pinged and misses three looks in a row. One that has never pinged is too old to.
func TestPings(t *testing.T) {
	const interval = 30 * time.Second
	hung := func(at time.Duration) []seen { return []seen{{at, Hung{"no watchdog ping for more than 30s"}}} }
	for name, row := range map[string]struct {
		interval time.Duration
		pings    []time.Duration // when it pings
		want     []seen
	}{
		"it never pings":                {interval, nil, nil},
		"it stops after one":            {interval, []time.Duration{10 * time.Second}, hung(time.Minute)},
		"it stops after two":            {interval, []time.Duration{10 * time.Second, 40 * time.Second}, hung(90 * time.Second)},
		"it comes back at the last":     {interval, []time.Duration{10 * time.Second, 50 * time.Second}, hung(105 * time.Second)},
		"two between two looks are one": {interval, []time.Duration{16 * time.Second, 17 * time.Second}, hung(75 * time.Second)},
		"it is not to ping":             {0, []time.Duration{10 * time.Second}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				child := ourselvesAsChild(t, time.Minute)
				pid := os.Getpid()
				child.notify = &notifySocket{kubelets: map[int]*hearing{pid: {kubeletNotes: kubeletNotes{PID: pid}}}}
				begin := time.Now()
				var told []seen
				ctx, stop := context.WithCancel(t.Context())
				over := make(chan struct{})
				go func() {
					defer close(over)
					child.watchPings(ctx, row.interval, func(e Event) { told = append(told, seen{time.Since(begin), e}) })
				}()
				for _, at := range row.pings {
					time.Sleep(at - time.Since(begin))
					child.notify.hear(pid, "WATCHDOG=1")
				}
				time.Sleep(time.Hour)
				stop()
				<-over
				if !slices.Equal(told, row.want) {
					t.Errorf("told %v, want %v", told, row.want)
				}
			})
		})
	}
	ourselvesAsChild(t, time.Minute).watchPings(t.Context(), interval, nil) // without a socket there is nothing to wait for
}

func TestTheWatchdogOfAKubelet(t *testing.T) {
	for of, want := range map[time.Duration]time.Duration{0: 0, time.Second: 0, time.Second + 1: time.Second + 1, time.Minute: time.Minute} {
		if got := NewLauncher(Settings{Watchdog: of}).watchdog(); got != want {
			t.Errorf("of %s it is %s", of, got)
		}
	}
}
