//go:build e2e

package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/status"
)

// puppet is a node without a machine. It hears what it is assigned, and answers with the supervisor's own publisher.
type puppet struct {
	name      string
	crew      *crew
	rest      *rest.RESTClient
	publisher *status.Publisher

	mutex   sync.Mutex
	words   map[string]saying // the first of each REASON of each source
	last    map[string]saying // and the last
	running string            // what its kubelet runs, as a source
	good    string
	// versions are what it has read, by source; its own goroutine's.
	versions map[string]*corev1.NodeConfigSource
}

// crew is the puppets of a test.
type crew struct {
	t     *testing.T
	f     *fleet
	pool  string
	trial time.Duration
	// nature says what a configuration does to a node: "" is nothing bad; Refused, RolledBack or NotReady.
	nature func(node, payload string) string
	// holds says whether pods on a node still hold a change; without it they do for ever.
	holds   func(node string) bool
	puppets map[string]*puppet
	// settled: nodes that are made now have been there for a day.
	settled bool
	// supervisor is the real node's program; "" is that of this tree.
	supervisor string
	// realSince is when the real node became one of it; zero is never.
	realSince time.Time
}

const poolLabel = "kubelet-supervisor.io/pool-of"

// newCrew makes Nodes and puppets for them. They end with the test, and their Nodes go.
func newCrew(t *testing.T, pool string, count int, change func(*corev1.Node)) *crew {
	t.Helper()
	return shared(t).newCrew(t, pool, count, change)
}

// newCrew is one of a cluster of the test's own. Its nodes have been there for a day: those that are added later are new.
func (f *fleet) newCrew(t *testing.T, pool string, count int, change func(*corev1.Node)) *crew {
	t.Helper()
	c := &crew{t: t, f: f, pool: pool, trial: 500 * time.Millisecond, puppets: map[string]*puppet{}, settled: true}
	c.add(count, change)
	c.settled = false
	return c
}

func (c *crew) add(count int, change func(*corev1.Node)) {
	c.t.Helper()
	begin := len(c.puppets)
	errs := make(chan error)
	var mutex sync.Mutex
	slots := make(chan struct{}, 8)
	for i := range count {
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			p, err := c.join(fmt.Sprintf("%s-%d", c.pool, begin+i+1), change)
			mutex.Lock()
			if err == nil {
				c.puppets[p.name] = p
			}
			mutex.Unlock()
			errs <- err
		}()
	}
	var failure error
	for range count {
		failure = errors.Join(failure, <-errs)
	}
	if failure != nil {
		c.t.Fatal(failure)
	}
}

// join makes one Node, Ready unless changed, and lets its supervisor speak.
func (c *crew) join(name string, change func(*corev1.Node)) (*puppet, error) {
	ctx := c.t.Context()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{poolLabel: c.pool}}}
	n.Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", Architecture: "amd64", BootID: "boot-1"}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
	if change != nil {
		change(n)
	}
	state := n.Status
	if err := c.f.admin.Create(ctx, n); err != nil {
		return nil, err
	}
	n.Status = state
	if err := c.f.admin.Status().Update(ctx, n); err != nil {
		return nil, err
	}
	if c.settled {
		if err := c.store(n, old); err != nil {
			return nil, err
		}
	}
	config, err := c.f.IdentityConfig("system:node:"+name, "system:nodes")
	if err != nil {
		return nil, err
	}
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme.Scheme).WithoutConversion()
	p := &puppet{name: name, crew: c, words: map[string]saying{}, last: map[string]saying{}, running: nodev1.Local, good: nodev1.Local,
		versions: map[string]*corev1.NodeConfigSource{}}
	if p.rest, err = rest.RESTClientFor(config); err != nil {
		return nil, err
	}
	p.publisher = status.NewPublisher(status.Options{Client: p.rest, NodeName: name, OnAcknowledged: p.acknowledged})
	p.begin()
	p.say("", rollout.Retry{}, nodev1.ReasonLocal, "")
	return p, nil
}

// begin starts the puppet's goroutines, for which the test waits.
func (p *puppet) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	var both sync.WaitGroup
	both.Add(2)
	go func() { defer both.Done(); _ = p.publisher.Run(ctx) }()
	go func() { defer both.Done(); p.listen(ctx) }()
	p.crew.t.Cleanup(func() {
		cancel()
		both.Wait()
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: p.name}}
		_ = p.crew.f.admin.Delete(context.Background(), n)
	})
}

// saying is when a word was wanted to be on the Node; nobody can have heard it before. Acknowledged: when it was for certain. Zero: another word
// has overtaken it.
type saying struct{ wanted, acknowledged time.Time }

