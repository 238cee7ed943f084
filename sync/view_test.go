package sync

import (
	"strings"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// Whatever is written on the Node, what is kept and reported of it is short. A value that was cut is not one that a person can have meant.
func TestWhatANodeSaysIsCut(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	v := &view{options: Options{NodeName: "n1"}, logger: zap.NewNop()}
	v.sawNode(seen{object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: map[string]string{
		nodev1.AllowDisruptionAnnotation: long, nodev1.RetryAnnotation: long, nodev1.ConfigSourceAnnotation: long}}}})
	update, known := v.update()
	if !known || len(update.Consent) > maxConsent || !strings.HasPrefix(update.Consent, "xxx") {
		t.Errorf("the consent has %d bytes, want at most %d of its own", len(update.Consent), maxConsent)
	}
	if len(update.Retry) > maxAssignment || update.Retry == "" {
		t.Errorf("the retry has %d bytes, want at most %d", len(update.Retry), maxAssignment)
	}
}
