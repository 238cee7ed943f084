//go:build linux

package supervisor

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/status"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/metrics"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
)

const (
	kubeconfigRecheck = 10 * time.Second // a slow second look, where a change in the folder was missed
	flushTime         = 2 * time.Second  // for the last report, at the stop
	movesEvery        = time.Minute      // that an edit moved the pointers of a Node, and nothing else
	maxPayload        = 1 << 20
)

// apiSession keeps the connection to the API server: it waits for a kubeconfig, follows the Node and publishes on it, and starts again
// when the kubeconfig changes. Certificates that rotate under the kubeconfig are client-go's business.
type apiSession struct {
	*inputs
	*workers
	payloads *payloads
	metrics  *metrics.Metrics
	lease    *leaseWatch
	node     *nodeWatch
	recheck  time.Duration // after a session that could not begin

	mu        sync.Mutex
	client    rest.Interface
	nodeName  string
	publisher *status.Publisher
	follower  *configsync.Follower
	newest    *core.Statement
	events    []status.Event // that wait for a publisher
}

func newAPISession(in *inputs, w *workers, p *payloads, m *metrics.Metrics) *apiSession {
	a := &apiSession{inputs: in, workers: w, payloads: p, metrics: m, recheck: kubeconfigRecheck}
	a.lease, a.node = newLeaseWatch(in.TrialPeriod, a.connection), newNodeWatch(a.connection)
	return a
}

func (a *apiSession) connection() (rest.Interface, string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.client, a.nodeName
}

// run holds sessions until ctx ends.
func (a *apiSession) run(ctx context.Context) {
	path := a.kubeconfig()
	if path == "" {
		a.Logger.Info("the kubelet has no kubeconfig: nothing can be assigned to it through the API")
		return
	}
	a.spawn(func() { a.lease.run(ctx, func(seen core.LeaseSeen) { a.send(ctx, seen) }) })
	a.spawn(func() { a.node.run(ctx, func(seen core.ConditionsSeen) { a.send(ctx, seen) }) })
	for said := ""; ctx.Err() == nil; {
		content, err := kubeletconfig.ReadFile(path)
		if err == nil {
			err = a.session(ctx, path, content)
		}
		if err != nil && err.Error() != said && ctx.Err() == nil {
			said = err.Error()
			a.Logger.Warn("no connection to the API server yet; the kubelet runs without it", zap.Error(err))
		}
		awaitChange(ctx, path, content, a.recheck) // what it names may be fixed without a change of its own
	}
}

// session follows and publishes until the kubeconfig's bytes change or ctx ends.
func (a *apiSession) session(ctx context.Context, path string, content []byte) error {
	client, name, err := connect(path, a.NodeName, a.arguments, a.metrics)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	var tasks sync.WaitGroup
	var kept keptFields
	follower := configsync.NewFollower(configsync.Options{
		Client: client, NodeName: name, Namespaces: a.Namespaces, MaxPayload: maxPayload, KeepsFields: kept.get, Logger: a.Logger,
	})
	options := a.publishing(client, name, follower)
	options.OnKeepsFields = func(keeps bool) {
		if kept.set(keeps) {
			follower.Refresh()
		}
	}
	options.OnAcknowledged = func(r status.Report) {
		a.metrics.Said()
		if began := r.ChangeToReport; !began.IsZero() {
			a.send(ctx, core.Reported{Began: began})
		}
	}
	publisher := status.NewPublisher(options)
	if keys := a.clusterKeys(); len(keys) > 0 {
		a.send(ctx, core.ClusterSeen{Keys: keys}) // before anything that the Node says
	}
	a.begin(client, name, publisher, follower)
	defer a.end()
	defer tasks.Wait()
	defer end()
	updates := make(chan configsync.Update, 1)
	tasks.Go(func() { _ = publisher.Run(ctx) })
	tasks.Go(func() { _ = follower.Run(ctx, func(u configsync.Update) { replace(updates, u) }) })
	tasks.Go(func() { a.receive(ctx, updates, publisher.NodeRecreated) })
	a.Logger.Info("following the Node", zap.String("node", name))
	a.awaitOther(ctx, path, content)
	return nil
}

// publishing is how the Node is published on.
func (a *apiSession) publishing(client rest.Interface, name string, follower *configsync.Follower) status.Options {
	options := status.Options{Client: client, NodeName: name, Logger: a.Logger, FlushTime: flushTime, MovesEvery: movesEvery,
		OnLooked: follower.NodeIsAt}
	if a.EditSpread == 0 {
		options.MovesEvery = 0 // as upstream: each edit, and what is said of it, at once
	}
	return options
}

func (a *apiSession) begin(client rest.Interface, name string, publisher *status.Publisher, follower *configsync.Follower) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.client, a.nodeName, a.publisher, a.follower = client, name, publisher, follower
	if a.newest != nil {
		publisher.Offer(nodeReport(*a.newest))
	}
	for _, e := range a.events {
		publisher.Event(e)
	}
	a.events = nil
}

// end keeps what the publisher of a session that is over could not post, for the next one.
func (a *apiSession) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events = append(a.events, a.publisher.Unsent()...)
	a.publisher, a.follower = nil, nil
}

// observe offers what the Node should show, where it is known to be about what the Node shows as observed, and the events.
func (a *apiSession) observe(_ context.Context, d *decision) {
	if d.due && (d.shown.Observed != nil || d.after.NodeGone || d.after.Stopping) {
		a.offer(d.shown)
	}
	for _, e := range d.step.Events {
		a.event(e)
	}
}

func (a *apiSession) offer(r core.Statement) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.newest == nil || a.newest.Gist != r.Gist || a.newest.Reason != r.Reason {
		a.metrics.Saying()
	}
	a.newest = &r
	if a.publisher != nil {
		a.publisher.Offer(nodeReport(r))
	}
}

func (a *apiSession) event(e core.NodeEvent) {
	a.mu.Lock()
	defer a.mu.Unlock()
	event := status.Event{Time: time.Now(), Type: e.Type, Reason: e.Reason, Message: e.Message}
	if a.publisher != nil {
		a.publisher.Event(event)
		return
	}
	a.events = append(a.events, event)
	a.events = a.events[max(0, len(a.events)-status.MaxEvents):]
}

func (a *apiSession) reconsider() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.follower != nil {
		a.follower.Reconsider()
	}
}

func nodeReport(r core.Statement) status.Report {
	return status.Report{
		Publication: nodev1.Publication{
			Config: r.Config, Observed: r.Observed, Status: r.Details,
			Condition: corev1.NodeCondition{Status: r.Status, Reason: r.Reason, Message: status.Message(r.Parts...)},
		},
		ChangeToReport: r.ChangeToReport, Gist: r.Gist, Passing: r.Reason == nodev1.ReasonApplying,
	}
}

// keptFields remembers whether the API server keeps the fields of the original API.
type keptFields struct {
	mu   sync.Mutex
	keep bool
}

func (k *keptFields) get() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keep
}

func (k *keptFields) set(keep bool) (changed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	changed = k.keep != keep
	k.keep = keep
	return changed
}
