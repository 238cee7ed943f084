package sync

import (
	"context"
	"strconv"
	"sync/atomic"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// DefaultMaxPayload is the most that a ConfigMap may hold, in bytes of its values; as much as the API server takes.
const DefaultMaxPayload = 1 << 20

// Options of a Follower. Client and NodeName are needed.
type Options struct {
	// Client as made by NewClient, with the identity of the node.
	Client   rest.Interface
	NodeName string
	// Namespaces that ConfigMaps may be assigned from; "*" stands for all. None: nothing can be assigned.
	Namespaces []string
	// MaxPayload in bytes of all values; 0 is DefaultMaxPayload.
	MaxPayload int
	// KeepsFields reports whether the API server keeps spec.configSource, so that the whole Node has to be watched and not
	// only its metadata. nil is no. A Node that was found with the fields is watched whole in any case. It is called from
	// other goroutines than Run's.
	KeepsFields func() bool
	// Logger gets the details of failures; nil is none.
	Logger *zap.Logger
}

// Follower follows the Node and the ConfigMap assigned to it.
type Follower struct {
	options     Options
	logger      *zap.Logger
	reachable   atomic.Bool
	nodeAt      atomic.Value // string: resourceVersion of the Node that was seen last
	reconsider  chan struct{}
	refresh     chan struct{}
	nodeSeen    chan seen
	payloadSeen chan seen
}

// NewFollower makes a Follower; nothing happens before Run.
func NewFollower(options Options) *Follower {
	if options.MaxPayload == 0 {
		options.MaxPayload = DefaultMaxPayload
	}
	if options.Logger == nil {
		options.Logger = zap.NewNop()
	}
	return &Follower{
		options:     options,
		logger:      options.Logger,
		reconsider:  make(chan struct{}, 1),
		refresh:     make(chan struct{}, 1),
		nodeSeen:    make(chan seen),
		payloadSeen: make(chan seen),
	}
}

// Reconsider reads the Node and the ConfigMap again at once, without waiting for a retry or a poll that is due.
func (f *Follower) Reconsider() { poke(f.reconsider) }

// Refresh restarts the watch of the Node, because KeepsFields has changed.
func (f *Follower) Refresh() { poke(f.refresh) }

// Reachable reports whether the follower's last request got an answer from the API server, be it a refusal.
func (f *Follower) Reachable() bool { return f.reachable.Load() }

// NodeIsAt receives the resourceVersion of the Node from any code that has read it. One that is older than what was seen here comes from an
// etcd that was restored from a backup, where watches that go on from later versions stay silent.
func (f *Follower) NodeIsAt(version string) {
	if seen, _ := f.nodeAt.Load().(string); older(version, seen) {
		f.logger.Warn("the API server has an older Node than before, as after a restored backup; everything is read again",
			zap.String("resourceVersion", version), zap.String("before", seen))
		f.Reconsider()
	}
}

// older is false where versions are not the numbers that they are with etcd.
func older(version, than string) bool {
	a, errA := strconv.ParseUint(version, 10, 64)
	b, errB := strconv.ParseUint(than, 10, 64)
	return errA == nil && errB == nil && a < b
}

func poke(channel chan<- struct{}) {
	select {
	case channel <- struct{}{}:
	default: // one is waiting already
	}
}

// Run reports what the Node asks for, then every change of it, every failure to get it and its healing, until ctx ends. It
// returns nil then. tell is called from this goroutine alone, and never twice in a row with the same. Run it once.
func (f *Follower) Run(ctx context.Context, tell func(Update)) error {
	ctx, cancel := context.WithCancel(ctx)
	v := &view{options: f.options, logger: f.logger}
	node := f.start(ctx, f.nodeObject())
	var payload *task
	defer func() {
		cancel()
		node.stop()
		payload.stop()
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.refresh:
			node.lookAgain()
		case <-f.reconsider:
			node.lookAgain()
			payload.lookAgain()
		case seen := <-f.payloadSeen:
			v.sawPayload(seen)
		case seen := <-f.nodeSeen:
			if seen.object != nil {
				f.nodeAt.Store(seen.object.GetResourceVersion())
			}
			if v.sawNode(seen) {
				payload.stop()
				payload = f.followPayload(ctx, v.download())
			}
		}
		if update, news := v.news(); news {
			tell(update)
		}
	}
}

func (f *Follower) nodeObject() *object {
	return &object{
		resource: "nodes",
		name:     f.options.NodeName,
		found:    deliver(f.nodeSeen),
		needsWhole: func(listed metav1.Object) bool {
			node, ok := listed.(*corev1.Node)
			return ok && (node.Spec.ConfigSource != nil || node.Status.Config != nil) ||
				f.options.KeepsFields != nil && f.options.KeepsFields()
		},
	}
}

func (f *Follower) followPayload(ctx context.Context, source *corev1.ConfigMapNodeConfigSource) *task {
	if source == nil {
		return nil
	}
	return f.start(ctx, &object{
		resource:   "configmaps",
		namespace:  source.Namespace,
		name:       source.Name,
		found:      deliver(f.payloadSeen),
		needsWhole: func(metav1.Object) bool { return true },
	})
}

func deliver(to chan<- seen) func(context.Context, seen) {
	return func(ctx context.Context, seen seen) {
		select {
		case to <- seen:
		case <-ctx.Done():
		}
	}
}

// task is an object being followed by a goroutine of its own. A nil task is none.
type task struct {
	cancel context.CancelFunc
	done   chan struct{}
	again  chan struct{}
}

func (f *Follower) start(ctx context.Context, o *object) *task {
	ctx, cancel := context.WithCancel(ctx)
	t := &task{cancel: cancel, done: make(chan struct{}), again: make(chan struct{}, 1)}
	o.client, o.reached, o.logger, o.again = f.options.Client, &f.reachable, f.logger, t.again
	go func() {
		defer close(t.done)
		o.run(ctx)
	}()
	return t
}

// stop ends the task and waits for that; nothing it saw arrives afterwards.
func (t *task) stop() {
	if t != nil {
		t.cancel()
		<-t.done
	}
}

func (t *task) lookAgain() {
	if t != nil {
		poke(t.again)
	}
}
