//go:build systemd

package systemd

import (
	"strings"
	"testing"
)

// status says how far a node is, and enable --now touches the kubelet once: typed again it finds nothing to do, until something has changed.
func TestEnableNowTypedAgain(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.joined()
		alone := m.property("kubelet", "MainPID")
		m.must("dpkg -i %s", m.deb("old"))
		m.saysNotRunning("not enabled: kubelet-supervisor enable")
		m.must("kubelet-supervisor enable")
		m.saysNotRunning("enabled, not restarted yet: systemctl restart kubelet.service")
		if main := m.property("kubelet", "MainPID"); main != alone {
			t.Errorf("the kubelet was %s and is %s", alone, main)
		}
		m.must("kubelet-supervisor enable --now")
		first, main := m.healthy("kubelet"), m.property("kubelet", "MainPID")

		const nothing = "Nothing to do:      " + dropIn + " is there and up to date"
		again := func(when string) {
			t.Helper()
			if said := m.must("kubelet-supervisor enable --now"); !strings.Contains(said, nothing) {
				t.Errorf("%s: %s", when, said)
			}
			if now := m.healthy("kubelet"); now != first || m.property("kubelet", "MainPID") != main {
				t.Errorf("%s: the kubelet was %s and is %s", when, first, now)
			}
		}
		again("at once")
		m.must("dpkg -i %s", m.deb("new"))
		again("after an upgrade in place")

		m.write(flagsFile, "KUBELET_SUPERVISOR_ARGS=--trial-period=30m\n")
		if said := m.must("kubelet-supervisor enable --now"); strings.Contains(said, nothing) || m.property("kubelet", "MainPID") == main {
			t.Errorf("other flags: %s", said)
		}
		first, main = m.healthy("kubelet"), m.property("kubelet", "MainPID")
		again("with other flags")

		m.write("/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf", strings.Replace(kubeadmDropIn, "$KUBELET_EXTRA_ARGS", "$KUBELET_EXTRA_ARGS --v=3", 1))
		if said := m.must("kubelet-supervisor enable --now"); strings.Contains(said, nothing) { // systemd has not even read it
			t.Errorf("another ExecStart: %s", said)
		}
		m.kubeletArguments("--node-labels=a=b --v=3")
		first, main = m.healthy("kubelet"), m.property("kubelet", "MainPID")
		again("with another ExecStart")
		m.must("systemctl stop kubelet")
		if said, err := m.try("kubelet-supervisor status"); err == nil || !strings.Contains(said, "enabled, and kubelet.service is not started") {
			t.Errorf("stopped: %v, %s", err, said)
		}
	})
}

// saysNotRunning fails unless status ends with 1 and says why.
func (m *machine) saysNotRunning(why string) {
	m.Helper()
	if said, err := m.try("kubelet-supervisor status"); err == nil || !strings.Contains(said, why) {
		m.Errorf("status: %v, %s, want %s", err, said, why)
	}
}

// A unit of another name runs the node's kubelet: enable adds none, also where flags.env has one, and leads to that unit.
func TestAKubeletOfAnotherUnit(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.must("install /shared/fake %s", m.kubelet)
		m.join()
		m.write("/etc/systemd/system/node-agent.service", "[Service]\nEnvironment=FAKE_KUBELET_RECORD="+recorded+"\nExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml\nRestart=always\n")
		m.must("systemctl daemon-reload && systemctl start node-agent")
		before := m.property("node-agent", "MainPID")
		m.must("dpkg -i %s", m.deb("old"))
		m.write(flagsFile, "KUBELET_ARGS=--config=/var/lib/kubelet/config.yaml\n")
		await(t, "the kubelet listens", func() error { _, err := m.try("true </dev/tcp/127.0.0.1/10248"); return err })
		if said, err := m.try("kubelet-supervisor enable --now"); err == nil || !strings.Contains(said, "kubelet-supervisor enable --unit=node-agent.service") {
			t.Fatalf("%v, %s", err, said)
		}
		m.must("test ! -e /etc/systemd/system/kubelet-supervisor.service")
		if err := m.only(before); err != nil {
			t.Error(err)
		}
		if said := m.must("kubelet-supervisor enable --now --unit=node-agent.service"); !strings.Contains(said, "the kubelet has no --kubeconfig") {
			t.Errorf("said %s", said)
		}
		m.healthy("node-agent")
	})
}

// A unit that may write nothing is refused before it is changed. With the folders that the refusal names it is taken over, and works.
func TestAUnitInASandbox(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.write("/etc/systemd/system/kubelet.service.d/20-strict.conf", "[Service]\nProtectSystem=strict\nReadWritePaths=/var/lib/kubelet /var/log\n")
		m.joined()
		before := m.property("kubelet", "MainPID")
		m.must("dpkg -i %s", m.deb("old"))
		for _, line := range []string{"kubelet-supervisor enable --dry-run", "kubelet-supervisor enable --now"} {
			if said, err := m.try("%s", line); err == nil || !strings.Contains(said, "add ReadWritePaths=/var/lib/kubelet-supervisor to a drop-in") {
				t.Errorf("%s: %v, %s", line, err, said)
			}
		}
		m.unchanged("refused", before)
		m.write("/etc/systemd/system/kubelet.service.d/30-supervisor.conf", "[Service]\nReadWritePaths=/var/lib/kubelet-supervisor\n")
		m.must("mkdir -p /var/lib/kubelet-supervisor && kubelet-supervisor enable --now")
		m.healthy("kubelet")
		if mode := strings.TrimSpace(m.must("stat -c %%a /run/kubelet-supervisor")); mode != "711" {
			t.Errorf("the run folder that systemd made has mode %s", mode)
		}
	})
}

// A folder of units on a file system that cannot be written: a dry run and the real one say so, and the kubelet runs on.
func TestUnitsThatCannotBeWritten(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.joined()
		before := m.property("kubelet", "MainPID")
		m.must("dpkg -i %s", m.deb("old"))
		m.must("mount --bind /etc/systemd/system /etc/systemd/system && mount -o remount,bind,ro /etc/systemd/system")
		for _, line := range []string{"kubelet-supervisor enable --dry-run", "kubelet-supervisor enable --now"} {
			if said, err := m.try("%s", line); err == nil || !strings.Contains(said, dropIn+" cannot be written") {
				t.Errorf("%s: %v, %s", line, err, said)
			}
		}
		m.unchanged("refused", before)
	})
}

// A kubelet.service comes to a node whose kubelet our own unit starts, and is taken over: it starts the kubelet at boot from then on, also where
// its package has not enabled it.
func TestAKubeletUnitThatComesAfterOurOwn(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.must("install /shared/fake %s", m.kubelet)
		m.join()
		m.must("dpkg -i %s", m.deb("old"))
		m.write(flagsFile, "KUBELET_ARGS=--config=/var/lib/kubelet/config.yaml --v=1\n")
		m.must("kubelet-supervisor enable --now")
		m.healthy("kubelet-supervisor")

		m.kubeadm("fake")
		m.must("systemctl disable kubelet && kubelet-supervisor enable --now")
		m.healthy("kubelet")
		if m.has("/etc/systemd/system/kubelet-supervisor.service") {
			t.Error("our own unit is still there")
		}
		m.reboot()
		m.healthy("kubelet")
		m.kubeletArguments("--node-labels=a=b")
	})
}
