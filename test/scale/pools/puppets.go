//go:build linux

package pools

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/status"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	refusedWords = "failed to validate kubelet configuration, error: invalid configuration: maxPods (--max-pods) -1 must not be a negative number"
	beginEvery   = 10 * time.Millisecond  // from one puppet to the next: each reads its Node, and then writes to it
	listenAgain  = 200 * time.Millisecond // where a watch has ended
	readAgain    = time.Second            // where a ConfigMap cannot be read
)

// A puppet is a node without a machine, with an identity and connections of its own. It hears what it is assigned, and answers with the
// supervisor's own publisher.
type puppet struct {
	name      string
	crew      *crew
	client    rest.Interface
	publisher *status.Publisher

	// What its kubelet would run, and has proven, as sources; and what was read of them. They are those of its listener.
	running, good string
	versions      map[string]*corev1.NodeConfigSource

	mutex sync.Mutex // guards what follows
	said  []saying   // in their order
}

// A saying is when a word was wanted to be on the Node: nobody can have read it there before. Acknowledged: by when it was there for certain;
// zero where another word has overtaken it.
type saying struct {
	reason, source       string
	wanted, acknowledged time.Time
}

// A crew is the puppets of a measurement.
type crew struct {
	trial   time.Duration
	puppets map[string]*puppet
	stop    context.CancelFunc
	running sync.WaitGroup

	mutex   sync.Mutex // guards what follows
	refusal int        // so many are yet to hear of an assignment until one refuses it; 0: nobody will
}

// newCrew lets the Nodes have puppets. They end with end.
func newCrew(ctx context.Context, c *cluster.Cluster, names []string, trial time.Duration) (*crew, error) {
	ctx, stop := context.WithCancel(ctx)
	k := &crew{trial: trial, puppets: make(map[string]*puppet, len(names)), stop: stop}
	for _, name := range names {
		identity, err := c.IdentityConfig("system:node:"+name, "system:nodes")
		if err != nil {
			return k, err
		}
		p := &puppet{name: name, crew: k, running: nodev1.Local, good: nodev1.Local, versions: map[string]*corev1.NodeConfigSource{}}
		if p.client, err = configsync.NewClient(identity); err != nil {
			return k, err
		}
		p.publisher = status.NewPublisher(status.Options{Client: p.client, NodeName: name, OnAcknowledged: p.acknowledged})
		k.puppets[name] = p
		k.running.Go(func() { _ = p.publisher.Run(ctx) }) // returns nil
		k.running.Go(func() { p.listen(ctx) })
		p.say("", rollout.Retry{}, nodev1.ReasonLocal)
		pause(ctx, beginEvery)
	}
	return k, nil
}

func (k *crew) end() {
	k.stop()
	k.running.Wait()
}

// refuseAfter lets the nth refuse that hears of an assignment from now on.
func (k *crew) refuseAfter(nth int) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.refusal = nth
}

// refuses tells one that hears of an assignment whether it refuses it.
func (k *crew) refuses() bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.refusal == 0 {
		return false
	}
	k.refusal--
	return k.refusal == 0
}

// listen hears of assignments, by a watch on the own Node as a supervisor does.
func (p *puppet) listen(ctx context.Context) {
	heard := ""
	var uid types.UID
	for ; ctx.Err() == nil; pause(ctx, listenAgain) {
		watch, err := p.client.Get().Resource("nodes").VersionedParams(&metav1.ListOptions{Watch: true,
			FieldSelector: fields.OneTermEqualSelector("metadata.name", p.name).String()}, scheme.ParameterCodec).Watch(ctx)
		if err != nil {
			continue
		}
		for event := range watch.ResultChan() {
			n, is := event.Object.(*corev1.Node)
			if !is {
				continue
			}
			source, retry := n.Annotations[nodev1.ConfigSourceAnnotation], n.Annotations[nodev1.RetryAnnotation]
			if uid != "" && uid != n.UID {
				heard = "another Node" // of the same name, which knows nothing of us
				p.publisher.NodeRecreated()
			}
			uid = n.UID
			if now := source + " " + retry; now != heard && (source != "" || heard != "") {
				heard = now
				p.obey(ctx, source, rollout.ParseRetry(retry))
			}
		}
	}
}

