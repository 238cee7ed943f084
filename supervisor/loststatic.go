//go:build linux

package supervisor

import (
	"context"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/host"
)

// A staticSight is the static pods that run, and where to look for them after a restart.
type staticSight struct {
	pods     []forecast.StaticPod
	then     *forecast.Configuration // that is to run
	node     *corev1.Node
	endpoint string // of its container runtime
}

// staticPods are those that are looked for.
func (p *lostPods) staticPods() staticSight {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.static
}

// endedStaticPods are the static pods that a restart has ended. The API does not tell: the object of a static pod there has the name of the
// one before. So the container runtime is asked for their sandboxes.
func (f *foresight) endedStaticPods(ctx context.Context) (ends []forecast.End) {
	before := f.lost.staticPods()
	if len(before.pods) == 0 {
		return nil
	}
	after := forecast.Facts{Now: before.then, Node: before.node}
	var err error
	if after.Manifests, err = manifests(before.then); err == nil {
		after.Sandboxes, err = host.Sandboxes(ctx, before.endpoint)
	}
	if err != nil {
		f.Logger.Debug("whether static pods were lost at the restart is not known", zap.Error(err))
	}
	for _, pod := range before.pods {
		if pod.EndedIn(after) {
			ends = append(ends, forecast.End{UID: types.UID(pod.Sandbox), Reason: core.StaticPodEnded, Rejected: true})
		}
	}
	return ends
}
