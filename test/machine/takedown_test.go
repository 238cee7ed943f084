//go:build machine

package machine

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A configuration that takes the host down, again and again, some time after its kubelet was healthy: by memory that it leaves to nobody,
// by a watchdog, by a bug of the kernel's. Each boot that ended without anybody's asking is a failure of the trial, whatever its health was
// (rule 10), and the last known good configuration is back after three.
func TestAConfigurationThatTakesTheHostDown(t *testing.T) {
	n := runningNode(t)
	n.restartWith("--trial-period=5m")
	assignment := n.configMap(t, "takes-down", withPods(52))
	n.assign(t, assignment)
	for boots := range 3 {
		s := n.runs(52)
		if s.Trial == nil || s.Trial.Failures != boots {
			t.Fatalf("after %d boots that nobody ended: %s", boots, s.text)
		}
		// More health than would excuse the death of a supervisor.
		enough := s.Trial.Healthy.Duration + 15*time.Second
		await(t, "15 s of health", func() (err error) {
			if s, err = n.status(); err == nil && (s.Trial == nil || s.Trial.Healthy.Duration < enough) {
				err = fmt.Errorf("the trial is %+v", s.Trial)
			}
			return err
		})
		n.reset()
	}
	n.runs(localPods)
	v := n.says(t, assignment, "RolledBack", "Rejected")
	if v.Condition.Status != corev1.ConditionFalse || v.Config.Active != nil || v.Config.Error != "failed to run config, see Kubelet log for details" {
		t.Errorf("%+v", v)
	}
	n.says(t, assignment, "Rejected") // local, its control, stays healthy
	n.reset()
	n.runs(localPods)
}
