//go:build linux

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
)

// A podList is what the API server lists as the pods of a node.
type podList struct {
	pods    []corev1.Pod // those that have not ended; nil: not known
	ended   map[types.UID]bool
	version string // of the list
}

// lasting leaves out the sandboxes of pods that have ended. The kubelet stops these automatically.
func (l podList) lasting(sandboxes []forecast.Sandbox) []forecast.Sandbox {
	if sandboxes == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(sandboxes), func(s forecast.Sandbox) bool { return l.ended[types.UID(s.UID)] })
}

// A runtimeAnswer is the container runtime's list of sandboxes, or why there is none.
type runtimeAnswer struct {
	sandboxes []forecast.Sandbox
	err       error
}

// triesMissing is how many looks in a row wait for a pod that runs and that is not listed. After these the pod is a doubt: it has been
// deleted, and its sandbox ends slowly or never.
const triesMissing = 2

// nodePods reads the pods of a Node that was read from etcd just before, from the API server's cache. The cache may be behind. It is far
// enough if it has every pod that the container runtime runs. Where the runtime does not answer, it is if its resourceVersion is not older
// than the Node's, which can be 5 minutes old. Else the API server is asked to wait for its cache, which takes it up to 3 s. Before 1.31 it
// waits without effect where no pod of the cluster changes.
func (i inquiry) nodePods(ctx context.Context, node *corev1.Node, runtime func() runtimeAnswer) (podList, error) {
	cached, err := i.listPods(ctx, configsync.AsCached)
	if err != nil {
		return cached, err
	}
	answer := runtime()
	missing := cached.lacks(answer)
	if len(missing) == 0 && (answer.sandboxes != nil || notOlder(cached.version, node.ResourceVersion)) {
		return cached, nil
	}
	waited, err := i.listPods(ctx, node.ResourceVersion)
	switch {
	case err == nil:
		if missing = waited.lacks(answer); len(missing) > 0 && i.tries < triesMissing {
			return podList{}, notListed(missing[0], errDeleted)
		}
		return waited, nil
	case !configsync.CacheIsBehind(err):
		return waited, err
	case len(missing) > 0:
		return podList{}, notListed(missing[0], err)
	}
	return cached, nil
}

// lacks are the sandboxes without a pod in the list.
func (l podList) lacks(runtime runtimeAnswer) []forecast.Sandbox {
	return forecast.WithoutPod(runtime.sandboxes, l.pods, l.ended)
}

var errDeleted = errors.New("the list is behind, or the pod was deleted just now")

func notListed(s forecast.Sandbox, err error) error {
	return fmt.Errorf("the API server does not list pod %s/%s, which runs: %w", s.Namespace, s.Name, err)
}

// notOlder is false where versions are not the numbers that they are with etcd.
func notOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order >= 0
}

func (i inquiry) listPods(ctx context.Context, version string) (podList, error) {
	list := podList{ended: map[types.UID]bool{}}
	var err error
	list.pods, list.version, err = readPods(ctx, i.client, i.nodeName, version, func(end forecast.End) { list.ended[end.UID] = true })
	return list, err
}

// readPods returns the pods that have not ended, and the version of the list, and calls ended for the others.
func readPods(
	ctx context.Context, client rest.Interface, nodeName, version string, ended func(forecast.End),
) ([]corev1.Pod, string, error) {
	list, err := configsync.OpenPods(ctx, client, nodeName, version)
	if err != nil {
		return nil, "", err
	}
	defer list.Close()
	return forecast.ReadPodsAndEnds(list, ended)
}
