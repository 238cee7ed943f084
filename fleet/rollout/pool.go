package rollout

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// Pool is a KubeletPool, read once for each version.
type Pool struct {
	Name       string
	Generation int64
	Spec       v1alpha1.KubeletPoolSpec
	Status     v1alpha1.KubeletPoolStatus
	// Revisions are the stored revisions of the pool.
	Revisions []Revision
	Cause     string // the users' change cause of the newest change

	selector labels.Selector
	layers   []poolLayer
	rules    rules
	// fault says why the spec cannot be read, layerFault why its layers cannot be; a pin needs no layers.
	fault, layerFault string
}

// poolLayer is a layer as the pool names it.
type poolLayer struct {
	name     string
	ref      Ref
	inline   bool
	patch    string // of an inline layer, and its fields that no kubelet knows
	unknown  string
	unset    []string
	selector nodeSelector
}

// nodeSelector is a selector with its canonical text, which is part of a revision's content.
type nodeSelector struct {
	text    string
	matches labels.Selector
}

// rules has the pool's numbers and times, including defaults.
type rules struct {
	waves          []wave
	maxUnavailable amount
	tolerate       amount
	settle         time.Duration
	unreadyAfter   time.Duration
	deadline       time.Duration
	windows        windows
	topology       topology
	disrupts       bool // the pool approves changes for its nodes
	drains         bool // the pool drains nodes that wait for their pods
	drainTimeout   time.Duration
}

type wave struct {
	name  string
	nodes amount
	soak  time.Duration
}

// amount is a number, or a percentage.
type amount struct {
	value   int
	percent bool
}

func (a amount) String() string {
	if a.percent {
		return strconv.Itoa(a.value) + "%"
	}
	return strconv.Itoa(a.value)
}

// of returns the amount of n, with percentages rounded down.
func (a amount) of(n int) int {
	if a.percent {
		return a.value * n / 100
	}
	return a.value
}

// roundedUp returns the amount of n, with percentages rounded up, at most n.
func (a amount) roundedUp(n int) int {
	if a.percent {
		return (a.value*n + 99) / 100
	}
	return min(a.value, n)
}

// ReadPool decodes a KubeletPool.
func ReadPool(object *v1alpha1.KubeletPool, revisions []Revision, zones Zones) Pool {
	p := Pool{Name: object.Name, Generation: object.Generation, Spec: object.Spec, Status: object.Status, Revisions: revisions,
		Cause: object.Annotations["kubernetes.io/change-cause"]}
	p.selector = labels.Nothing()
	selector, err := readSelector(&object.Spec.Selector)
	if err != nil {
		p.fault = "spec.selector: " + err.Error()
	} else if selector.matches.Empty() {
		p.fault = "spec.selector: an empty selector would take every node"
	} else {
		p.selector = selector.matches
	}
	p.readLayers()
	p.readRules(zones)
	return p
}

func (p *Pool) wrong(where string, err error) {
	if p.fault == "" {
		p.fault = where + ": " + err.Error()
	}
}

func (p *Pool) readLayers() {
	wrong := func(name string, err error) {
		p.layerFault = cmp.Or(p.layerFault, fmt.Sprintf("spec.layers[%s]: %v", name, err))
	}
	for i := range p.Spec.Layers {
		from := &p.Spec.Layers[i]
		layer, err := readPoolLayer(from)
		if err != nil {
			wrong(from.Name, err)
		}
		if slices.ContainsFunc(p.layers, func(l poolLayer) bool { return l.name == from.Name }) {
			wrong(from.Name, errors.New("two layers have this name"))
		}
		p.layers = append(p.layers, layer)
	}
}

