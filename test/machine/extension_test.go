//go:build machine

package machine

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/pages"
)

// A host whose /usr is not for packages: the supervisor comes as a system extension. It stays over a reboot, the next version takes its
// place while the kubelet runs on, and it goes again. What is typed is docs/howto/images.md's.
func TestSystemExtension(t *testing.T) {
	page, err := os.ReadFile("../../docs/howto/images.md")
	if err != nil {
		t.Fatal(err)
	}
	fences := pages.Marked(string(page), "machine")
	if len(fences) != 3 {
		t.Fatalf("docs/howto/images.md has %d fences of commands for a machine, want installation, upgrade and removal", len(fences))
	}
	install, upgrade, remove := fences[0], fences[1], fences[2]

	n := newNodeMachine(t, nodeDisk(t))
	n.on()
	n.join()
	n.setFlags() // the package has that file, and the extension has no /etc
	n.image("v0.1.0")
	n.types(install)
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
	n.image("v0.2.0")
	n.types(upgrade)
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

	n.types(remove)
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

// image puts the system extension of a version into the folder in which commands are typed.
func (n *node) image(version string) {
	n.machine.Helper()
	n.must("rm -f /root/*.raw && cp /run/machine/%[1]s.raw /root/kubelet-supervisor_%[1]s_amd64.sysext.raw", version)
}

// types types the commands of a page. All of them have to succeed.
func (n *node) types(commands []pages.Command) {
	n.machine.Helper()
	for _, c := range commands {
		n.must("%s", "cd /root && "+c.Line)
	}
}
