package supervisor

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
)

// nodeWatch looks at the conditions of the Node, by the kubelet's identity, when the core asks for it.
type nodeWatch struct {
	client func() (rest.Interface, string) // nil while there is no connection; and the Node's name
	look   func(ctx context.Context, client rest.Interface, nodeName string) (*corev1.Node, error)
	asked  chan struct{}

	mu   sync.Mutex
	seen nodeSeen
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
	return &nodeWatch{client: client, look: configsync.ReadNode, asked: make(chan struct{}, 1)}
}

// ask asks for a look, which run answers.
func (w *nodeWatch) ask() {
	select {
	case w.asked <- struct{}{}:
	default:
	}
}

func (w *nodeWatch) newChild() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen.Known {
		w.seen = nodeSeen{Known: true, Before: true, Reference: w.seen.Newest, Newest: w.seen.Newest}
	}
}

func (w *nodeWatch) handOver() nodeSeen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

func (w *nodeWatch) inherit(seen nodeSeen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = seen
}

// run answers each request until ctx ends.
func (w *nodeWatch) run(ctx context.Context, tell func(decide.ConditionsSeen)) {
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
func (w *nodeWatch) see(ctx context.Context) decide.ConditionsSeen {
	client, name := w.client()
	if client == nil {
		return decide.ConditionsSeen{}
	}
	before := w.handOver()
	node, err := w.look(ctx, client, name)
	switch {
	case apierrors.IsForbidden(err):
		return decide.ConditionsSeen{Problem: err.Error()}
	case err != nil:
		return decide.ConditionsSeen{}
	}
	conditions := decide.ConditionsOf(node)
	if !conditions.Known {
		return decide.ConditionsSeen{}
	}
	seen, is := w.remember(before, heartbeatOf(node))
	if !is {
		return decide.ConditionsSeen{}
	}
	return decide.ConditionsSeen{Conditions: conditions, Posted: seen.Posted, Before: seen.Before && !seen.Posted}
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
