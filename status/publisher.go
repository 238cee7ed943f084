package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

const (
	requestTimeout   = 10 * time.Second
	defaultFlushTime = 2 * time.Second
	flushRetry       = 250 * time.Millisecond
	fieldManager     = "kubelet-supervisor"
)

// Report is what the Node should show.
type Report struct {
	nodev1.Publication
	// ChangeToReport is when a change began whose end this is the first to tell; zero: none. It is the caller's own.
	ChangeToReport time.Time
	// Gist is what the report says apart from uids and resourceVersions. Of one whose gist, verdict and assignment are on the Node already,
	// only these are news, which can wait. Empty: it cannot.
	Gist string
	// Passing is set where the report says what goes on, and not what came of it.
	Passing bool
}

// Options of a Publisher. Client and NodeName are needed. The functions are called from Run's goroutine.
type Options struct {
	// Client for core/v1 with the identity of the node.
	Client   rest.Interface
	NodeName string
	// OnKeepsFields receives whether the API server keeps the fields of the removed feature, when the first report has been
	// published and whenever that turns out to have changed.
	OnKeepsFields func(bool)
	// OnAcknowledged receives each report that the Node has been seen to carry.
	OnAcknowledged func(Report)
	// OnLooked receives the resourceVersion of the Node each time that the Node was read.
	OnLooked func(resourceVersion string)
	// FlushTime is how long Run goes on trying to publish after its context has ended; 0 is 2 s.
	FlushTime time.Duration
	// MovesEvery is how often uids and resourceVersions that have moved, and nothing else, are published at most; with as much jitter.
	// 0: everything is published at once.
	MovesEvery time.Duration
	// CheckEvery is how often the Node is looked at, ±20 %, though there is nothing to publish; 0 is 10 min.
	CheckEvery time.Duration
	Logger     *zap.Logger // nil is none
}

// Publisher makes the Node show the newest report. Its methods may be called from any goroutine and never block.
type Publisher struct {
	options Options
	logger  *zap.Logger
	wake    chan struct{} // capacity 1

	mutex        sync.Mutex
	offered      *offer  // to be published; nil when the Node carries the newest
	acknowledged *Report // what the Node carries; nil when unknown
	forget       bool    // the Node was created again
	events       []*corev1.Event
	lastEvent    int64

	// Run's alone:
	node     *seenNode // nil when unknown
	patched  time.Time // when the last patch was made
	flips    flips
	moveAt   time.Time     // when a move is published; zero = none waits
	checkAt  time.Time     // when the Node is looked at; zero = never
	soon     time.Duration // before the next look, where a patch without an answer may come late; 0 = none may
	flushing bool          // nothing waits
}

// offer is a report and when it was made.
type offer struct {
	report Report
	at     time.Time
}

// seenNode is what is known of the Node since it was last read or patched.
type seenNode struct {
	uid    types.UID
	says   nodev1.NodeStatus
	shows  shown // after the last patch
	keeps  bool  // its API server keeps the fields
	probed bool  // keeps is known
}

// NewPublisher makes a Publisher; nothing is published before Run.
func NewPublisher(options Options) *Publisher {
	if options.FlushTime == 0 {
		options.FlushTime = defaultFlushTime
	}
	if options.CheckEvery == 0 {
		options.CheckEvery = defaultCheck
	}
	if options.Logger == nil {
		options.Logger = zap.NewNop()
	}
	return &Publisher{options: options, logger: options.Logger, wake: make(chan struct{}, 1)}
}

// Offer gives a report to publish, which replaces any that is not published yet. One that says what the Node carries
// already is not published again.
func (p *Publisher) Offer(report Report) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	current := p.acknowledged
	if p.offered != nil {
		current = &p.offered.report
	}
	if current != nil && report.Observed == nil {
		report.Observed = current.Observed
	}
	if current != nil && same(*current, report) {
		return
	}
	p.offered = &offer{report, time.Now()}
	p.poke()
}

// NodeRecreated says that the Node is a new one of the same name, which carries nothing yet.
func (p *Publisher) NodeRecreated() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.again()
	p.forget = true // else one that is being published to the old Node would acknowledge it
	p.poke()
}

// again offers what was published once more. The mutex is held.
func (p *Publisher) again() {
	if p.offered == nil && p.acknowledged != nil {
		p.offered = &offer{*p.acknowledged, time.Now()}
	}
	p.acknowledged = nil
}

func (p *Publisher) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Run publishes until ctx ends and then, for at most FlushTime, what was offered before that and is not published yet. It
// returns nil. Run it once.
func (p *Publisher) Run(ctx context.Context) error {
	// Retries: 1 s doubling to 2 min, ±20 %, for ever. A new report is tried at once.
	retry := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(time.Second), backoff.WithMultiplier(2), backoff.WithMaxInterval(2*time.Minute),
		backoff.WithRandomizationFactor(0.2), backoff.WithMaxElapsedTime(0))
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			p.flush(ctx)
			return nil
		case <-p.wake:
			retry.Reset() // a few changes in an outage must not make the last of them wait for minutes after it
		case <-due:
		}
		next, err := p.work(ctx)
		if err == nil {
			retry.Reset()
			if !next.IsZero() {
				due = time.After(time.Until(next))
			}
			continue
		}
		delay := retry.NextBackOff()
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			delay = min(max(delay, time.Duration(seconds)*time.Second), retry.MaxInterval)
		}
		due = time.After(delay)
		switch {
		case ctx.Err() != nil:
		case apierrors.IsNotFound(err):
			p.logger.Info("there is no Node to publish on yet", zap.String("node", p.options.NodeName), zap.Duration("nextTry", delay))
		default:
			p.logger.Warn("publishing on the Node failed", zap.Error(err), zap.Duration("nextTry", delay))
		}
	}
}

