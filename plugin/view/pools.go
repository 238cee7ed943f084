package view

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// poolKind is kubectl's name of KubeletPool objects.
const poolKind = "kubeletpool"

// A Pool is a KubeletPool as it was read.
type Pool struct {
	*v1alpha1.KubeletPool
	Object *unstructured.Unstructured
}

// PoolOf decodes a KubeletPool.
func PoolOf(object *unstructured.Unstructured) (Pool, error) {
	text, err := object.MarshalJSON()
	p := Pool{&v1alpha1.KubeletPool{}, object}
	if err == nil {
		err = json.Unmarshal(text, p.KubeletPool)
	}
	if err != nil {
		return Pool{}, fmt.Errorf("reading pool %s: %w", object.GetName(), err)
	}
	return p, nil
}

// GetPool reads one KubeletPool.
func GetPool(ctx context.Context, pools dynamic.ResourceInterface, name string) (Pool, error) {
	if kind, plain, is := strings.Cut(name, "/"); is && slices.Contains([]string{poolKind, poolKind + "s", "kpool", poolKind + "." + v1alpha1.GroupName}, kind) {
		name = plain // as printed by -o name
	}
	object, err := pools.Get(ctx, name, metav1.GetOptions{})
	switch {
	case unknownKind(err):
		return Pool{}, fmt.Errorf("this cluster knows no pools; kubectl kubelet install --controller (%w)", err)
	case apierrors.IsNotFound(err):
		return Pool{}, fmt.Errorf("there is no pool %q; see kubectl get kpool (%w)", name, err)
	case err != nil:
		return Pool{}, fmt.Errorf("reading pool %s: %w", name, err)
	}
	return PoolOf(object)
}

// unknownKind reports whether the API server does not know the kind: its NotFound then names no object.
func unknownKind(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && (status.Status().Details == nil || status.Status().Details.Name == "")
}

// Observed reports whether the status is about the pool's newest generation.
func (p Pool) Observed() bool { return p.Status.ObservedGeneration == p.Generation }

// Condition returns the condition of a type; nil if there is none.
func (p Pool) Condition(kind string) *metav1.Condition {
	return meta.FindStatusCondition(p.Status.Conditions, kind)
}

// StopOf returns the stop of a revision; nil if there is none, or if the attempt was raised since.
func (p Pool) StopOf(hash string) *v1alpha1.Stop {
	for i := range p.Status.Stops {
		if stop := &p.Status.Stops[i]; stop.Hash == hash {
			return stop
		}
	}
	return nil
}

// Stopped returns the stop of the pool's target revision; nil if it is not stopped.
func (p Pool) Stopped() *v1alpha1.Stop {
	t := p.Status.Target
	if t == nil || p.Status.Stable != nil && *p.Status.Stable == t.RevisionName {
		return nil
	}
	if stop := p.StopOf(t.Hash); stop != nil && t.Attempt <= stop.Attempt {
		return stop
	}
	return nil
}

// StopText returns what stopped a revision, and why.
func StopText(stop v1alpha1.Stop) string {
	return bounded.Line(fmt.Sprintf("%s %s: %s", stop.Node, stop.Reason, stop.Message))
}

// CorePools returns the pools in the form of package rollout, without their revisions.
func CorePools(pools []Pool) []rollout.Pool {
	var read []rollout.Pool
	for _, p := range pools {
		read = append(read, rollout.ReadPool(p.KubeletPool, nil, time.LoadLocation))
	}
	return read
}

// NoPool is the value of the pool label that keeps a node out of all pools.
const NoPool = "none"

// PoolNamed returns the pool of a name; an empty one if there is none.
func PoolNamed(pools []Pool, name string) Pool {
	for _, p := range pools {
		if p.Name == name {
			return p
		}
	}
	return Pool{}
}

// Shown returns the object without secrets, for output. The controller refuses a layer with a mask, so printed
// output cannot change a node. The last-applied annotation has the same layers as a text, so it is removed.
func (p Pool) Shown() *unstructured.Unstructured {
	object := p.Object.DeepCopy()
	unstructured.RemoveNestedField(object.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	layers, _, _ := unstructured.NestedSlice(object.Object, "spec", "layers") // other forms hold no secrets
	for _, layer := range layers {
		if of, is := layer.(map[string]any); is {
			if inline, is := of["inline"].(map[string]any); is {
				of["inline"] = kubeletconfig.Masked(inline)
			}
		}
	}
	if len(layers) > 0 {
		_ = unstructured.SetNestedSlice(object.Object, layers, "spec", "layers")
	}
	return object
}