func (p *puppet) acknowledged(r status.Report) {
	if r.Observed == nil {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	key, now := r.Condition.Reason+" "+*r.Observed, time.Now()
	for _, words := range []map[string]saying{p.words, p.last} {
		if s, is := words[key]; is && s.acknowledged.IsZero() {
			words[key] = saying{s.wanted, now}
		}
	}
}

func (p *puppet) said(reason, source string) saying {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.words[reason+" "+source]
}

func (p *puppet) saidLast(reason, source string) saying {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.last[reason+" "+source]
}

// listen hears of assignments, by a watch on the own Node as a supervisor does.
func (p *puppet) listen(ctx context.Context) {
	var heard string
	for ctx.Err() == nil {
		watch, err := p.rest.Get().Resource("nodes").VersionedParams(&metav1.ListOptions{Watch: true,
			FieldSelector: fields.OneTermEqualSelector("metadata.name", p.name).String()}, scheme.ParameterCodec).Watch(ctx)
		if err != nil {
			wait(ctx, 200*time.Millisecond)
			continue
		}
		for event := range watch.ResultChan() {
			n, is := event.Object.(*corev1.Node)
			if !is {
				continue
			}
			source, retry := n.Annotations[nodev1.ConfigSourceAnnotation], n.Annotations[nodev1.RetryAnnotation]
			consent := n.Annotations[nodev1.AllowDisruptionAnnotation]
			if now := source + " " + retry + " " + consent; now != heard && source != "" {
				heard = now
				p.obey(ctx, source, rollout.ParseRetry(retry), consent)
			}
		}
	}
}

func wait(ctx context.Context, time_ time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(time_):
	}
}

// obey goes the way of an assignment, to its end.
func (p *puppet) obey(ctx context.Context, source string, retry rollout.Retry, consent string) {
	say := func(reason string) { p.say(source, retry, reason, "") }
	say(nodev1.ReasonApplying)
	if source == nodev1.Local {
		p.running, p.good = source, source
		say(nodev1.ReasonLocal)
		return
	}
	nature, err := p.natureOf(ctx, source)
	switch {
	case err != nil:
		p.say(source, retry, nodev1.ReasonSyncFailed, err.Error())
		return
	case nature == nodev1.ReasonRefused:
		say(nature)
		return
	}
	if given, _ := nodev1.Approval(wouldDisruptDigest).GivenBy(consent); nature == nodev1.ReasonWouldDisrupt && !given {
		say(nature)
		if !p.passes(ctx) {
			return
		}
	}
	if p.good == source {
		p.running = source
		say(nodev1.ReasonActive)
		return
	}
	before := p.running
	p.running = source
	say(nodev1.ReasonInTrial)
	wait(ctx, p.crew.trial)
	switch nature {
	case nodev1.ReasonRolledBack, nodev1.ReasonRejected:
		p.running = before
		say(nodev1.ReasonRolledBack)
		if nature == nodev1.ReasonRejected {
			wait(ctx, p.crew.trial)
			say(nature)
		}
	case "NotReady":
		p.ready(ctx, false)
	default:
		p.good = source
		say(nodev1.ReasonActive)
	}
}

// passes waits until no pod holds the change any more, as a supervisor that looks again and again.
func (p *puppet) passes(ctx context.Context) bool {
	for p.crew.holds != nil && ctx.Err() == nil {
		if !p.crew.holds(p.name) {
			return ctx.Err() == nil
		}
		wait(ctx, 200*time.Millisecond)
	}
	return false
}

// natureOf reads the payload as the node may read it.
func (p *puppet) natureOf(ctx context.Context, source string) (string, error) {
	from := sourceOf(source)
	if from == nil {
		return "", fmt.Errorf("%q is no source", source)
	}
	var object corev1.ConfigMap
	if err := p.rest.Get().Namespace(from.ConfigMap.Namespace).Resource("configmaps").Name(from.ConfigMap.Name).Do(ctx).Into(&object); err != nil {
		return "", err
	}
	payload, is := object.Data[from.ConfigMap.KubeletConfigKey]
	if !is {
		return "", fmt.Errorf("ConfigMap %s has no key %s", object.Name, from.ConfigMap.KubeletConfigKey)
	}
	from.ConfigMap.UID, from.ConfigMap.ResourceVersion = object.UID, object.ResourceVersion
	p.versions[source] = from
	if p.crew.nature == nil {
		return "", nil
	}
	return p.crew.nature(p.name, payload), nil
}

// say publishes what a supervisor would.
func (p *puppet) say(source string, retry rollout.Retry, reason, detail string) {
	p.mutex.Lock()
	key := reason + " " + source
	p.last[key] = saying{wanted: time.Now()}
	if _, before := p.words[key]; !before {
		p.words[key] = p.last[key]
	}
	p.mutex.Unlock()
	message, failure := p.wording(source, reason, detail)
	assigned := source
	if reason == nodev1.ReasonWouldDisrupt {
		assigned = p.running // what is held is not taken yet
	}
	p.publisher.Offer(status.Report{Publication: nodev1.Publication{Observed: &source, Status: statusOf(reason, retry.String(), detail),
		Config: corev1.NodeConfigStatus{Assigned: p.version(assigned), Active: p.version(p.running), LastKnownGood: p.version(p.good),
			Error: failure},
		Condition: corev1.NodeCondition{Status: nodev1.ConditionStatus(reason), Reason: reason, Message: message}}})
}

// ready says what a kubelet would, or what the controller manager would say in its place.
func (p *puppet) ready(ctx context.Context, is bool) {
	state := "True"
	if !is {
		state = "Unknown"
	}
	body := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q}]}}`, state)
	err := p.rest.Patch(types.StrategicMergePatchType).Resource("nodes").Name(p.name).SubResource("status").Body([]byte(body)).Do(ctx).Error()
	if err != nil && ctx.Err() == nil {
		p.crew.t.Errorf("%s: %v", p.name, err)
	}
}
