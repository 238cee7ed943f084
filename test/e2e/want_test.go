//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// What NodeConfigStatus.error says: upstream's strings, and the last one ours.
const (
	downloadError = "failed to sync: failed to download config, see Kubelet log for details"
	loadError     = "failed to load config, see Kubelet log for details"
	validateError = "failed to validate config, see Kubelet log for details"
	runError      = "failed to run config, see Kubelet log for details"
)

// source is how a status names this version of the ConfigMap.
func (c *configMap) source(key string) *corev1.NodeConfigSource {
	return &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{
		Namespace: c.Namespace, Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion, KubeletConfigKey: key,
	}}
}

// wantStatus compares the whole of the annotation config-status.
func wantStatus(t *testing.T, v nodeView, assigned, active, lastKnownGood *corev1.NodeConfigSource, statusError string) {
	t.Helper()
	want := corev1.NodeConfigStatus{Assigned: assigned, Active: active, LastKnownGood: lastKnownGood, Error: statusError}
	if difference := cmp.Diff(want, v.Config); difference != "" {
		t.Errorf("%s, - wanted, + seen:\n%s", statusAnnotation, difference)
	}
}

// wantAlike checks that programs are told what people are.
func wantAlike(t *testing.T, v nodeView) {
	t.Helper()
	said := nodev1.Read(v.Node)
	observed := v.Node.Annotations[observedAnnotation]
	if said.Problem != nil || said.Status.Reason != v.Condition.Reason || said.Status.Observed != observed || v.Condition.Status != nodev1.ConditionStatus(said.Status.Reason) {
		t.Errorf("programs are told %+v (%v), people %s %s of %q", said.Status, said.Problem, v.Condition.Status, v.Condition.Reason, observed)
	}
}

// wantCondition checks KubeletConfigOk: how its message begins, and that it is one line of at most 1,024 bytes.
func wantCondition(t *testing.T, v nodeView, status corev1.ConditionStatus, begins string) {
	t.Helper()
	c := v.Condition
	t.Logf("%s=%s %s: %s", conditionType, c.Status, c.Reason, c.Message)
	wantAlike(t, v)
	switch {
	case c.Status != status:
		t.Errorf("%s is %s, want %s: %s", conditionType, c.Status, status, c.Message)
	case !strings.HasPrefix(c.Message, begins):
		t.Errorf("the message does not begin with %q: %s", begins, c.Message)
	case len(c.Message) > 1024 || !utf8.ValidString(c.Message) || strings.ContainsAny(c.Message, "\n\r"):
		t.Errorf("the message is %d bytes long (at most 1,024), or no UTF-8, or no line: %q", len(c.Message), c.Message)
	}
}

// awaitEvents waits until the Node has the events, each given by its beginning "TYPE REASON: MESSAGE", in this order, among
// others.
func (n *node) awaitEvents(t *testing.T, uid string, want ...string) {
	t.Helper()
	await(t, "the events are there", func() error {
		seen, missing := n.events(t, uid), want
		for _, line := range seen {
			if len(missing) > 0 && strings.HasPrefix(line, missing[0]) {
				missing = missing[1:]
			}
		}
		if len(missing) > 0 {
			return fmt.Errorf("event %q is missing among\n%s", missing[0], strings.Join(seen, "\n"))
		}
		return nil
	})
}
