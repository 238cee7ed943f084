//go:build machine

package machine

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/pages"
)

const (
	program = "/usr/bin/kubelet-supervisor"

	// What container-selinux has, and the test's module after it.
	kubeletDomain, kubeletLabel = "kubelet_t", "kubelet_exec_t"
)

// labelled is a node on which SELinux enforces a policy of the folder selinux.
func labelled(t *testing.T, policy string) *node {
	t.Helper()
	n := newNodeMachine(t, nodeDiskWith(t, policy))
	n.words = " security=selinux enforcing=1"
	n.on()
	if mode := n.must("getenforce"); mode != "Enforcing" {
		t.Fatalf("SELinux is %s", mode)
	}
	return n
}

// enforced is such a node with container-selinux's patterns, whose kubelet runs without a supervisor.
func enforced(t *testing.T) *node {
	t.Helper()
	n := labelled(t, "kubelet")
	n.join()
	n.must("systemctl restart kubelet")
	n.answers()
	if got := n.domain(); got != kubeletDomain {
		t.Fatalf("without a supervisor the kubelet is in the domain %s", got)
	}
	return n
}

// answers waits for a kubelet of the node, with a supervisor or without.
func (n *node) answers() {
	n.machine.Helper()
	await(n.T, "a kubelet that answers", func() error {
		_, err := n.Configz(n.Context())
		return err
	})
}

// domain is that of the only kubelet.
func (n *node) domain() string {
	n.machine.Helper()
	return typeOf(n.must("tr -d '\\0' </proc/$(pgrep -x kubelet)/attr/current"))
}

// label is a file's type.
func (n *node) label(path string) string {
	n.machine.Helper()
	return typeOf(n.must("stat -c %%C %s", path))
}

// typeOf is the third part of user:role:type:level.
func typeOf(context string) string {
	fields := strings.Split(context, ":")
	if len(fields) < 4 {
		return "none: " + context
	}
	return fields[2]
}

// kept: a healthy kubelet runs under the supervisor, and both are in the domain that the kubelet had by itself.
func (n *node) kept(after string) (s status) {
	n.machine.Helper()
	s = n.healthy()
	for what, pid := range map[string]int{"kubelet": s.Child.PID, "supervisor": s.Supervisor.PID} {
		if got := typeOf(n.must("tr -d '\\0' </proc/%d/attr/current", pid)); got != kubeletDomain {
			n.Errorf("after %s the %s is in the domain %s", after, what, got)
		}
	}
	if denied := n.must("dmesg | grep 'avc:.*denied.*kubelet' || :"); denied != "" {
		n.Errorf("by %s SELinux denied: %s", after, denied)
	}
	n.must("dmesg --clear")
	return s
}

// alone: a kubelet runs without a supervisor.
func (n *node) alone(after string) {
	n.machine.Helper()
	n.answers()
	if got := n.domain(); got != kubeletDomain {
		n.Errorf("after %s the kubelet is in the domain %s", after, got)
	}
	if s, err := n.status(); err == nil && s.Running {
		n.Errorf("after %s a supervisor runs: %s", after, s.text)
	}
	n.must("dmesg --clear")
}

// refused types what has to fail with a sentence about what is wrong.
func (n *node) refused(line string) {
	n.machine.Helper()
	said, err := n.try("%s 2>&1", line)
	if err == nil || !strings.Contains(said, "cannot execute") {
		n.Errorf("%s: %v: %s", line, err, said)
	}
}

// serviceIsNoKubelet: a program at the path of our controller's gets a domain of services from a unit with NoNewPrivileges=yes, as the controller's
// is. It gets neither the kubelet's nor systemd's own.
func (n *node) serviceIsNoKubelet(path string) {
	n.machine.Helper()
	n.write("/run/systemd/system/domain.service", "[Service]\nType=oneshot\nNoNewPrivileges=yes\nStandardOutput=file:/run/domain\n"+
		"ExecStart="+path+" /proc/self/attr/current\n")
	n.must("install -D /bin/cat %[1]s && restorecon %[1]s && systemctl daemon-reload && systemctl start domain && rm %[1]s", path)
	if got := typeOf(n.must("tr -d '\\0' </run/domain")); got == kubeletDomain || got == "init_t" {
		n.Errorf("a service whose program is %s is in the domain %s", path, got)
	}
}

