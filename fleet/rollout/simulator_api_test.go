package rollout

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// apiServer is the truth: what is stored, each with its resourceVersion.
type apiServer struct {
	version   int
	machines  map[types.UID]*machine
	names     []types.UID // in the order of their creation
	pools     map[string]*v1alpha1.KubeletPool
	poolRV    map[string]int // of the status
	revisions map[string][]Revision
	natures   map[string]nature // of each source
	payloads  map[string]string
	layers    map[Ref]Layer
	budgets   map[string]v1alpha1.KubeletRolloutBudgetSpec
}

func newAPIServer() *apiServer {
	return &apiServer{machines: map[types.UID]*machine{}, pools: map[string]*v1alpha1.KubeletPool{}, poolRV: map[string]int{},
		revisions: map[string][]Revision{}, natures: map[string]nature{}, payloads: map[string]string{}, layers: map[Ref]Layer{},
		budgets: map[string]v1alpha1.KubeletRolloutBudgetSpec{}}
}

func (a *apiServer) natureOf(source string) nature { return a.natures[source] }

func (a *apiServer) add(m *machine) {
	a.machines[m.UID], a.names = m, append(a.names, m.UID)
	a.stamp(m)
}

func (a *apiServer) remove(uid types.UID) {
	delete(a.machines, uid)
	for i := range a.names {
		if a.names[i] == uid {
			a.names = append(a.names[:i:i], a.names[i+1:]...)
			return
		}
	}
}

// stamp gives an object that has changed its next resourceVersion.
func (a *apiServer) stamp(m *machine) {
	a.version++
	m.ResourceVersion, m.dirty = strconv.Itoa(a.version), false
}

func (a *apiServer) relabel(m *machine, key, value string) {
	m.Labels = maps.Clone(m.Labels)
	if value == "" {
		delete(m.Labels, key)
	} else {
		m.Labels[key] = value
	}
	m.dirty = true
}

// patch is a PATCH of a Node with uid and resourceVersion.
func (a *apiServer) patch(w Write) (version string, conflict bool) {
	m := a.machines[w.UID]
	if m == nil || m.Name != w.Node || m.ResourceVersion != w.ResourceVersion {
		return "", true
	}
	m.Node = m.With(w)
	a.stamp(m)
	return m.ResourceVersion, false
}

// keep makes a variant; what is there already stays.
func (a *apiServer) keep(v Variant) {
	source := sourceOf(v.Name)
	if _, is := a.payloads[source]; is {
		return
	}
	a.payloads[source] = v.Payload
	a.natures[source] = good
	for _, n := range []nature{refused, dying, unready, slow} {
		if strings.Contains(v.Payload, string(n)) {
			a.natures[source] = n
		}
	}
}

// newPool is a pool that selects the nodes with its name as the label pool.
func newPool(name string, change func(*v1alpha1.KubeletPool)) *v1alpha1.KubeletPool {
	p := &v1alpha1.KubeletPool{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
	p.Spec.Selector.MatchLabels = map[string]string{"pool": name}
	p.Spec.Layers = []v1alpha1.Layer{inline("fleet", `{"maxPods":110,"logging":{"format":"good"}}`)}
	if change != nil {
		change(p)
	}
	return p
}

func inline(name, text string) v1alpha1.Layer {
	return v1alpha1.Layer{Name: name, Inline: &runtime.RawExtension{Raw: json.RawMessage(text)}}
}

func gpuLayer(text string) v1alpha1.Layer {
	layer := inline("gpu", text)
	layer.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"gpu": "true"}}
	return layer
}

func amountOf(text string) *intstr.IntOrString {
	value := intstr.Parse(text)
	return &value
}

func durationOf(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

func wavesOf(nodes ...string) []v1alpha1.Wave {
	var waves []v1alpha1.Wave
	for _, n := range nodes {
		waves = append(waves, v1alpha1.Wave{Nodes: *amountOf(n)})
	}
	return waves
}
