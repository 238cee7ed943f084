package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// errNothingToDo ends a command whose change is made already.
var errNothingToDo = errors.New("nothing is changed")

// patchPool changes a pool by a merge patch for the version that the change was computed from. If the pool has
// changed, even only in its status, patchPool reads it again and calls change again.
func patchPool(ctx context.Context, pools dynamic.ResourceInterface, name string, dry cmdutil.DryRun, change func(pool) (map[string]any, error)) (pool, error) {
	var after pool
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		read, err := view.GetPool(ctx, pools, name)
		if err != nil {
			return err
		}
		p := pool{read}
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
		after.Pool, err = view.PoolOf(object)
		return err
	})
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsConflict(err) {
		err = fmt.Errorf("changing pool %s: %w", name, err)
	}
	return after, err
}

func sendPoolPatch(ctx context.Context, pools dynamic.ResourceInterface, p pool, body []byte, dry cmdutil.DryRun) (*unstructured.Unstructured, error) {
	if dry != cmdutil.DryRunClient {
		return pools.Patch(ctx, p.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: cmdutil.FieldManager, DryRun: dry.Option()})
	}
	original, err := p.Object.MarshalJSON()
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

// byHand are field managers of people, which do not set a field again automatically.
var byHand = []string{cmdutil.FieldManager, "kubectl-edit", "kubectl-patch"}

// otherManagers returns which other field managers have set a field of the spec.
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
