//go:build linux

package supervisor

import (
	"testing"
	"time"
)

// Memory is given back once when nothing happens any more, and once more after the next change.
func TestIdle(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	requests, given := make(chan Request), make(chan struct{}, 8)
	n.options.Requests = requests
	r := n.runChanged(func(l *loop) {
		l.idle = idle{200 * time.Millisecond, func() { given <- struct{}{} }}
	})
	r.awaitHealthy()
	wait := func(what string) {
		t.Helper()
		select {
		case <-given:
		case <-r.over:
			t.Fatalf("it has ended: %v", r.err)
		case <-time.After(time.Minute):
			t.Fatalf("%s: nothing was given back", what)
		}
	}
	wait("after the start")
	requests <- Reload
	r.await("the answer", func(record Record) bool { return record.Reloads == 1 })
	wait("after a reload")
}
