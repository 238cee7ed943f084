package controller

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// requestTime limits a request that writes, here and at the API server.
const requestTime = 5 * time.Second

// leader knows whether this process leads.
type leader interface {
	// outlasts reports whether this process leads for at least that long from now on.
	outlasts(time.Duration) bool
	// waits is how long requests of the previous leader may still arrive.
	waits() time.Duration
}

// lease is the lock of an election. It knows until when it is held by this machine's clock. It counts from the moment before a renewal was sent,
// because other processes count from a later one.
type lease struct {
	resourcelock.Interface
	duration  time.Duration
	monotonic func() time.Duration

	mutex          sync.Mutex
	held           bool
	taken, renewed time.Duration
}

// Create creates the Lease with this process as its holder.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record.HolderIdentity, func() error { return l.Interface.Create(ctx, record) })
}

// Update acquires, renews or releases the Lease.
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

// giveUp is called before the request that releases the Lease. It is also called after a conflict: another process has written the Lease that only its
// holder writes, perhaps one with the same identity. A process that acquires it again waits for the requests of the other one, so of two such processes
// neither writes.
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

// alone leads without an election. The process before it may have been killed a moment ago.
type alone struct {
	since     time.Duration
	monotonic func() time.Duration
}

func (alone) outlasts(time.Duration) bool { return true }

func (a alone) waits() time.Duration { return max(0, a.since+requestTime-a.monotonic()) }
