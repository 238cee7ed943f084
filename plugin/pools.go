package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
)

// poolKind is how a KubeletPool is called where kubectl names objects.
const poolKind = "kubeletpool"

// A pool is a KubeletPool as it was read.
type pool struct {
	*v1alpha1.KubeletPool
	object *unstructured.Unstructured
}

func poolOf(object *unstructured.Unstructured) (pool, error) {
	text, err := object.MarshalJSON()
	p := pool{&v1alpha1.KubeletPool{}, object}
	if err == nil {
		err = json.Unmarshal(text, p.KubeletPool)
	}
	if err != nil {
		return pool{}, fmt.Errorf("reading pool %s: %w", object.GetName(), err)
	}
	return p, nil
}

// poolClient asks for KubeletPools.
func (s *session) poolClient() (dynamic.ResourceInterface, error) {
	client, err := s.connectDynamic()
	if err != nil {
		return nil, err
	}
	return client.Resource(v1alpha1.GroupVersion().WithResource("kubeletpools")), nil
}

// openPool connects, and reads a pool.
func (s *session) openPool(ctx context.Context, name string) (client kubernetes.Interface, pools dynamic.ResourceInterface, p pool, err error) {
	if client, err = s.connect(); err != nil {
		return nil, nil, pool{}, err
	}
	if pools, err = s.poolClient(); err != nil {
		return nil, nil, pool{}, err
	}
	p, err = getPool(ctx, pools, name)
	return client, pools, p, err
}

func getPool(ctx context.Context, pools dynamic.ResourceInterface, name string) (pool, error) {
	if kind, plain, is := strings.Cut(name, "/"); is && slices.Contains([]string{poolKind, poolKind + "s", "kpool", poolKind + "." + v1alpha1.GroupName}, kind) {
		name = plain // as -o name prints it
	}
	object, err := pools.Get(ctx, name, metav1.GetOptions{})
	switch {
	case unknownKind(err):
		return pool{}, fmt.Errorf("this cluster knows no pools; kubectl kubelet install --controller (%w)", err)
	case apierrors.IsNotFound(err):
		return pool{}, fmt.Errorf("there is no pool %q; see kubectl get kpool (%w)", name, err)
	case err != nil:
		return pool{}, fmt.Errorf("reading pool %s: %w", name, err)
	}
	return poolOf(object)
}

// unknownKind: the API server does not know the kind, which it says by a NotFound that names no object.
func unknownKind(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && (status.Status().Details == nil || status.Status().Details.Name == "")
}

// listPools lists all of them, none where the API server does not know the kind. Who may not list what is not there is told Forbidden, so
// that discovery has to tell.
func (s *session) listPools(ctx context.Context, client kubernetes.Interface) ([]pool, error) {
	api, err := s.poolClient()
	if err != nil {
		return nil, err
	}
	list, err := api.List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		if _, missing := client.Discovery().ServerResourcesForGroupVersion(v1alpha1.GroupVersion().String()); apierrors.IsNotFound(missing) {
			return nil, nil
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("listing pools: %w", err)
	}
	var pools []pool
	for i := range list.Items {
		p, err := poolOf(&list.Items[i])
		if err != nil {
			return nil, err
		}
		pools = append(pools, p)
	}
	slices.SortFunc(pools, func(a, b pool) int { return cmp.Compare(a.Name, b.Name) })
	return pools, nil
}

// errNothingToDo ends a change that is made already.
var errNothingToDo = errors.New("nothing is changed")

// patchPool changes a pool by a merge patch that holds for the version that it was made from. A pool that has changed meanwhile, and be it
// only in its status, is looked at anew.
func patchPool(ctx context.Context, pools dynamic.ResourceInterface, name string, dry dryRun, change func(pool) (map[string]any, error)) (pool, error) {
	var after pool
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		p, err := getPool(ctx, pools, name)
		if err != nil {
			return err
		}
		patch, err := change(p)
		if after = p; err != nil {
			return err
		}
		patch["metadata"] = map[string]any{"uid": p.UID, "resourceVersion": p.ResourceVersion}
		body, err := json.Marshal(patch)
		if err != nil {
			return fmt.Errorf("writing a patch: %w", err)
		}
		object, err := sendPoolPatch(ctx, pools, p, body, dry)
		if err != nil {
			return err
		}
		after, err = poolOf(object)
		return err
	})
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsConflict(err) {
		err = fmt.Errorf("changing pool %s: %w", name, err)
	}
	return after, err
}

func sendPoolPatch(ctx context.Context, pools dynamic.ResourceInterface, p pool, body []byte, dry dryRun) (*unstructured.Unstructured, error) {
	if dry != dryRunClient {
		return pools.Patch(ctx, p.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: fieldManager, DryRun: dry.option()})
	}
	original, err := p.object.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("writing pool %s: %w", p.Name, err)
	}
	merged, err := jsonpatch.MergePatch(original, body)
	if err != nil {
		return nil, fmt.Errorf("patching pool %s: %w", p.Name, err)
	}
	object := &unstructured.Unstructured{}
	return object, object.UnmarshalJSON(merged)
}

// byHand are field managers of people, who do not come back by themselves to set a field again.
var byHand = []string{fieldManager, "kubectl-edit", "kubectl-patch"}

// otherManagers names who else has set a field of the spec.
func (p pool) otherManagers(field string) (names []string) {
	for _, entry := range p.ManagedFields {
		var owned struct {
			Spec struct {
				Rollout map[string]any `json:"f:rollout"`
			} `json:"f:spec"`
		}
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned) != nil {
			continue
		}
		if _, is := owned.Spec.Rollout["f:"+field]; is && !slices.Contains(byHand, entry.Manager) && !slices.Contains(names, entry.Manager) {
			names = append(names, entry.Manager)
		}
	}
	return names
}

// shown is the object without secrets, for who only looks. The controller refuses a layer with a mask, so what was printed changes no node. What
// somebody applied last is the same again, as a text.
func (p pool) shown() *unstructured.Unstructured {
	object := p.object.DeepCopy()
	unstructured.RemoveNestedField(object.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	layers, _, _ := unstructured.NestedSlice(object.Object, "spec", "layers") // what is not so has no secret
	for _, layer := range layers {
		if of, is := layer.(map[string]any); is {
			if inline, is := of["inline"].(map[string]any); is {
				of["inline"] = config.Masked(inline)
			}
		}
	}
	if len(layers) > 0 {
		_ = unstructured.SetNestedSlice(object.Object, layers, "spec", "layers")
	}
	return object
}
