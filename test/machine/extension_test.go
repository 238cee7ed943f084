//go:build machine

package machine

import (
	"fmt"
	"strings"
	"testing"
)

// A host whose /usr is not for packages: the supervisor comes as a system extension, by docs/howto/images.md. It stays over a reboot, the next
// version takes its place while the kubelet runs on, and it goes again.
func TestSystemExtension(t *testing.T) {
	n := newNodeMachine(t, nodeDisk(t))
	n.on()
	n.join()
	n.must("mkdir -p /var/lib/extensions && cp /run/machine/v0.1.0.raw /var/lib/extensions/kubelet-supervisor.raw")
	n.must("systemctl enable systemd-sysext && systemd-sysext refresh && systemctl daemon-reload")
	n.must("kubelet-supervisor enable")
	n.must("mkdir -p /etc/kubelet-supervisor") // the package has it, and the extension has no /etc
	n.setFlags()
	n.must("systemctl restart kubelet")
	n.healthy()
	n.says(t, "", "Local")
	assignment := n.configMap(t, "extension", withPods(58))
	n.assign(t, assignment)
	n.says(t, assignment, "Active")
	// A trial from now on would still be there at the end of this test.
	n.restartWith("--trial-period=24h")
	n.says(t, assignment, "Active")
	before := n.runs(58)
	if version := n.must("/proc/%d/exe version", before.Supervisor.PID); !strings.Contains(version, "v0.1.0") {
		t.Errorf("it is %s", version)
	}

	device := n.must("stat -c %%d /usr/bin/kubelet")
	n.must("cp /run/machine/v0.2.0.raw /var/lib/extensions/.next && mv /var/lib/extensions/.next /var/lib/extensions/kubelet-supervisor.raw")
	n.must("systemd-sysext refresh && systemctl reload kubelet")
	await(t, "the next version, with the same kubelet", func() error {
		s, err := n.status()
		if err != nil {
			return err
		}
		version, err := n.try("/proc/%d/exe version", s.Supervisor.PID)
		if err != nil || !strings.Contains(version, "v0.2.0") {
			return fmt.Errorf("%v %s", err, version)
		}
		return nil
	})
	t.Logf("/usr/bin/kubelet was on device %s and is on %s", device, n.must("stat -c %%d /usr/bin/kubelet"))
	// The same file lies on another mount now, and is the same kubelet: no restart, and no trial, neither now nor at its next start.
	if after := n.runs(58); after.Child.PID != before.Child.PID || after.Trial != nil {
		t.Errorf("before: %s\nafter: %s", before.text, after.text)
	}

	n.reboot()
	n.healthy()
	n.says(t, assignment, "Active")
	if after := n.runs(58); after.Trial != nil {
		t.Errorf("after a reboot: %s", after.text)
	}

	n.must("kubelet-supervisor disable && systemctl restart kubelet")
	n.must("rm /var/lib/extensions/kubelet-supervisor.raw && systemd-sysext refresh")
	await(t, "a kubelet by itself", func() error {
		main, err := n.try("systemctl show --property=MainPID --value kubelet")
		if err != nil {
			return err
		}
		// The /usr that it was started from is gone, and the rest of its path is left.
		if program, err := n.try("readlink /proc/%s/exe", main); err != nil || !strings.HasSuffix(program, "/bin/kubelet") {
			return fmt.Errorf("the unit's main process %s is %q: %v", main, program, err)
		}
		return nil
	})
	if _, err := n.try("test -e /usr/bin/kubelet-supervisor"); err == nil {
		t.Error("the program is still there")
	}
}
