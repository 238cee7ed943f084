//go:build linux

package supervisor

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
)

// nodeWatch looks at the conditions of the Node and, in a trial, at its pods, by the kubelet's identity, when the core asks for it.
type nodeWatch struct {
	client func() (rest.Interface, string) // nil while there is no connection; and the Node's name
	look   func(ctx context.Context, client rest.Interface, nodeName string) (*corev1.Node, error)
	list   func(ctx context.Context, client rest.Interface, nodeName string) ([]podStart, error)
	clock  func() time.Duration
	asked  chan struct{}

	mu      sync.Mutex
	seen    nodeSeen
	onTrial bool // the present child
	pods    podStarts
}

// handedNode is what a nodeWatch hands over.
type handedNode struct {
	Seen nodeSeen
	Pods podStarts
}

// nodeSeen is what the looks have seen of the present child's heartbeats. The reference is the newest heartbeat of the kubelet before it,
// where a look has seen that; else the heartbeat at the first look since its start. Any other heartbeat is one of the present child, the
// one kubelet there is. No heartbeat is compared with a clock.
type nodeSeen struct {
	Known     bool      // there is a reference
	Before    bool      // it is of a kubelet before the present child
	Reference time.Time // zero: that kubelet has posted nothing
	Posted    bool      // the present child has
	Newest    time.Time // heartbeat that a look has seen
}

func newNodeWatch(client func() (rest.Interface, string)) *nodeWatch {
	return &nodeWatch{client: client, look: configsync.ReadNode, list: listPodStarts, clock: steadyTime, asked: make(chan struct{}, 1)}
}

// ask asks for a look, which run answers.
func (w *nodeWatch) ask(onTrial bool) {
	w.mu.Lock()
	w.onTrial = onTrial
	w.mu.Unlock()
	select {
	case w.asked <- struct{}{}:
	default:
	}
}

// newChild begins with the heartbeats of another child. What became of pods is remembered over the restarts of one configuration.
func (w *nodeWatch) newChild(content string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pods.Of != content {
		w.pods = podStarts{Of: content}
	}
	if w.seen.Known {
		w.seen = nodeSeen{Known: true, Before: true, Reference: w.seen.Newest, Newest: w.seen.Newest}
	}
}

func (w *nodeWatch) handOver() handedNode {
	w.mu.Lock()
	defer w.mu.Unlock()
	return handedNode{w.seen, w.pods}
}

func (w *nodeWatch) inherit(h handedNode) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen, w.pods = h.Seen, h.Pods
}

// run answers each request until ctx ends.
func (w *nodeWatch) run(ctx context.Context, tell func(core.ConditionsSeen)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.asked:
			if seen := w.see(ctx); ctx.Err() == nil {
				tell(seen)
			}
		}
	}
}

// see is one look. The API server reads etcd for it: a memory that is behind would take an old heartbeat for a new one.
func (w *nodeWatch) see(ctx context.Context) core.ConditionsSeen {
	client, name := w.client()
	if client == nil {
		return core.ConditionsSeen{}
	}
	before := w.handOver().Seen
	node, err := w.look(ctx, client, name)
	switch {
	case apierrors.IsForbidden(err):
		return core.ConditionsSeen{Problem: err.Error()}
	case err != nil:
		return core.ConditionsSeen{}
	}
	conditions := core.ConditionsOf(node)
	if !conditions.Known {
		return core.ConditionsSeen{}
	}
	seen, is := w.remember(before, heartbeatOf(node))
	if !is {
		return core.ConditionsSeen{}
	}
	return core.ConditionsSeen{Conditions: conditions, Posted: seen.Posted, Before: seen.Before && !seen.Posted,
		Pods: w.seePods(ctx, client, name)}
}

// seePods looks at the pods of a trial, until one that came since its start was started.
func (w *nodeWatch) seePods(ctx context.Context, client rest.Interface, name string) core.PodStarts {
	w.mu.Lock()
	onTrial, started, of := w.onTrial, w.pods.Started, w.pods.Of
	w.mu.Unlock()
	switch {
	case !onTrial:
		return core.PodStarts{}
	case started:
		return core.PodStarts{Known: true, Started: true}
	}
	pods, err := w.list(ctx, client, name)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil || w.pods.Of != of { // another configuration has been started since
		return core.PodStarts{}
	}
	return w.pods.look(pods, w.clock())
}

// remember keeps what was seen. It is false where another child was started during the look: of that the look says nothing.
func (w *nodeWatch) remember(before nodeSeen, heartbeat time.Time) (nodeSeen, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen != before {
		return w.seen, false
	}
	s := &w.seen
	switch {
	case !s.Known:
		s.Known, s.Reference = true, heartbeat
	case !heartbeat.Equal(s.Reference):
		s.Posted = true
	}
	s.Newest = heartbeat
	return *s, true
}

// heartbeatOf is when the kubelet has last posted the conditions, on its wall clock.
func heartbeatOf(node *corev1.Node) time.Time {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.LastHeartbeatTime.Time
		}
	}
	return time.Time{}
}