// flush gives what is left a last chance, after ctx has ended.
func (p *Publisher) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.options.FlushTime)
	defer cancel()
	p.flushing = true
	for {
		_, err := p.work(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			p.logger.Warn("the last report could not be published on the Node", zap.Error(err))
			return
		case <-time.After(flushRetry):
		}
	}
}

// work does what there is to do now, and says when there is more; zero = when more is offered.
func (p *Publisher) work(ctx context.Context) (next time.Time, err error) {
	for {
		offered, at := p.next()
		switch {
		case offered != nil && !time.Now().Before(at):
			if err = p.publish(ctx, *offered); err == nil {
				p.acknowledge(offered)
			}
		case p.checkDue():
			err = p.check(ctx)
		default:
			return sooner(at, p.checkAt), p.sendEvents(ctx) // what waits has been published before, so a look is due some time
		}
		if err != nil {
			return next, err
		}
	}
}

// next is what to publish, and from when on; nil when the Node carries the newest.
func (p *Publisher) next() (*offer, time.Time) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.forget {
		p.node, p.forget = nil, false
	}
	if p.offered != nil && p.acknowledged != nil && same(p.offered.report, *p.acknowledged) {
		p.offered = nil // the waiting report was withdrawn
	}
	if p.offered == nil {
		p.moveAt = time.Time{}
		return nil, time.Time{}
	}
	return p.offered, p.notBefore(p.offered.report)
}

func (p *Publisher) acknowledge(published *offer) {
	p.patched, p.moveAt, p.flips = time.Now(), time.Time{}, p.flips.with(published.report)
	p.scheduleCheck()
	p.mutex.Lock()
	if !p.forget {
		p.acknowledged = &published.report // if nothing newer was offered, next sees that there is nothing left
	}
	p.mutex.Unlock()
	if p.options.OnAcknowledged != nil {
		p.options.OnAcknowledged(published.report)
	}
}

// publish makes the Node show an offer; nil says that it was seen to.
func (p *Publisher) publish(ctx context.Context, o offer) error {
	if err := p.meet(ctx); err != nil {
		return err
	}
	patch, err := patchOf(o, p.node.says, p.node.keeps || !p.node.probed)
	if err != nil {
		return err
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	var node corev1.Node
	err = p.options.Client.Patch(types.StrategicMergePatchType).Resource("nodes").Name(p.options.NodeName).SubResource("status").
		Param("fieldManager", fieldManager).Body(body).Timeout(requestTimeout).MaxRetries(0).Do(ctx).Into(&node)
	if err != nil {
		p.doubt(err)
		if apierrors.IsNotFound(err) {
			p.node = nil
		}
		return fmt.Errorf("patching the status of Node %s: %w", p.options.NodeName, err)
	}
	p.saw(&node)
	if !patch.CarriedBy(&node) {
		return fmt.Errorf("patching the status of Node %s: the API server did not keep the annotations; "+
			"look for an admission webhook or policy that removes them", p.options.NodeName)
	}
	return nil
}

// doubt: a patch that failed may have been made anyway. One without an answer may still be under way, and be made after the next.
func (p *Publisher) doubt(err error) {
	if answer := apierrors.APIStatus(nil); !errors.As(err, &answer) || answer.Status().Code >= http.StatusInternalServerError {
		p.soon = checkSoon
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.acknowledged = nil
}

// meet reads the Node before the first patch, for its uid and its present condition.
func (p *Publisher) meet(ctx context.Context) error {
	if p.node != nil {
		return nil
	}
	node, err := p.read(ctx)
	if err != nil {
		return err
	}
	p.node = &seenNode{uid: node.UID, says: nodev1.Read(node)}
	if says := &p.node.says; p.patched.IsZero() && says.Supervised && says.Status.Reason != nodev1.ReasonStopped {
		p.soon = min(checkSoon, p.options.CheckEvery) // the process before has not said its last word, which may be under way
	}
	return nil
}

// read gives the Node out of etcd: an API server's memory may be older than what was seen, and does not know of a restored backup.
func (p *Publisher) read(ctx context.Context) (*corev1.Node, error) {
	var node corev1.Node
	err := p.options.Client.Get().Resource("nodes").Name(p.options.NodeName).Timeout(requestTimeout).MaxRetries(0).Do(ctx).Into(&node)
	if err != nil {
		return nil, fmt.Errorf("reading Node %s: %w", p.options.NodeName, err)
	}
	return &node, nil
}

// saw takes in the Node that a patch has resulted in.
func (p *Publisher) saw(node *corev1.Node) {
	before := p.node
	p.node = &seenNode{uid: node.UID, says: nodev1.Read(node), shows: shownBy(node), keeps: before.keeps, probed: before.probed}
	p.learnKeeps(keepsFields(node))
}

func (p *Publisher) learnKeeps(keeps bool) {
	news := !p.node.probed || p.node.keeps != keeps
	p.node.keeps, p.node.probed = keeps, true
	if news && p.options.OnKeepsFields != nil {
		p.options.OnKeepsFields(keeps)
	}
}

// same reports whether two reports say the same.
func same(a, b Report) bool {
	x, y := a.Condition, b.Condition
	return x.Status == y.Status && x.Reason == y.Reason && x.Message == y.Message &&
		reflect.DeepEqual(a.Observed, b.Observed) && reflect.DeepEqual(a.Config, b.Config) && a.Status.News() == b.Status.News()
}
