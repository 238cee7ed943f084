package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/json"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// Mark returns what a pool has assigned to the node.
func (v Node) Mark() rollout.Mark {
	return rollout.ParseMark(v.Annotations[rollout.MarkAnnotation])
}

// MemberOf returns the pool whose assignment the node has; "" if there is none, or if a user has assigned
// something else since.
func (v Node) MemberOf() string {
	node := rollout.ReadNode(v.Node)
	if !node.Mark.Records(node.Source) {
		return ""
	}
	return node.Mark.Pool
}

// HeldOut reports whether the label keeps the node out of all pools.
func (v Node) HeldOut() bool { return v.Labels[rollout.PoolLabel] == NoPool }

// PoolText returns the pool that assigned something to the node, and whether the pool still controls it.
func (v Node) PoolText() string {
	switch name := bounded.Line(v.Mark().Pool); {
	case name == "":
		return "<none>"
	case v.HeldOut():
		return name + " (released)"
	case v.MemberOf() == "":
		return name + " (by hand)"
	default:
		return name
	}
}

// LeavesPool returns the pool that the node is in, and would leave by a manual assignment or a reset.
func (v Node) LeavesPool(pools []rollout.Pool, reset bool) string {
	if v.HeldOut() {
		return ""
	}
	if name := v.MemberOf(); name != "" {
		return name
	}
	node := rollout.ReadNode(v.Node)
	owners := rollout.Owners(pools, &node)
	if reset || len(owners) != 1 || node.Source != "" || node.Mark.Pool != "" {
		return ""
	}
	i := slices.IndexFunc(pools, func(p rollout.Pool) bool { return p.Name == owners[0] })
	if pools[i].Spec.Adoption == v1alpha1.AdoptNever {
		return ""
	}
	return owners[0] // its pool has not assigned anything yet
}

// AssignmentText returns the assignment for people, without a uid.
func (v Node) AssignmentText() string {
	if r, ok := v.Current(); ok {
		return r.Unpinned().String()
	}
	return bounded.Line(v.Says.Assignment)
}

// MayLayer returns an error if a node cannot have layers, because its supervisor is too old and would refuse them.
// It returns nil for a node without a supervisor, about which nothing is known.
func (v Node) MayLayer() error {
	if !v.Says.Supervised || v.Says.Knows(nodev1.LayersFeature) {
		return nil
	}
	return fmt.Errorf("the supervisor of node %s is too old for layers (annotation %s of the node does not name them): upgrade kubelet-supervisor there, or push a whole file: "+
		"kubectl kubelet config %s --changed >kubelet.yaml, and push -f kubelet.yaml", bounded.Line(v.Name), nodev1.StatusAnnotation, bounded.Line(v.Name))
}

// TrialLeft returns how much of a trial is left at most, and its length. The trial's clock stops while the kubelet
// is not healthy or its Lease is not renewed. A length of 0 means unknown.
func (v Node) TrialLeft(now time.Time) (left, of time.Duration) {
	trial := v.Says.Status.Trial
	if trial == nil {
		return 0, 0
	}
	of, err := time.ParseDuration(trial.Of)
	healthy, none := time.ParseDuration(trial.Healthy)
	if err != nil || none != nil || of <= 0 || healthy < 0 {
		return 0, 0
	}
	return max(0, of-healthy-max(0, now.Sub(v.LastSpoke()))), of
}

// TrialText returns how much is left of a trial, for people.
func (v Node) TrialText(now time.Time) string {
	left, of := v.TrialLeft(now)
	text := fmt.Sprintf("at most %s of health are left, of %s", duration.HumanDuration(left), of)
	switch {
	case of == 0:
		return "how much of it is left, the node knows: kubelet-supervisor status there"
	case left == 0:
		text = fmt.Sprintf("its %s of health are due; the end of it comes as soon as the node has seen them, and its Lease renewed", of)
	}
	if tries := v.Says.Status.Trial.Tries; tries > 1 {
		text += fmt.Sprintf("; it was started %d times", tries)
	}
	return text
}

// SourceText returns a source with its version.
func SourceText(source *corev1.NodeConfigSource) string {
	if source == nil || source.ConfigMap == nil {
		return nodev1.Local
	}
	return bounded.Line(fmt.Sprintf("%s (uid %s, resourceVersion %s)", nodev1.AssignmentOf(source), source.ConfigMap.UID, source.ConfigMap.ResourceVersion))
}

