//go:build linux

package kubelet

import (
	"time"

	"github.com/cenkalti/backoff/v4"
)

// The wait before the next start of a kubelet that ended. It is reset after a stable time, and for another configuration.
const (
	backoffFirst = 250 * time.Millisecond
	backoffMost  = 10 * time.Second
	backoffCount = 16 // after so many the wait is the longest
	stableAfter  = time.Minute
)

type backoffSteps struct {
	*backoff.ExponentialBackOff
	failures int // in a row
}

func newBackoff() *backoffSteps {
	return &backoffSteps{ExponentialBackOff: backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(backoffFirst), backoff.WithMultiplier(2), backoff.WithMaxInterval(backoffMost),
		backoff.WithRandomizationFactor(0), backoff.WithMaxElapsedTime(0))}
}

// Delay is the wait before the next start, a longer one each time.
func (l *Launcher) Delay() time.Duration {
	l.backoff.failures = min(l.backoff.failures+1, backoffCount)
	return l.backoff.NextBackOff()
}

// ResetDelay makes the next wait the shortest.
func (l *Launcher) ResetDelay() {
	l.backoff.failures = 0
	l.backoff.Reset()
}
