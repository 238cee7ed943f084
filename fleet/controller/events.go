package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// correlation: what was said lately is counted up and not said again. Almost each Event here names a revision and a wave, so it comes once; the
// usual memory of 4,096 of them would be 3 MiB that nobody asks, and one of 256 grows for hours: it was all that grew in a soak.
var correlation = record.CorrelatorOptions{QPS: 10, BurstSize: 100, MaxEvents: 100, LRUCacheSize: 32}

// recorder records Events. The newer API of Events makes one series of all that have the same reason, with the words of the first, so that of
// four waves one would be told; and the usual limit of 25 per object and then one in five minutes would cut a rollout short.
func recorder(m manager.Manager, config *rest.Config) (record.EventRecorder, error) {
	events, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	broadcaster := record.NewBroadcasterWithCorrelatorOptions(correlation)
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: events.Events("")})
	// It ends with the leader.
	err = m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		broadcaster.Shutdown()
		return nil
	}))
	return broadcaster.NewRecorder(m.GetScheme(), corev1.EventSource{Component: Name}), err
}

func eventType(warning bool) string {
	if warning {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}
