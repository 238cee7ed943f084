package plugin

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes"
)

// One kubelet that hangs holds up no other: the preview is shown, and names it.
func TestPreviewOfANodeThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, localNode("n1"), localNode("n2"), localNode("n3"), configMapOf("workers", someConfig))
		answer := b.factory.Configz
		b.factory.Configz = func(ctx context.Context, client kubernetes.Interface, node string) (map[string]any, error) {
			if node != "n2" {
				return answer(ctx, client, node)
			}
			ctx, cancel := context.WithTimeoutCause(ctx, 5*time.Second, errors.New("no answer within 5s"))
			defer cancel()
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		begin := time.Now()
		_, stderr := b.do(t, "assign", "n1", "n2", "n3", "--config=workers", "--dry-run=client")
		contains(t, stderr, "n1, n3, with "+workersText, "maxPods: 110 → 42", "n2, with "+workersText, "What would change is not known: no answer within 5s")
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// However many hang, a person waits a minute, and each ConfigMap that nodes run is read once.
func TestPreviewOfManyNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := configMapOf("old", someConfig)
		b := newBench(t, old, configMapOf("workers", someConfig))
		var names []string
		for i := range 500 {
			names = append(names, fmt.Sprintf("n%d", i))
			if err := b.Tracker().Add(assignedNode(names[i], old)); err != nil {
				t.Fatal(err)
			}
		}
		b.factory.Configz = func(ctx context.Context, _ kubernetes.Interface, _ string) (map[string]any, error) {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		begin := time.Now()
		b.do(t, append([]string{"assign", "--config=workers", "--dry-run=client"}, names...)...)
		if took := time.Since(begin); took > previewTime {
			t.Errorf("it took %s", took)
		}
		reads := 0
		for _, action := range b.Actions() {
			if action.Matches("get", "configmaps") {
				reads++
			}
		}
		if reads > 2 {
			t.Errorf("%d ConfigMaps were read, want one per name", reads)
		}
	})
}
