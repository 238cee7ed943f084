package v1

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Every API server has to understand it, so its bytes are the contract.
func TestPatch(t *testing.T) {
	observed, nothing := "ns/a/kubelet", ""
	condition := corev1.NodeCondition{Status: "True", Reason: ReasonActive, Message: "all is well"}
	config := corev1.NodeConfigStatus{Error: "an error"}
	for name, row := range map[string]struct {
		before NodeStatus
		after  Publication
		fields bool
		want   string
	}{
		"the first": {NodeStatus{}, Publication{Observed: &observed, Condition: condition}, false,
			`{"metadata":{"annotations":{"kubelet-supervisor.io/config-observed":"ns/a/kubelet","kubelet-supervisor.io/config-status":"{}",` +
				`"kubelet-supervisor.io/status":"{\"observed\":\"ns/a/kubelet\"}"}},"status":{"conditions":[{"type":"KubeletConfigOk","status":"True","reason":"Active",` +
				`"message":"all is well","lastHeartbeatTime":"2026-01-02T12:00:00Z","lastTransitionTime":"2026-01-02T12:00:00Z"}]}}`},
		"the same status, nothing observed, with the fields": {
			NodeStatus{Status: Status{Observed: "before"}, Condition: corev1.NodeCondition{Status: "True", LastTransitionTime: metav1.Time{Time: noon.Add(-time.Hour)}}},
			Publication{Config: config, Observed: &nothing, Status: Status{Reason: ReasonActive}, Condition: condition}, true,
			`{"metadata":{"annotations":{"kubelet-supervisor.io/config-observed":null,"kubelet-supervisor.io/config-status":"{\"error\":\"an error\"}",` +
				`"kubelet-supervisor.io/status":"{\"reason\":\"Active\"}"}},"status":{"conditions":[{"type":"KubeletConfigOk","status":"True","reason":"Active",` +
				`"message":"all is well","lastHeartbeatTime":"2026-01-02T12:00:00Z","lastTransitionTime":"2026-01-02T11:00:00Z"}],` +
				`"config":{"assigned":null,"active":null,"lastKnownGood":null,"error":"an error"}}}`},
		"another status, what was observed stays": {
			NodeStatus{Status: Status{Observed: "before"}, Condition: corev1.NodeCondition{Status: "False", LastTransitionTime: metav1.Time{Time: noon.Add(-time.Hour)}}},
			Publication{Condition: condition}, false,
			`{"metadata":{"annotations":{"kubelet-supervisor.io/config-status":"{}","kubelet-supervisor.io/status":"{\"observed\":\"before\"}"}},` +
				`"status":{"conditions":[{"type":"KubeletConfigOk","status":"True","reason":"Active","message":"all is well",` +
				`"lastHeartbeatTime":"2026-01-02T12:00:00Z","lastTransitionTime":"2026-01-02T12:00:00Z"}]}}`},
	} {
		patch, err := NewPatch(row.before, row.after, noon, row.fields)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := json.Marshal(patch); err != nil || string(text) != row.want {
			t.Errorf("%s: %v\n%s, want\n%s", name, err, text, row.want)
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
		for key, value := range patch.Metadata.Annotations {
			if value != nil {
				node.Annotations[key] = *value
			}
		}
		if !patch.CarriedBy(node) {
			t.Errorf("%s: %v does not carry it", name, node.Annotations)
		}
		if node.Annotations[StatusAnnotation] = "{ }"; patch.CarriedBy(node) {
			t.Errorf("%s: another status carries it", name)
		}
		delete(node.Annotations, StatusAnnotation)
		if patch.CarriedBy(node) {
			t.Errorf("%s: a Node without the status carries it", name)
		}
	}
}
