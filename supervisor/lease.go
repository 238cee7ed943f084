//go:build linux

package supervisor

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
)

// How often the Lease is looked at while a trial asks for it. A trial that is shorter than usual is looked at more often.
const (
	leaseInterval      = 10 * time.Second
	leaseIntervalLeast = time.Second
)

// leaseWatch looks at the kubelet's own Lease, by the kubelet's identity, while it is turned on.
type leaseWatch struct {
	interval time.Duration
	client   func() (rest.Interface, string) // nil while there is no connection; and the Node's name
	look     func(ctx context.Context, client rest.Interface, nodeName string, cached bool) (configsync.Lease, error)
	changed  chan struct{}

	mu   sync.Mutex
	on   bool
	seen leaseSeen
}

// leaseSeen is what the looks at the Lease have seen since the present child was started. The first one is the reference: any other
// renewTime is a renewal by that child, the one kubelet there is. No renewTime is compared with a clock of ours.
type leaseSeen struct {
	Known     bool
	RenewTime time.Time     // zero = there was no Lease
	Before    time.Time     // the newest RenewTime that a look saw while another kubelet ran; zero = none
	Lasts     time.Duration // by the child's configuration; zero = that does not say
}

func newLeaseWatch(trial time.Duration, client func() (rest.Interface, string)) *leaseWatch {
	return &leaseWatch{
		interval: min(leaseInterval, max(leaseIntervalLeast, trial/10)), client: client, look: configsync.ReadLease,
		changed: make(chan struct{}, 1),
	}
}

func (w *leaseWatch) turn(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.on != on {
		w.on = on
		w.poke()
	}
}

func (w *leaseWatch) newChild(lasts time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.seen.Before
	if w.seen.Known {
		before = w.seen.RenewTime
	}
	w.seen = leaseSeen{Lasts: lasts, Before: before}
	w.poke()
}

func (w *leaseWatch) handOver() leaseSeen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

func (w *leaseWatch) inherit(seen leaseSeen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = seen
}

func (w *leaseWatch) poke() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// wanted reports whether to look. What has just been asked for waits for its time, except for a child of which no look has shown anything:
// one that is restarted again and again costs one look each time.
func (w *leaseWatch) wanted(isDue bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.on && (isDue || !w.seen.Known)
}

// run looks until ctx ends.
func (w *leaseWatch) run(ctx context.Context, tell func(core.LeaseSeen)) {
	ticker := time.NewTicker(w.interval)
	defer ticker.Stop()
	for isDue := true; ; {
		if w.wanted(isDue) {
			if seen := w.see(ctx); ctx.Err() == nil {
				tell(seen)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
			isDue = false
		case <-ticker.C:
			isDue = true
		}
	}
}

// see is one look. An answer that says nothing of the renewal counts as no answer; a missing Lease as one that is not renewed. A later
// renewal is taken from the API server's memory, because all nodes on trial ask this every ten seconds. All else is not: a memory that is
// behind would take an old renewal for a new one, and an API server that has lost etcd would make all nodes roll back.
func (w *leaseWatch) see(ctx context.Context) core.LeaseSeen {
	client, node := w.client()
	if client == nil {
		return core.LeaseSeen{}
	}
	before := w.handOver()
	lease, err := w.look(ctx, client, node, before.Known)
	if before.Known && (err == nil && !lease.RenewTime.After(before.RenewTime) || apierrors.IsNotFound(err)) {
		lease, err = w.look(ctx, client, node, false)
	}
	switch {
	case apierrors.IsNotFound(err):
		lease = configsync.Lease{}
	case apierrors.IsForbidden(err):
		return core.LeaseSeen{Problem: err.Error()}
	case err != nil:
		return core.LeaseSeen{}
	}
	seen := core.LeaseSeen{Reachable: true, Duration: max(lease.Duration, before.Lasts)}
	if w.remember(before, lease.RenewTime) {
		seen.Renewed = before.Known && differ(lease.RenewTime, before.RenewTime)
		seen.RenewedBefore = !before.Known && !before.Before.IsZero() && differ(lease.RenewTime, before.Before)
	}
	return seen
}

func differ(renewed, before time.Time) bool { return !renewed.IsZero() && !renewed.Equal(before) }

// remember keeps what was seen. It is false where another child was started during the look: of that the look says nothing.
func (w *leaseWatch) remember(before leaseSeen, renewTime time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen != before {
		return false
	}
	w.seen.Known, w.seen.RenewTime = true, renewTime
	return true
}