func readPoolLayer(from *v1alpha1.Layer) (poolLayer, error) {
	layer := poolLayer{name: from.Name, unset: slices.Sorted(slices.Values(from.Unset))}
	var err error
	if layer.selector, err = readSelector(from.NodeSelector); err != nil {
		return layer, fmt.Errorf("nodeSelector: %w", err)
	}
	switch {
	case (from.ConfigMap == nil) == (from.Inline == nil):
		return layer, fmt.Errorf("exactly one of configMap and inline")
	case from.Inline != nil:
		layer.inline = true
		if layer.patch, err = readPatch(from.Inline.Raw, layer.unset); err != nil {
			return layer, fmt.Errorf("inline: %w", err)
		}
		layer.unknown = unknownFields(layer.patch)
	default:
		layer.ref = Ref{from.ConfigMap.Name, from.ConfigMap.Key}
		if layer.ref.Key == "" {
			layer.ref.Key = "kubelet"
		}
	}
	return layer, nil
}

// readSelector reads a selector; nil matches everything. The order of its parts does not change its text.
func readSelector(from *metav1.LabelSelector) (nodeSelector, error) {
	if from == nil {
		return nodeSelector{matches: labels.Everything()}, nil
	}
	matches, err := metav1.LabelSelectorAsSelector(from)
	if err != nil {
		return nodeSelector{matches: labels.Nothing()}, err
	}
	return nodeSelector{text: matches.String(), matches: matches}, nil // requirements and values are sorted by then
}

func (p *Pool) readRules(zones Zones) {
	from := &p.Spec.Rollout
	for i, w := range from.Waves {
		nodes, err := readAmount(&w.Nodes, amount{})
		if err != nil {
			p.wrong(fmt.Sprintf("spec.rollout.waves[%d].nodes", i), err)
		}
		p.rules.waves = append(p.rules.waves, wave{w.Name, nodes, readDuration(w.Soak, 0)})
	}
	otherwise := defaultRules()
	if len(p.rules.waves) == 0 {
		p.rules.waves = otherwise.waves
	}
	var err error
	if p.rules.maxUnavailable, err = readAmount(from.MaxUnavailable, otherwise.maxUnavailable); err != nil {
		p.wrong("spec.rollout.maxUnavailable", err)
	}
	if p.rules.tolerate, err = readAmount(from.Unready.Tolerate, otherwise.tolerate); err != nil {
		p.wrong("spec.rollout.unready.tolerate", err)
	}
	p.rules.settle = readDuration(from.Settle, otherwise.settle)
	p.rules.unreadyAfter = readDuration(from.Unready.After, otherwise.unreadyAfter)
	p.rules.deadline = readDuration(from.ProgressDeadline, otherwise.deadline)
	if p.rules.windows, err = readWindows("spec.rollout.windows", from.Windows, zones); err != nil {
		p.fault = cmp.Or(p.fault, err.Error())
	}
	p.rules.topology = readTopology(from.Topology)
	p.rules.disrupts = from.Disruption == v1alpha1.DisruptionAllow
	p.rules.drains = from.Disruption == v1alpha1.DisruptionDrain
	p.rules.drainTimeout = readDuration(from.DrainTimeout, otherwise.drainTimeout)
}

func defaultRules() rules {
	return rules{
		waves:          []wave{{"canary", amount{1, false}, 0}, {nodes: amount{10, true}}, {nodes: amount{50, true}}, {nodes: amount{100, true}}},
		maxUnavailable: amount{10, true}, tolerate: amount{1, true},
		settle: 15 * time.Second, unreadyAfter: 5 * time.Minute, deadline: time.Hour, drainTimeout: 10 * time.Minute,
	}
}

// readAmount reads a number or a percentage. An invalid one counts as 0, which is the safe value everywhere.
func readAmount(from *intstr.IntOrString, otherwise amount) (amount, error) {
	if from == nil {
		return otherwise, nil
	}
	if from.Type == intstr.Int {
		if from.IntVal < 0 {
			return amount{}, fmt.Errorf("%d is negative", from.IntVal)
		}
		return amount{int(from.IntVal), false}, nil
	}
	var value int
	text, percent := strings.CutSuffix(from.StrVal, "%")
	if _, err := fmt.Sscanf(text, "%d", &value); err != nil || !percent || value < 0 || value > 100 {
		return amount{}, fmt.Errorf("%q is no percentage", from.StrVal)
	}
	return amount{value, true}, nil
}

func readDuration(from *metav1.Duration, otherwise time.Duration) time.Duration {
	if from == nil {
		return otherwise
	}
	return max(0, from.Duration)
}
