//go:build linux

package kubelet

import (
	"context"
	"fmt"
	"time"
)

const (
	watchdogLeast = time.Second      // the kubelet does not start with one that is not longer (k8s.io/kubernetes/pkg/kubelet/watchdog)
	pingsMissed   = 3                // so many halves of the interval in a row without a ping
	dumpWithin    = 10 * time.Second // from SIGQUIT to SIGKILL
)

// watchdog is the interval that the kubelet is given: that of our own unit, as if the kubelet were what systemd started. Kubelets
// from 1.32 on ping at half of it; older ones never do.
func (l *Launcher) watchdog() time.Duration {
	if l.Watchdog > watchdogLeast {
		return l.Watchdog
	}
	return 0
}

// watchPings reports a kubelet that has pinged and no longer does, until ctx ends. It looks no more often than it has waited, so
// that a supervisor that stalled itself reads what came in between before it judges. The clock stands while the machine sleeps.
func (c *Child) watchPings(ctx context.Context, interval time.Duration, tell func(Event)) {
	if interval == 0 || c.notify == nil {
		return
	}
	for heard, missed := 0, 0; ; {
		select {
		case <-time.After(interval / 2):
		case <-ctx.Done():
			return
		}
		notes := c.notify.notes(c.command.Process.Pid)
		if missed++; notes.Pings == 0 || notes.Pings != heard {
			missed = 0
		}
		heard = notes.Pings
		if missed == pingsMissed {
			tell(Hung{Words: fmt.Sprintf("no watchdog ping for more than %s", interval)})
			return
		}
	}
}
