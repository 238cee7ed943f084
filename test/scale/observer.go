//go:build linux

package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

const (
	rewatchAfter = 50 * time.Millisecond // where the API server is away
	wavePatience = 8 * time.Minute       // for what takes a minute or two
)

// An observer sees all Nodes by one watch, begun anew whenever it ends.
type observer struct {
	client rest.Interface

	mutex sync.Mutex // guards what follows
	nodes map[string]view
	goal  *goal
}

// A goal is what every node is awaited to say, and when each first did.
type goal struct {
	is   func(view) bool
	met  map[string]time.Time
	news chan struct{} // capacity 1
}

// A view is what a Node says of its kubelet's configuration.
type view struct {
	known  bool // config-status is there
	config corev1.NodeConfigStatus
	status corev1.ConditionStatus // that the reason has
	reason string
}

func viewOf(n *corev1.Node) view {
	says := nodev1.Read(n)
	return view{says.Supervised && says.Problem == nil, says.Config, nodev1.ConditionStatus(says.Status.Reason), says.Status.Reason}
}

// local: a kubelet with the node's own configuration is healthy.
func (v view) local() bool { return v.known && v.reason == "Local" }

// active is the version that a healthy kubelet was seen to run; "" while there is none, or something is wrong.
func (v view) active() string {
	source := v.config.Active
	if source == nil || source.ConfigMap == nil || v.config.Error != "" || v.status != corev1.ConditionTrue {
		return ""
	}
	return source.ConfigMap.ResourceVersion
}

func (v view) runs(version string) bool   { return v.active() == version }
func (v view) follows(before string) bool { return v.active() != "" && v.active() != before }

func (v view) String() string {
	text, err := json.Marshal(v.config)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s %s %s", v.status, v.reason, text)
}

// watch watches until ctx ends.
func (o *observer) watch(ctx context.Context) {
	for ctx.Err() == nil {
		events, err := o.client.Get().Resource("nodes").Param("watch", "true").Watch(ctx)
		if err != nil {
			pause(ctx, rewatchAfter)
			continue
		}
		for event := range events.ResultChan() {
			if node, is := event.Object.(*corev1.Node); is {
				o.saw(node, time.Now())
			}
		}
		events.Stop()
	}
}

func (o *observer) saw(node *corev1.Node, at time.Time) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	v := viewOf(node)
	o.nodes[node.Name] = v
	o.goal.look(node.Name, v, at)
}

func (g *goal) look(name string, v view, at time.Time) {
	if g == nil || !g.met[name].IsZero() || !g.is(v) {
		return
	}
	g.met[name] = at
	select {
	case g.news <- struct{}{}:
	default:
	}
}

// expect sets what is awaited from now on. Nodes that are so already count, too.
func (o *observer) expect(is func(view) bool) *goal {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.goal = &goal{is: is, met: map[string]time.Time{}, news: make(chan struct{}, 1)}
	now := time.Now()
	for name, v := range o.nodes {
		o.goal.look(name, v, now)
	}
	return o.goal
}

// await waits until so many nodes have met the goal, and gives the moments, sorted.
func (o *observer) await(ctx context.Context, g *goal, nodes int) ([]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, wavePatience)
	defer cancel()
	for {
		o.mutex.Lock()
		met := len(g.met)
		o.mutex.Unlock()
		if met >= nodes {
			return o.moments(g), nil
		}
		select {
		case <-g.news:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %s", context.Cause(ctx), o.missing(g))
		}
	}
}

func (o *observer) moments(g *goal) (moments []time.Time) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for _, at := range g.met {
		moments = append(moments, at)
	}
	slices.SortFunc(moments, time.Time.Compare)
	return moments
}

// missing names nodes that have not met the goal, some of them.
func (o *observer) missing(g *goal) string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	var names []string
	for name := range o.nodes {
		if g.met[name].IsZero() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	text := fmt.Sprintf("%d of %d nodes are as awaited", len(g.met), len(o.nodes))
	for _, name := range names[:min(3, len(names))] {
		text += fmt.Sprintf("; %s says %s", name, o.nodes[name])
	}
	return text
}

// instead counts, for each reason, the nodes that have not met the goal, such as "3 InTrial, 1 RolledBack".
func (o *observer) instead(g *goal) string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	count := map[string]int{}
	for name, v := range o.nodes {
		if g.met[name].IsZero() {
			count[v.reason]++
		}
	}
	var words []string
	for _, reason := range slices.Sorted(maps.Keys(count)) {
		words = append(words, fmt.Sprintf("%d %s", count[reason], reason))
	}
	return strings.Join(words, ", ")
}

// hold fails unless every node says so now: what was seen once may have been lost since.
func (o *observer) hold(what string, is func(view) bool) error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for name, v := range o.nodes {
		if !is(v) {
			return fmt.Errorf("node %s does not say %s any more, but %s", name, what, v)
		}
	}
	return nil
}

// pause waits for d, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
