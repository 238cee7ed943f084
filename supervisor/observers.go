//go:build linux

package supervisor

import (
	"context"
	"slices"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/metrics"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/systemd"
)

// A decision is what the core made of one event.
type decision struct {
	event         core.Event
	before, after core.State
	step          core.Step
	shown         core.Statement // what the Node should show now
	due           bool           // it may be shown
}

// A decisionObserver gets each decision from the loop before its action is begun: the log says that the kubelet is stopped before it is. It
// changes nothing of the decision. What takes time it does in a goroutine, until the context ends.
type decisionObserver interface {
	observe(over context.Context, d *decision)
}

// counter counts for the metrics.
type counter struct{ metrics *metrics.Metrics }

func (c counter) observe(_ context.Context, d *decision) {
	c.metrics.Decided(&d.before, &d.after, d.event, &d.step)
}

// unitStatus reports to systemd what runs, with the message of the Node's condition.
type unitStatus struct{ manager *systemd.Manager }

func (u unitStatus) observe(_ context.Context, d *decision) {
	u.manager.Status(statusLine(d.shown))
	if d.after.Child.Alive && d.after.Child.Healthy {
		u.manager.Ready()
	}
}

const statusLimit = 300 // bytes of what systemctl status shows

func statusLine(shown core.Statement) string {
	parts := slices.Clone(shown.Parts)
	parts[0] = shown.Reason + ": " + parts[0]
	return bounded.Parts(statusLimit, parts...)
}
