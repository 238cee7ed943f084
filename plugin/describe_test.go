package plugin

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTrialLeft(t *testing.T) {
	const words = `using current (UID: "u"); the assigned configuration is on trial for 10m0s of health`
	for _, test := range []struct {
		name, message string
		said          time.Duration
		want          string
	}{
		{"a trial that has begun", words, 3 * time.Minute, "at most 7m of health are left, of 10m0s; the node does not say what it counted before"},
		{"nearly over", words, 10*time.Minute - 5*time.Second, "at most 5s of health are left, of 10m0s; the node does not say what it counted before"},
		{"over", words, 10 * time.Minute, "its 10m0s of health are due; the end of it comes as soon as the node has seen them, and its Lease renewed"},
		{"words of another version", "using current; on trial", 3 * time.Minute, "since 3m at least; what is left of it, the node knows: kubelet-supervisor status there"},
		{"words that are no time", "is on trial for ever of health", time.Second, "since 1s at least; what is left of it, the node knows: kubelet-supervisor status there"},
		{"a forged time", "is on trial for -5m of health", time.Second, "since 1s at least; what is left of it, the node knows: kubelet-supervisor status there"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := corev1.NodeCondition{Message: test.message, LastHeartbeatTime: metav1.NewTime(noon.Add(-test.said))}
			if got := trialText(c, noon); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestDescribeTrial(t *testing.T) {
	config := configMapOf("workers", someConfig)
	node := saying(assignedNode("n1", config), workersText, "InTrial", corev1.ConditionTrue, `using current (UID: "u"); the assigned configuration is on trial for 10m0s of health`, config, nil)
	stdout, _ := newBench(t, node).do(t, "describe", "n1")
	golden(t, "describe-trial.txt", stdout)
}
