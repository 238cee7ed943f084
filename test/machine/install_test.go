//go:build machine

package machine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The package on a machine as people have them: Debian's kernel and systemd, nothing but cgroup v2, a kubelet as kubeadm's packages bring
// it. docs/reference/install.md, word for word: install, enable, restart.
func TestInstallOnPureCgroupV2(t *testing.T) {
	n := newNodeMachine(t, nodeDisk(t))
	n.on()
	if kind := n.must("stat -fc %%T /sys/fs/cgroup"); kind != "cgroup2fs" {
		t.Errorf("/sys/fs/cgroup is a %s", kind)
	}
	if mounts := n.must("grep cgroup /proc/mounts"); strings.Count(mounts, "\n") != 0 {
		t.Errorf("there are more cgroups: %s", mounts)
	}
	controllers := strings.Fields(n.must("cat /sys/fs/cgroup/cgroup.controllers"))
	for _, needed := range []string{"cpuset", "cpu", "io", "memory", "pids"} {
		if !slices.Contains(controllers, needed) {
			t.Errorf("the controllers are %q", controllers)
		}
	}
	n.install()
	v := n.says(t, "", "Local")
	if v.Condition.Status != corev1.ConditionTrue {
		t.Errorf("%+v", v.Condition)
	}
	await(t, "a Node that is Ready", func() error {
		if v, err := n.view(t); err != nil || !v.Ready {
			return fmt.Errorf("%v %+v", err, v)
		}
		return nil
	})
	s := n.runs(localPods)
	if main := n.property("kubelet", "MainPID"); main != fmt.Sprint(s.Supervisor.PID) {
		t.Errorf("the unit's main process is %s: %s", main, s.text)
	}
	if cgroup := n.must("cat /proc/%d/cgroup", s.Child.PID); cgroup != "0::/system.slice/kubelet.service" {
		t.Errorf("the kubelet is in %s", cgroup)
	}
	// What the kubelet made of it.
	if limit := n.bytes("/sys/fs/cgroup/kubepods.slice/memory.max"); limit <= 0 {
		t.Errorf("memory.max of all pods is %d", limit)
	}
	n.poweroff()
	installed = n.disk.Clone()
	t.Logf("the disk: %+v", n.disk.Counts())
}
