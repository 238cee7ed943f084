//go:build linux

package supervisor

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A kubelet that is started alone waits for no disk and no bus for ever.
func TestWhatMayNeverAnswerIsWaitedForBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := make(chan struct{})
		began := time.Now()
		if err, inTime := within(diskAnswersWithin, func() error { <-never; return errors.New("too late") }); err != nil || inTime || time.Since(began) != diskAnswersWithin {
			t.Errorf("after %v: %v, in time: %v", time.Since(began), err, inTime)
		}
		close(never)
		want := errors.New("held")
		if err, inTime := within(diskAnswersWithin, func() error { return want }); !errors.Is(err, want) || !inTime {
			t.Errorf("%v, in time: %v", err, inTime)
		}
	})
}
