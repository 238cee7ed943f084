package plugin

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// silentAfter is how much older than the kubelet's start the supervisor's last status may be. The supervisor
// updates it when it starts, but may not reach the API server immediately.
const silentAfter = 3 * time.Minute

// awaitAnswer reads again until the supervisor has answered the assignment, which may have been made a moment ago.
func (d *diagnosis) awaitAnswer(ctx context.Context, patience time.Duration) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for end := time.Now().Add(patience); !d.node.Says.Answered() && time.Now().Before(end); {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if v, err := view.GetNode(ctx, d.client, d.node.Name); err == nil {
			d.node = v
		}
	}
}

// examineSupervisor checks the supervisor's answer to the assignment, and the age of its status against the
// kubelet's start. A retry would not help, because a supervisor without problems has nothing new to report.
func (d *diagnosis) examineSupervisor(ctx context.Context) {
	v := d.node
	switch {
	case !v.Says.Supervised:
		d.wrong("no supervisor has met this node: it has no annotation %s; run its kubelet under kubelet-supervisor, and see journalctl -u kubelet there", nodev1.ConfigStatusAnnotation)
		return
	case v.Reason() == nodev1.ReasonStopped:
		d.wrong("the supervisor was stopped: %s; systemctl status kubelet on the node", v.Message())
		return
	case !v.Says.Answered():
		d.wrong("the supervisor has not answered the assignment %q, it speaks of %q; is it running? journalctl -u kubelet on the node", v.Says.Assignment, bounded.Line(v.Says.Status.Observed))
		return
	}
	spoke := v.LastSpoke()
	d.fine("the supervisor answered the assignment; it spoke last %s ago, and speaks when it starts and when something changes", view.Age(d.Now(), spoke))
	if what, when := d.kubeletSince(ctx); when.After(spoke.Add(silentAfter)) {
		d.note("%s %s ago, and the supervisor has said nothing since: so it looks after an outage, or where the kubelet was started without it; systemctl status kubelet on the node tells", what, view.Age(d.Now(), when))
	}
}

// kubeletSince returns the newest sign that the kubelet was started, by the node's clock, as in the supervisor's
// status: the kubelet's event, which is kept for an hour, or the time since which the node is Ready. It proves
// nothing: a failed network or container runtime also makes a node Ready again, and a kubelet may come back before
// the supervisor reports its exit.
func (d *diagnosis) kubeletSince(ctx context.Context) (what string, when time.Time) {
	for _, c := range d.node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			what, when = "the node became Ready", c.LastTransitionTime.Time
		}
	}
	selector := fields.Set{"involvedObject.kind": "Node", "involvedObject.name": d.node.Name, "reason": "Starting"}.AsSelector().String()
	list, err := d.client.CoreV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		return what, when // without permission to read events there is one sign less
	}
	for _, e := range list.Items {
		if e.Source.Component == "kubelet" && e.Reason == "Starting" && e.LastTimestamp.After(when) {
			what, when = "the kubelet was started", e.LastTimestamp.Time
		}
	}
	return what, when
}
