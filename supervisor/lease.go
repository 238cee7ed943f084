package supervisor

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
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
	look     func(ctx context.Context, client rest.Interface, nodeName string, cached bool) (time.Time, error)
	changed  chan struct{}

	mu      sync.Mutex
	on      bool
	started time.Time // of the present child
	last    time.Time // the renewal that was seen last, of any child
}

func newLeaseWatch(trial time.Duration, client func() (rest.Interface, string)) *leaseWatch {
	return &leaseWatch{
		interval: min(leaseInterval, max(leaseIntervalLeast, trial/10)), client: client, look: configsync.LeaseRenewTime,
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

func (w *leaseWatch) newChild(started time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started = started
	w.poke()
}

func (w *leaseWatch) lastSeen() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

func (w *leaseWatch) poke() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *leaseWatch) wanted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.on
}

// run looks until ctx ends.
func (w *leaseWatch) run(ctx context.Context, tell func(decide.LeaseSeen)) {
	ticker := time.NewTicker(w.interval)
	defer ticker.Stop()
	for {
		if w.wanted() {
			if seen := w.glance(ctx); ctx.Err() == nil {
				tell(seen)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
		case <-ticker.C:
		}
	}
}

// glance is one look. An answer that says nothing of the renewal counts as no answer; a missing Lease as one that is not renewed. A
// renewal is taken from the API server's memory, for all nodes on trial ask this every ten seconds; that there was none is not: an API
// server that has lost etcd would make all of them roll back.
func (w *leaseWatch) glance(ctx context.Context) decide.LeaseSeen {
	client, node := w.client()
	if client == nil {
		return decide.LeaseSeen{}
	}
	renewed, err := w.look(ctx, client, node, true)
	if err == nil && !w.isNew(renewed) || apierrors.IsNotFound(err) {
		renewed, err = w.look(ctx, client, node, false)
	}
	switch {
	case apierrors.IsNotFound(err):
		return decide.LeaseSeen{Reachable: true}
	case apierrors.IsForbidden(err):
		return decide.LeaseSeen{Problem: err.Error()}
	case err != nil:
		return decide.LeaseSeen{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := decide.LeaseSeen{Reachable: true, Baseline: renewed.After(w.started.Add(-decide.LeaseTimeout))}
	seen.Renewed = w.isNewLocked(renewed)
	w.last = renewed
	return seen
}

// isNew tells whether this is a renewal by the present child that was not seen before.
func (w *leaseWatch) isNew(renewed time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.isNewLocked(renewed)
}

func (w *leaseWatch) isNewLocked(renewed time.Time) bool {
	return renewed.After(w.started) && !renewed.Equal(w.last)
}
