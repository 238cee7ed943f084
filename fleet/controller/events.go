package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// correlation limits what is kept to count repeated Events. Almost every Event here has a revision and a wave, so it is not repeated. The usual memory
// of 4,096 Events would be 3 MiB without use, and one of 256 grows for hours.
var correlation = record.CorrelatorOptions{QPS: 10, BurstSize: 100, MaxEvents: 100, LRUCacheSize: 32}

// recorder records Events. The newer API of Events makes one series of all with the same reason and the message of the first, so that one of four waves
// would be shown. The usual limit of 25 per object, and then one in five minutes, would drop Events of a rollout.
func recorder(m manager.Manager, config *rest.Config) (record.EventRecorder, error) {
	events, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	broadcaster := record.NewBroadcasterWithCorrelatorOptions(correlation)
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: events.Events("")})
	// It ends when this process no longer leads.
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
