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

// silentAfter is how much older than the kubelet's start the supervisor's last words may be: it speaks when it starts, by way of an API
// server that may not be in reach at once.
const silentAfter = 3 * time.Minute

// awaitAnswer looks again until the supervisor has answered the assignment: somebody may have made it a moment ago.
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

// examineSupervisor: a retry is no question that is answered, for a supervisor with which all is well has nothing new to say. So its
// answer to the assignment, and the age of its words against the kubelet's, have to tell.
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

// kubeletSince is the newest sign that the kubelet was started, by the node's clock as the supervisor's words are: the kubelet's event of
// it, which is kept for an hour, or since when the node is Ready. A network or a container runtime that was down makes a node Ready anew,
// too, and a kubelet that dies may be back before the supervisor thinks it worth a word: so it proves nothing.
func (d *diagnosis) kubeletSince(ctx context.Context) (what string, when time.Time) {
	for _, c := range d.node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			what, when = "the node became Ready", c.LastTransitionTime.Time
		}
	}
	selector := fields.Set{"involvedObject.kind": "Node", "involvedObject.name": d.node.Name, "reason": "Starting"}.AsSelector().String()
	list, err := d.client.CoreV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		return what, when // who may not read events has one sign less
	}
	for _, e := range list.Items {
		if e.Source.Component == "kubelet" && e.Reason == "Starting" && e.LastTimestamp.After(when) {
			what, when = "the kubelet was started", e.LastTimestamp.Time
		}
	}
	return what, when
}
