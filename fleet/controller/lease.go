package controller

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// requestTime is how long a request that writes may take, on both sides.
const requestTime = 5 * time.Second

// leader says whether this process leads.
type leader interface {
	// outlasts: it leads for that long from now on at least.
	outlasts(time.Duration) bool
	// waits is for how long the requests of the leader before may still arrive.
	waits() time.Duration
}

// lease is the lock of an election. It knows until when it is held, by this machine's clock: from the moment before a renewal was asked
// for, for everybody else counts from a later one.
type lease struct {
	resourcelock.Interface
	duration  time.Duration
	monotonic func() time.Duration

	mutex          sync.Mutex
	held           bool
	taken, renewed time.Duration
}

// Create makes the Lease, as ours.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record.HolderIdentity, func() error { return l.Interface.Create(ctx, record) })
}

// Update takes the Lease, renews it, or gives it up.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record.HolderIdentity, func() error { return l.Interface.Update(ctx, record) })
}

func (l *lease) write(holder string, do func() error) error {
	asked := l.monotonic()
	if holder != l.Identity() {
		l.giveUp()
	}
	if err := do(); err != nil {
		if apierrors.IsConflict(err) {
			l.giveUp()
		}
		return err
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if holder != l.Identity() {
		return nil
	}
	if now := l.monotonic(); !l.held || asked >= l.renewed+l.duration {
		l.held, l.taken = true, now
	}
	l.renewed = asked
	return nil
}

// giveUp comes before the request that tells others. It also comes after a conflict: somebody else has written the Lease that only we write, and that
// may be a process of the same identity. Whoever takes it again waits for what the other one has sent, so of two such processes neither writes.
func (l *lease) giveUp() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.held = false
}

func (l *lease) outlasts(request time.Duration) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.held && l.monotonic()+request < l.renewed+l.duration
}

func (l *lease) waits() time.Duration {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if !l.held {
		return requestTime
	}
	return max(0, l.taken+requestTime-l.monotonic())
}

// alone leads without an election. A process before it may just have been killed.
type alone struct {
	since     time.Duration
	monotonic func() time.Duration
}

func (alone) outlasts(time.Duration) bool { return true }

func (a alone) waits() time.Duration { return max(0, a.since+requestTime-a.monotonic()) }
