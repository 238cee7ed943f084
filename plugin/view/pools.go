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

// poolKind is how a KubeletPool is called where kubectl names objects.
const poolKind = "kubeletpool"

// A Pool is a KubeletPool as it was read.
type Pool struct {
	*v1alpha1.KubeletPool
	Object *unstructured.Unstructured
}

// PoolOf reads a KubeletPool.
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

// GetPool asks for one KubeletPool.
func GetPool(ctx context.Context, pools dynamic.ResourceInterface, name string) (Pool, error) {
	if kind, plain, is := strings.Cut(name, "/"); is && slices.Contains([]string{poolKind, poolKind + "s", "kpool", poolKind + "." + v1alpha1.GroupName}, kind) {
		name = plain // as -o name prints it
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

// unknownKind: the API server does not know the kind, which it says by a NotFound that names no object.
func unknownKind(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && (status.Status().Details == nil || status.Status().Details.Name == "")
}

// Observed: the controller has seen the pool as it is, so that its status is about that.
func (p Pool) Observed() bool { return p.Status.ObservedGeneration == p.Generation }

// Condition is the one of a kind; nil where there is none.
func (p Pool) Condition(kind string) *metav1.Condition {
	return meta.FindStatusCondition(p.Status.Conditions, kind)
}

// StopOf is the stop that holds against a revision; nil where there is none, or the attempt was raised since.
func (p Pool) StopOf(hash string) *v1alpha1.Stop {
	for i := range p.Status.Stops {
		if stop := &p.Status.Stops[i]; stop.Hash == hash {
			return stop
		}
	}
	return nil
}

// Stopped is the stop of the revision that the pool is at; nil where it goes on.
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

// StopText is who stopped a revision, and why.
func StopText(stop v1alpha1.Stop) string {
	return bounded.Line(fmt.Sprintf("%s %s: %s", stop.Node, stop.Reason, stop.Message))
}

// CorePools are the pools as the core reads them, without their revisions.
func CorePools(pools []Pool) []rollout.Pool {
	var read []rollout.Pool
	for _, p := range pools {
		read = append(read, rollout.ReadPool(p.KubeletPool, nil, time.LoadLocation))
	}
	return read
}

// NoPool is the value of the pool label that keeps a node out of all pools.
const NoPool = "none"

// PoolNamed finds a pool; an empty one where there is none.
func PoolNamed(pools []Pool, name string) Pool {
	for _, p := range pools {
		if p.Name == name {
			return p
		}
	}
	return Pool{}
}

// Shown is the object without secrets, for who only looks. The controller refuses a layer with a mask, so what was printed changes no node. What
// somebody applied last is the same again, as a text.
func (p Pool) Shown() *unstructured.Unstructured {
	object := p.Object.DeepCopy()
	unstructured.RemoveNestedField(object.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	layers, _, _ := unstructured.NestedSlice(object.Object, "spec", "layers") // what is not so has no secret
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
