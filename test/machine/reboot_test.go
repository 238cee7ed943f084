//go:build machine

package machine

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A reboot in each phase of a change, without an API server: what ran goes on (rule 11).
func TestRebootsInThePhasesOfAChange(t *testing.T) {
	n := runningNode(t)
	n.restartWith("--trial-period=60s")
	assignment := n.configMap(t, "reboots", withPods(51))
	n.assign(t, assignment)

	// The assignment is durable, and nothing else is: the machine loses its power for a moment.
	await(t, "an assignment on the disk", func() error {
		_, err := n.try("grep -q reboots /var/lib/kubelet-supervisor/meta/assigned")
		return err
	})
	back := n.away(t)
	n.reset()
	s := n.runs(51)
	if s.Trial == nil || s.Assignment != assignment {
		t.Fatalf("after a reset it is not on trial: %s", s.text)
	}
	failures := s.Trial.Failures

	// In its trial, as a person does it: that is no failure, and the healthy time is kept.
	await(t, "some healthy time", func() (err error) {
		if s, err = n.status(); err == nil && (s.Trial == nil || s.Trial.Healthy.Duration < 3*time.Second) {
			err = fmt.Errorf("the trial is %+v", s.Trial)
		}
		return err
	})
	n.reboot()
	after := n.runs(51)
	if after.Trial == nil || after.Trial.Failures != failures || after.Trial.Healthy.Duration < s.Trial.Healthy.Duration {
		t.Errorf("before a reboot the trial was %+v, afterwards: %s", s.Trial, after.text)
	}

	// Promoted.
	back()
	v := n.says(t, assignment, "Active")
	if v.Condition.Status != corev1.ConditionTrue || v.Config.Error != "" || v.Config.LastKnownGood == nil {
		t.Errorf("%+v", v)
	}
	back = n.away(t)
	n.reset()
	if s := n.runs(51); s.Trial != nil || s.Condition.Reason != "Active" {
		t.Errorf("after a promotion and a reset: %s", s.text)
	}
	n.reboot()
	n.runs(51)
	back()
	n.says(t, assignment, "Active")
	n.assign(t, "")
	n.says(t, "", "Local")
	n.runs(localPods)
}
