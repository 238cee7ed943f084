package supervisor

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
)

const (
	kubeletWatchdogLeast = time.Second      // the kubelet does not start with one that is not longer (k8s.io/kubernetes/pkg/kubelet/watchdog)
	pingsMissed          = 3                // so many halves of the interval in a row without a ping
	dumpWithin           = 10 * time.Second // from SIGQUIT to SIGKILL
)

// kubeletWatchdog is the interval that the kubelet is given: that of our own unit, as if the kubelet were what systemd started. Kubelets
// from 1.32 on ping at half of it; older ones never do.
func (l *loop) kubeletWatchdog() time.Duration {
	if w := l.manager.Watchdog; w > kubeletWatchdogLeast {
		return w
	}
	return 0
}

// watchPings tells of a kubelet that has pinged and does not any more, until ctx ends. It looks no more often than it has waited, so
// that a supervisor that stalled itself hears what came meanwhile before it judges. The clock stands while the machine sleeps.
func (l *loop) watchPings(ctx context.Context, child *process, interval time.Duration) {
	if interval == 0 || l.kubelets.notify == nil {
		return
	}
	for heard, missed := 0, 0; ; {
		select {
		case <-time.After(interval / 2):
		case <-ctx.Done():
			return
		}
		notes := l.kubelets.notify.notes()
		if missed++; notes.Pings == 0 || notes.Pings != heard {
			missed = 0
		}
		heard = notes.Pings
		if missed == pingsMissed {
			l.send(ctx, decide.Hung{Words: fmt.Sprintf("no watchdog ping for more than %s", interval)})
			return
		}
	}
}

// dump has a kubelet that hangs write all its goroutines into its log, and makes it end. Its exit is told by attend.
func (p *process) dump(words string) {
	p.hung.Store(&words)
	p.end(syscall.SIGQUIT, dumpWithin)
}
