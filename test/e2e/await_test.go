//go:build e2e

package e2e

import (
	"context"
	"errors"
	"testing"
	"time"
)

const (
	pollInterval = 30 * time.Millisecond
	patience     = 2 * time.Minute // for what takes a second on an idle machine
)

// fatal is what was seen that must never be: it is not waited out.
type fatal struct{ error }

// await polls until seen returns nil; its error says what is there instead, and fails the test after two minutes.
func await(t *testing.T, description string, seen func() error) {
	t.Helper()
	awaitFor(t, patience, description, seen)
}

func awaitFor(t *testing.T, patience time.Duration, description string, seen func() error) {
	t.Helper()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience) // also in a cleanup
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := seen()
		if err == nil {
			t.Logf("%s: after %.2f s", description, time.Since(begin).Seconds())
			return
		}
		if errors.As(err, new(fatal)) {
			t.Fatalf("%s: not after %.2f s: %v", description, time.Since(begin).Seconds(), err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within %s; last seen: %v", description, patience, err)
		}
	}
}

// holds polls for a while and fails the test when seen returns an error: for what must not happen.
func holds(t *testing.T, during time.Duration, description string, seen func() error) {
	t.Helper()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for end := time.Now().Add(during); time.Now().Before(end); <-ticker.C {
		if err := seen(); err != nil {
			t.Fatalf("%s: not any more: %v", description, err)
		}
	}
}