// obey goes the way of an assignment, to its end.
func (p *puppet) obey(ctx context.Context, source string, retry rollout.Retry) {
	if source == "" || source == nodev1.Local {
		p.running, p.good = nodev1.Local, nodev1.Local
		p.say(source, retry, nodev1.ReasonLocal)
		return
	}
	p.say(source, retry, nodev1.ReasonApplying)
	nature, err := p.read(ctx, source)
	for ; err != nil; nature, err = p.read(ctx, source) {
		if pause(ctx, readAgain); ctx.Err() != nil || p.overtaken(ctx, source) {
			return
		}
	}
	switch {
	case p.crew.refuses() || nature == refuses:
		p.say(source, retry, nodev1.ReasonRefused)
		return
	case nature == dies:
		p.dies(ctx, source, retry)
		return
	case p.good != source:
		p.running = source
		p.say(source, retry, nodev1.ReasonInTrial)
		pause(ctx, p.crew.trial)
	}
	p.running, p.good = source, source
	p.say(source, retry, nodev1.ReasonActive)
}

// overtaken says whether the Node asks for something else by now: what was assigned before may be collected for good.
func (p *puppet) overtaken(ctx context.Context, source string) bool {
	var n corev1.Node
	err := p.client.Get().Resource("nodes").Name(p.name).Do(ctx).Into(&n)
	return apierrors.IsNotFound(err) || err == nil && n.Annotations[nodev1.ConfigSourceAnnotation] != source
}

// dies tries a configuration that its kubelet dies of, and goes back to the last good one.
func (p *puppet) dies(ctx context.Context, source string, retry rollout.Retry) {
	p.running = source
	p.say(source, retry, nodev1.ReasonInTrial)
	pause(ctx, p.crew.trial)
	p.running = p.good
	p.say(source, retry, nodev1.ReasonRolledBack)
	pause(ctx, p.crew.trial)
	p.say(source, retry, nodev1.ReasonRejected)
}

// The natures of configurations: what the fake kubelet does with them, and so the puppets.
const (
	refuses = "refuse"
	dies    = "crash"
)

var natureIn = regexp.MustCompile(`"?mode"?: *"?(\w+)`)

// read reads the ConfigMap as a node may, and says of which nature it is.
func (p *puppet) read(ctx context.Context, source string) (nature string, err error) {
	words := strings.Split(source, "/")
	if len(words) != 3 {
		return "", fmt.Errorf("%q names no ConfigMap", source)
	}
	var object corev1.ConfigMap
	if err := p.client.Get().Namespace(words[0]).Resource("configmaps").Name(words[1]).Do(ctx).Into(&object); err != nil {
		return "", err
	}
	p.versions[source] = &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{Namespace: words[0], Name: words[1], KubeletConfigKey: words[2],
		UID: object.UID, ResourceVersion: object.ResourceVersion}}
	if found := natureIn.FindStringSubmatch(object.Data[words[2]]); found != nil {
		nature = found[1]
	}
	return nature, nil
}

// say publishes what a supervisor would.
func (p *puppet) say(source string, retry rollout.Retry, reason string) {
	p.mutex.Lock()
	p.said = append(p.said, saying{reason: reason, source: source, wanted: time.Now()})
	p.mutex.Unlock()
	is, message, failure := nodev1.ConditionStatus(reason), goodWords, ""
	var refusal *nodev1.Failure
	switch reason {
	case nodev1.ReasonApplying:
		message = "a change is under way"
	case nodev1.ReasonRefused:
		message, failure = refusedWords, core.ValidateError
		refusal = &nodev1.Failure{Kind: nodev1.FailureRefused, Message: refusedWords}
	case nodev1.ReasonRolledBack, nodev1.ReasonRejected:
		message, failure = "the kubelet has ended in its trial", core.RunError
		refusal = &nodev1.Failure{Kind: nodev1.FailureExited, Times: 3, Message: message}
	case nodev1.ReasonLocal:
		message = "nothing is assigned"
	}
	p.publisher.Offer(status.Report{Publication: nodev1.Publication{Observed: &source,
		Config:    corev1.NodeConfigStatus{Assigned: p.versions[source], Active: p.versions[p.running], LastKnownGood: p.versions[p.good], Error: failure},
		Status:    nodev1.Status{Reason: reason, Retry: retry.String(), Features: []string{nodev1.LayersFeature}, Failure: refusal},
		Condition: corev1.NodeCondition{Status: is, Reason: reason, Message: message}}})
}

func (p *puppet) acknowledged(r status.Report) {
	if r.Observed == nil {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if last := &p.said[len(p.said)-1]; last.reason == r.Condition.Reason && last.source == *r.Observed && last.acknowledged.IsZero() {
		last.acknowledged = time.Now()
	}
}

// since are its words from then on.
func (p *puppet) since(begin time.Time) (said []saying) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, s := range p.said {
		if !s.wanted.Before(begin) {
			said = append(said, s)
		}
	}
	return said
}
