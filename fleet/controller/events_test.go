package controller

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
)

// A controller that has said much does not remember all of it: a soak of pools saw it grow by 5 MiB in an hour, and one that
// remembered 256 Events by half a MiB.
func TestWhatWasSaidIsForgotten(t *testing.T) {
	correlator := record.NewEventCorrelatorWithOptions(withClock(correlation))
	say := func(from, to int) {
		for i := from; i < to; i++ {
			event := &corev1.Event{
				InvolvedObject: corev1.ObjectReference{Kind: "KubeletPool", Name: "workers", UID: "1"}, Reason: fmt.Sprintf("Reason%d", i%20),
				Message: fmt.Sprintf("revision %d goes to 4 of 40 nodes", i), Type: corev1.EventTypeNormal, FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Count: 1,
			}
			if _, err := correlator.EventCorrelate(event); err != nil {
				t.Fatal(err)
			}
			correlator.UpdateState(event)
		}
	}
	say(0, 100)
	before := live()
	say(100, 9000)
	if grown := live() - before; grown > 64<<10 {
		t.Errorf("8,900 more Events took %d KiB", grown>>10)
	}
	runtime.KeepAlive(correlator)
}

func withClock(o record.CorrelatorOptions) record.CorrelatorOptions {
	o.Clock, o.BurstSize = clock.RealClock{}, 1_000_000
	return o
}

// live are the bytes of the heap that somebody holds.
func live() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // no heap has so many
}
