//go:build linux

package supervisor

import (
	"context"
	"sync"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// workers are the goroutines of the loop, and the events that they bring it.
type workers struct {
	tasks  sync.WaitGroup
	events chan core.Event
}

// spawn runs a task that the loop waits for before it returns.
func (w *workers) spawn(task func()) {
	w.tasks.Add(1)
	go func() {
		defer w.tasks.Done()
		task()
	}()
}

// send brings an event to the loop unless it has ended.
func (w *workers) send(ctx context.Context, event core.Event) {
	select {
	case w.events <- event:
	case <-ctx.Done():
	}
}
