package plugin

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

func TestTrialLeft(t *testing.T) {
	const unknown = "how much of it is left, the node knows: kubelet-supervisor status there"
	for _, test := range []struct {
		name  string
		trial nodev1.Trial
		said  time.Duration // ago
		want  string
	}{
		{"a trial that has begun", nodev1.Trial{Healthy: "0s", Of: "10m0s", Tries: 1}, 3 * time.Minute, "at most 7m of health are left, of 10m0s"},
		{"with what it counted before", nodev1.Trial{Healthy: "4m30s", Of: "10m0s", Tries: 2}, 3 * time.Minute, "at most 2m30s of health are left, of 10m0s; it was started 2 times"},
		{"nearly over", nodev1.Trial{Healthy: "0s", Of: "10m0s"}, 10*time.Minute - 5*time.Second, "at most 5s of health are left, of 10m0s"},
		{"over", nodev1.Trial{Healthy: "0s", Of: "10m0s"}, 10 * time.Minute, "its 10m0s of health are due; the end of it comes as soon as the node has seen them, and its Lease renewed"},
		{"a clock that is ahead", nodev1.Trial{Healthy: "0s", Of: "10m0s"}, -time.Hour, "at most 10m of health are left, of 10m0s"},
		{"no times", nodev1.Trial{Healthy: "long", Of: "for ever"}, 3 * time.Minute, unknown},
		{"times below zero", nodev1.Trial{Healthy: "0s", Of: "-5m"}, time.Second, unknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := view.NodeOf(resaying(localNode("n1"), func(s *nodev1.Status) { s.Trial = &test.trial }))
			v.Says.Condition.LastHeartbeatTime = metav1.NewTime(noon.Add(-test.said))
			if got := v.TrialText(noon); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	if left, of := view.NodeOf(localNode("n1")).TrialLeft(noon); left != 0 || of != 0 {
		t.Errorf("of no trial %s of %s are left", left, of)
	}
}

func TestDescribeTrial(t *testing.T) {
	config := configMapOf("workers", someConfig)
	node := saying(assignedNode("n1", config), workersText, "InTrial", corev1.ConditionTrue, `using current (UID: "u"); the assigned configuration is on trial for 10m0s of health`, config, nil)
	resaying(node, func(s *nodev1.Status) { s.Trial = &nodev1.Trial{Healthy: "1m0s", Of: "10m0s", Tries: 1} })
	stdout, _ := newBench(t, node).do(t, "describe", "n1")
	golden(t, "describe-trial.txt", stdout)
}