// OK reports whether a node runs what it is assigned, and reports success.
func (v Node) OK() bool {
	if !v.Says.Supervised {
		return v.Says.Carrier == nodev1.CarrierNone
	}
	return v.Ready() && v.Says.Answered() && v.Wellness() == corev1.ConditionTrue
}

// Summary returns the reason and, if it is not good news, its cause. It omits what other columns show: the running
// and the assigned configuration.
func (v Node) Summary(whole bool) string {
	words := cmp.Or(v.Reason(), "it does not say how it is")
	switch {
	case v.Says.Problem != nil:
		words = v.Says.Problem.Error()
	case !v.Says.Answered():
		words = "waits for the supervisor, which has not spoken of this assignment yet"
	case whole:
		words += ": " + v.Message()
	case v.Why() != "":
		words += ": " + v.Why()
	case v.Shadowed() != "":
		words += "; " + v.Shadowed()
	}
	if !v.Ready() {
		words = "node is not Ready; " + words
	}
	if whole {
		return words
	}
	return Shorten(words, 160)
}

// Why returns what the newest assignment has failed at, or waits for; "" if all is well.
func (v Node) Why() string {
	s := v.Says.Status
	switch {
	case s.Reason == nodev1.ReasonWouldDisrupt && s.Hold != nil:
		return "waits for " + s.Hold.Text(mostPods)
	case s.Failure != nil:
		return s.Failure.Message
	case s.Change != nil && !s.Change.Due.IsZero():
		return "waits for its turn until " + s.Change.Due.Format(time.RFC3339)
	}
	return ""
}

// mostPods limits how many pods are named that a change waits for; the rest is counted.
const mostPods = 5

// mostShadowed limits the fields that are named on a line.
const mostShadowed = 10

// Shadowed returns the fields of the assigned configuration that do not take effect; "" if there are none. All may
// be well otherwise.
func (v Node) Shadowed() string {
	fields := v.Says.Status.Shadowed
	var list []string
	for _, field := range fields[:min(len(fields), mostShadowed)] {
		list = append(list, field.String())
	}
	switch more := len(fields) - len(list); {
	case more > 0:
		list = append(list, fmt.Sprintf("and %d more", more))
	case len(list) == 0:
		return ""
	}
	return "Shadowed: " + strings.Join(list, ", ")
}

// Unstructured returns the view in the form of a Kubernetes object, kind NodeKubeletConfig.
func (v Node) Unstructured() (map[string]any, error) {
	config, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v.Says.Config)
	if err != nil {
		return nil, fmt.Errorf("writing the status of node %s: %w", v.Name, err)
	}
	condition, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v.Says.Condition)
	if err != nil {
		return nil, fmt.Errorf("writing the condition of node %s: %w", v.Name, err)
	}
	object := map[string]any{
		"apiVersion": "kubelet-supervisor.io/v1", "kind": "NodeKubeletConfig",
		"metadata":   map[string]any{"name": v.Name},
		"assignment": v.Says.Assignment, "carrier": string(v.Says.Carrier), "supervised": v.Says.Supervised,
	}
	if name := v.Mark().Pool; name != "" {
		object["pool"] = map[string]any{"name": name, "member": v.MemberOf() != "" && !v.HeldOut()}
	}
	if v.Says.Supervised {
		object["observed"], object["config"], object["condition"] = v.Says.Status.Observed, config, condition
		var status map[string]any
		if err := json.Unmarshal([]byte(v.Says.Status.Encode()), &status); err != nil {
			return nil, fmt.Errorf("writing the status of node %s: %w", v.Name, err)
		}
		object["status"] = status
	}
	return object, nil
}

// whenText returns when a change was, by the node's clock, which may be wrong.
func whenText(now time.Time, c nodev1.Change) string {
	if c.Began.IsZero() {
		return "it does not say when"
	}
	at := c.Began.UTC().Format(time.RFC3339)
	if c.Began.After(now.Add(time.Minute)) {
		return "began " + at + ", by a clock of the node that is ahead of this one"
	}
	if c.Began.After(now) {
		now = c.Began
	}
	return "began " + at + ", " + Age(now, c.Began) + " ago"
}

// ChangeText returns the newest change and how long each of its phases took; nothing if the node does not report
// one.
func (v Node) ChangeText(now time.Time) []string {
	c := v.Says.Status.Change
	if c == nil {
		return nil
	}
	words := []string{Shorten(c.Title(), 400), whenText(now, *c)}
	if line := c.Line(); line != "" {
		words = append(words, Shorten(line, 400))
	}
	return words
}
