package cmdutil

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

func someNodes(names string) (views []view.Node) {
	for name := range strings.FieldsSeq(names) {
		views = append(views, view.NodeOf(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	return views
}

// So many at a time, and not one more; the next is begun when one is done.
func TestEachNodeInParallel(t *testing.T) {
	for _, parallel := range []int{1, 2, 5, 9} {
		synctest.Test(t, func(t *testing.T) {
			var mutex sync.Mutex
			var now, most int
			var order []string
			err := EachNode(t.Context(), someNodes("n1 n2 n3 n4 n5"), parallel, func(_ context.Context, v view.Node) error {
				mutex.Lock()
				now++
				most, order = max(most, now), append(order, v.Name)
				mutex.Unlock()
				<-time.After(time.Second)
				mutex.Lock()
				now--
				mutex.Unlock()
				return nil
			})
			slices.Sort(order)
			if err != nil || most != min(parallel, 5) || strings.Join(order, " ") != "n1 n2 n3 n4 n5" {
				t.Errorf("%d at a time: %v, at most %d, %v", parallel, err, most, order)
			}
		})
	}
}

// After a failure no other node is begun, and those under way are finished.
func TestEachNodeStopsInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mutex sync.Mutex
		var done []string
		err := EachNode(t.Context(), someNodes("n1 n2 n3 n4"), 2, func(_ context.Context, v view.Node) error {
			if v.Name == "n1" {
				return errors.New("n1 refused it")
			}
			<-time.After(time.Second)
			mutex.Lock()
			defer mutex.Unlock()
			done = append(done, v.Name)
			return nil
		})
		if err == nil || err.Error() != "n1 refused it\nnot begun: n3, n4" && err.Error() != "n1 refused it\nnot begun: n2, n3, n4" {
			t.Errorf("got %v", err)
		}
		if strings.Contains(strings.Join(done, " "), "n3") {
			t.Errorf("done are %v", done)
		}
	})
}
