package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// layerView is the layers that pools name, each read once for each version of its ConfigMap.
type layerView struct {
	read map[rollout.Ref]rollout.Layer
	// missing are those that the API server has said are not there. They are asked for once, until the cache has them.
	missing map[rollout.Ref]bool
}

func newLayerView() layerView {
	return layerView{read: map[rollout.Ref]rollout.Layer{}, missing: map[rollout.Ref]bool{}}
}

// readAll are the layers that are known: what the cache has, and what the API server says is not there. Where it says anything else, such as
// that we may not know, the layer is not known.
func (v *layerView) readAll(ctx context.Context, live client.Reader, pools []rollout.Pool, maps []corev1.ConfigMap) map[rollout.Ref]rollout.Layer {
	byName := make(map[string]*corev1.ConfigMap, len(maps))
	for i := range maps {
		byName[maps[i].Name] = &maps[i]
	}
	read, missing := map[rollout.Ref]rollout.Layer{}, map[rollout.Ref]bool{}
	for i := range pools {
		for _, ref := range pools[i].Refs() {
			if _, is := read[ref]; is {
				continue
			}
			switch object := byName[ref.Name]; {
			case object != nil:
				known, is := v.read[ref]
				if !is || known.ResourceVersion != object.ResourceVersion {
					known = rollout.ReadLayer(object.Data, ref.Key, object.ResourceVersion)
				}
				read[ref] = known
			case v.missing[ref] || isMissing(ctx, live, ref):
				missing[ref] = true
				read[ref] = rollout.Layer{Missing: true}
			}
		}
	}
	v.read, v.missing = read, missing
	return read
}

func isMissing(ctx context.Context, live client.Reader, ref rollout.Ref) bool {
	var object corev1.ConfigMap
	return apierrors.IsNotFound(live.Get(ctx, types.NamespacedName{Namespace: rollout.Namespace, Name: ref.Name}, &object))
}
