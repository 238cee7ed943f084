package controller

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// layerView is the layers of all pools, each read once for each version of its ConfigMap.
type layerView struct {
	read map[rollout.Ref]rollout.Layer
	// missing are layers that do not exist, as the API server has answered. They are asked for once, until the cache has them.
	missing map[rollout.Ref]bool
	// unknown are layers of which the API server has not said whether they exist. They are asked for again.
	unknown map[rollout.Ref]question
}

// question counts the requests for a layer without a useful answer, and has the time of the last one.
type question struct {
	times int
	at    time.Duration
}

// askedFor is the longest pause between two requests for the same layer; the first is askAgain.
const askedFor = 30 * time.Second

func (q question) due() time.Duration { return q.at + min(askedFor, askAgain<<min(q.times-1, 8)) }

func newLayerView() layerView {
	return layerView{read: map[rollout.Ref]rollout.Layer{}, missing: map[rollout.Ref]bool{}, unknown: map[rollout.Ref]question{}}
}

// next is in how long the first unknown layer is asked for again; 0 is never.
func (v *layerView) next(now time.Duration) (in time.Duration) {
	for _, q := range v.unknown {
		in = sooner(in, max(time.Millisecond, q.due()-now))
	}
	return in
}

// readAll returns the layers that are known: those in the cache, and those that the API server says do not exist. After any other answer, such as that
// the controller may not read it, the layer is unknown, and not in the result.
func (v *layerView) readAll(ctx context.Context, live client.Reader, pools []rollout.Pool, maps []corev1.ConfigMap, now time.Duration) map[rollout.Ref]rollout.Layer {
	byName := make(map[string]*corev1.ConfigMap, len(maps))
	for i := range maps {
		byName[maps[i].Name] = &maps[i]
	}
	read, missing, unknown := map[rollout.Ref]rollout.Layer{}, map[rollout.Ref]bool{}, map[rollout.Ref]question{}
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
			case v.missing[ref] || v.isMissing(ctx, live, ref, now):
				missing[ref] = true
				read[ref] = rollout.Layer{Missing: true}
			default:
				unknown[ref] = v.unknown[ref]
			}
		}
	}
	v.read, v.missing, v.unknown = read, missing, unknown
	return read
}

// isMissing asks the API server, unless that failed a moment ago.
func (v *layerView) isMissing(ctx context.Context, live client.Reader, ref rollout.Ref, now time.Duration) bool {
	asked, is := v.unknown[ref]
	if is && now < asked.due() {
		return false
	}
	var object corev1.ConfigMap
	if apierrors.IsNotFound(live.Get(ctx, types.NamespacedName{Namespace: rollout.Namespace, Name: ref.Name}, &object)) {
		return true
	}
	v.unknown[ref] = question{asked.times + 1, now}
	return false
}
