package plugin

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/klog/v2"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// againInterval is the time between two reads of a Node whose watch is not allowed or cannot be resumed.
const againInterval = 2 * time.Second

// A sighting is a Node as it was read, or why it could not be read.
type sighting struct {
	view view.Node
	err  error
}

// followNode reads a Node once and then follows it by one watch, which it resumes after a failure. It closes the
// channel when ctx ends.
func followNode(ctx context.Context, client kubernetes.Interface, name string, to chan<- sighting) {
	defer close(to)
	tell := func(seen sighting) {
		select {
		case to <- seen:
		case <-ctx.Done():
		}
	}
	mayWatch := true
	for ctx.Err() == nil {
		v, err := view.GetNode(ctx, client, name)
		tell(sighting{v, err})
		if err == nil && mayWatch {
			mayWatch = watchNode(ctx, client, v, tell)
		}
		select {
		case <-time.After(againInterval):
		case <-ctx.Done():
		}
	}
}

// watchNode sends the changes of a Node until the watch cannot be resumed: the Node is deleted, or the API server
// has forgotten the last version. It returns false if watching is not allowed.
func watchNode(ctx context.Context, client kubernetes.Interface, from view.Node, tell func(sighting)) bool {
	this := fields.OneTermEqualSelector(metav1.ObjectNameField, from.Name).String()
	ctx = klog.NewContext(ctx, logr.Discard()) // its errors are not for the user: the watch is resumed, or not allowed
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, from.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = this
			return client.CoreV1().Nodes().Watch(ctx, options)
		},
	})
	if err != nil { // it has no resourceVersion to resume from
		return true
	}
	defer func() {
		watcher.Stop()
		<-watcher.Done()
	}()
	for event := range watcher.ResultChan() {
		switch node, is := event.Object.(*corev1.Node); {
		case event.Type == watch.Error:
			return !apierrors.IsForbidden(apierrors.FromObject(event.Object))
		case !is || node.Name != from.Name:
		case event.Type == watch.Deleted:
			return true
		default:
			tell(sighting{view: view.NodeOf(node)})
		}
	}
	return true
}