// A node with SELinux enforcing keeps its kubelet, and the kubelet its domain, over the life of a supervisor that comes as a package.
func TestSELinux(t *testing.T) {
	n := enforced(t)
	n.must("dpkg -i /run/machine/kubelet-supervisor.deb")
	n.setFlags()
	if got := n.label(program); got != kubeletLabel {
		t.Fatalf("the package's program is %s", got)
	}
	n.must("kubelet-supervisor enable --now")
	before := n.kept("enable --now")

	n.must("dpkg --force-confold -i /run/machine/kubelet-supervisor-next.deb")
	after := n.kept("an upgrade")
	if version := n.must("/proc/%d/exe version", after.Supervisor.PID); after.Child.PID != before.Child.PID || !strings.Contains(version, "v0.2.0") {
		t.Errorf("an upgrade restarted the kubelet, or was none: %s, %s", version, after.text)
	}
	n.must("systemctl restart kubelet")
	n.kept("a restart of the next version")

	assignment := n.configMap(t, "labelled", withPods(61))
	n.assign(t, assignment)
	n.says(t, assignment, "Active")
	n.runs(61)
	n.kept("a change")

	n.reboot()
	n.runs(61)
	n.kept("a reboot")

	// An upgrade by hand that forgets of the label: the kubelet runs on, and comes back at the next start, which is another boot's.
	n.must("cp %[1]s /root/next && mv /root/next %[1]s", program)
	if got := n.label(program); got == kubeletLabel {
		t.Fatalf("a file that was moved is %s", got)
	}
	_, _ = n.try("systemctl reload kubelet")
	n.runs(61)
	n.reboot()
	n.alone("a reboot with a program that systemd may not execute")
	n.refused("kubelet-supervisor enable --now")
	n.alone("enable --now with a program that systemd may not execute")
	n.must("restorecon %s && kubelet-supervisor enable --now", program)
	n.runs(61)
	n.kept("restorecon")

	n.must("dpkg --purge kubelet-supervisor")
	n.alone("the removal")
	n.reboot()
	n.alone("the removal and a reboot")
}

// A program that is copied by hand, and the system extension. What is typed is docs/howto/images.md's and docs/reference/install.md's.
func TestSELinuxByHand(t *testing.T) {
	images, install := fencesOf(t, "../../docs/howto/images.md", "selinux", 2), fencesOf(t, "../../docs/reference/install.md", "selinux", 1)
	extension := fencesOf(t, "../../docs/howto/images.md", "machine", 3)
	n := enforced(t)
	n.serviceIsNoKubelet("/usr/libexec/kubelet-supervisor-controller")
	n.setFlags()
	n.must("cp /run/machine/kubelet-supervisor /root/ && cp /root/kubelet-supervisor /root/moved && mv /root/moved /usr/local/bin/kubelet-supervisor")
	n.refused("/usr/local/bin/kubelet-supervisor enable --now")
	n.alone("enable --now of a program that was moved")
	n.must("rm /usr/local/bin/kubelet-supervisor")

	n.types(images[0])
	before := n.kept("a copy")
	n.types(images[1])
	if after := n.kept("the next copy"); after.Child.PID != before.Child.PID {
		t.Errorf("an upgrade restarted the kubelet: %s", after.text)
	}
	n.reboot()
	n.kept("a reboot with a copy")
	n.must("kubelet-supervisor disable && systemctl restart kubelet && rm /usr/local/bin/kubelet-supervisor")
	n.alone("disable")

	// The label of container-selinux is for a path, which an image cannot know: the kubelet runs in another domain of services.
	n.image("v0.1.0")
	n.types(extension[0])
	n.healthy()
	n.reboot()
	n.healthy()
	n.types(extension[2])
	n.alone("the end of the extension")

	n.must("install /root/kubelet-supervisor %[1]s && chcon -t bin_t %[1]s", program)
	n.types(install[0])
	if got := n.label(program); got != kubeletLabel {
		t.Errorf("after restorecon the program is %s", got)
	}
}

// The bare policy of Debian confines the kubelet, and is not supported: this kubelet may not even answer healthz. A node with it may stay without a
// supervisor, and never without a kubelet.
func TestSELinuxReferencePolicy(t *testing.T) {
	n := labelled(t, "debian")
	n.join()
	n.must("install /run/machine/fake /usr/bin/kubelet && restorecon -R /usr/bin/kubelet /etc/kubernetes /var/lib/kubelet && systemctl restart kubelet")
	n.lasts("a start by itself")
	n.must("dpkg -i /run/machine/kubelet-supervisor.deb")
	n.setFlags()
	asInstalled := n.label(program)
	for _, label := range []string{asInstalled, kubeletLabel} {
		n.must("chcon -t %s %s", label, program)
		said, err := n.try("kubelet-supervisor enable --now 2>&1")
		t.Logf("enable --now of a program that is %s: %v: %s", label, err, said)
		// With the kubelet's label the supervisor is confined as well, and can start no kubelet.
		if label == kubeletLabel && (err == nil || !strings.Contains(said, "nothing was changed")) {
			t.Errorf("enable --now takes over with a program that is %s", label)
		}
		n.lasts("enable --now of a program that is " + label)
		n.reboot()
		n.lasts("a reboot with a program that is " + label)
		_, _ = n.try("kubelet-supervisor disable --force; systemctl restart kubelet")
		n.lasts("disable of a program that is " + label)
	}
}

// lasts: one kubelet has run for longer than one that fails at its start, which systemd starts again after 10 s.
func (n *node) lasts(after string) {
	n.machine.Helper()
	await(n.T, "a kubelet after "+after, func() error {
		seconds, err := n.try("ps -o etimes= -C kubelet")
		if err != nil {
			return err
		}
		if age, err := strconv.Atoi(strings.TrimSpace(seconds)); err != nil || age < 20 {
			return fmt.Errorf("kubelets have run for %q s", seconds)
		}
		return nil
	})
}

// fencesOf are the commands of a page that are marked so.
func fencesOf(t *testing.T, path, mark string, count int) [][]pages.Command {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fences := pages.Marked(string(page), mark)
	if len(fences) != count {
		t.Fatalf("%s has %d fences of commands marked %s, want %d", path, len(fences), mark, count)
	}
	return fences
}
