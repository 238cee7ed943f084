//go:build systemd

package systemd

import (
	"fmt"
	"strings"
	"testing"
)

// notByPID1 keeps systemd from executing the program, and nobody else: what SELinux, fapolicyd or a wrong label do on other hosts.
const (
	notByPID1 = "[Service]\nNoExecPaths=/usr/local/bin\n"
	guard     = "/etc/systemd/system/kubelet.service.d/50-guard.conf"
	copied    = "dpkg-deb -x %s /tmp/x && install /tmp/x/usr/bin/kubelet-supervisor /usr/local/bin/"
)

// Before the kubelet depends on a program, systemd has started it.
func TestEnableOfAProgramThatSystemdCannotExecute(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.supervisor = "/usr/local/bin/kubelet-supervisor"
		m.joined()
		before := m.property("kubelet", "MainPID")
		m.must(copied, m.deb("old"))
		m.write(guard, notByPID1)
		m.must("systemctl daemon-reload")
		for _, command := range []string{"enable --dry-run", "enable", "enable --now"} {
			said, err := m.try("kubelet-supervisor %s", command)
			if err == nil || !strings.Contains(said, "systemd cannot execute /usr/local/bin/kubelet-supervisor for kubelet.service (status 203/EXEC)") || m.has(dropIn) {
				t.Errorf("%s: %v, %s", command, err, said)
			}
			m.unchanged(command, before)
		}
		if left := m.must("systemctl list-units --all --no-legend 'kubelet-supervisor-probe*'; ls /run/systemd/system | grep probe || true"); left != "" {
			t.Errorf("left of the first start: %s", left)
		}
		m.must("rm %s && systemctl daemon-reload && kubelet-supervisor enable --now", guard)
		m.healthy("kubelet")
	})
}

// A program that vanishes, or that systemd may not execute any more, costs the node its supervisor and not its kubelet: at the next start, and at
// the next boot. Once it is there again, it is used from the next boot on, or after enable.
func TestAProgramThatSystemdCannotExecuteAnyMore(t *testing.T) {
	for name, test := range map[string]struct{ harm, heal string }{
		"it is gone, without a script of its package": {"mv /usr/local/bin/kubelet-supervisor /root/", "mv /root/kubelet-supervisor /usr/local/bin/"},
		"it is guarded": {"printf '" + strings.ReplaceAll(notByPID1, "\n", `\n`) + "' >" + guard + " && systemctl daemon-reload", "rm " + guard + " && systemctl daemon-reload"},
		"it was copied over by what is no program": {"mv /usr/local/bin/kubelet-supervisor /root/ && install /etc/hostname /usr/local/bin/kubelet-supervisor", "install /root/kubelet-supervisor /usr/local/bin/"},
		"it may not be executed by anybody":        {"chmod -x /usr/local/bin/kubelet-supervisor", "chmod +x /usr/local/bin/kubelet-supervisor"},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "it is guarded" {
				t.Skip("NOT TESTED in make test, for it takes most of a minute: make test-long does")
			}
			onEachSystemd(t, func(t *testing.T, m *machine) {
				m.supervisor = "/usr/local/bin/kubelet-supervisor"
				m.joined()
				m.must(copied, m.deb("old"))
				m.must("kubelet-supervisor enable --now")
				m.healthy("kubelet")

				m.must("%s", test.harm)
				m.saysItsNextStart("systemd cannot ")
				_, _ = m.try("systemctl restart kubelet") // which tells that the first try failed
				m.runsAlone()
				m.reboot()
				m.runsAlone()

				m.must("%s", test.heal)
				if said, _ := m.try("kubelet-supervisor status"); !strings.Contains(said, "systemd could not execute the supervisor when it started kubelet.service") {
					t.Errorf("status: %s", said)
				}
				m.must("kubelet-supervisor enable --now")
				m.healthy("kubelet")
				m.reboot()
				m.healthy("kubelet")
				m.must("kubelet-supervisor disable")
				m.plain()
			})
		})
	}
}

// saysItsNextStart waits until the supervisor tells, for programs and people, what systemd has against another start of it.
func (m *machine) saysItsNextStart(words string) {
	m.Helper()
	if testing.Short() {
		return // a look at files comes each minute: make test-long waits for it
	}
	await(m.T, "the supervisor says that systemd would not start it again", func() error {
		said := m.must("cat /run/kubelet-supervisor/state.json")
		if !strings.Contains(said, "the next start by systemd may fail: "+words) {
			return fmt.Errorf("its state: %s", said)
		}
		return nil
	})
}

// runsAlone waits for the kubelet as its own unit starts it.
func (m *machine) runsAlone() {
	m.Helper()
	await(m.T, "the kubelet runs without the supervisor", func() error { return m.only(m.property("kubelet", "MainPID")) })
}

// The unit of our own as well.
func TestOurOwnUnitWithoutItsProgram(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.must("install /shared/fake %s", m.kubelet)
		m.write("/var/lib/kubelet/config.yaml", configuration)
		m.must("dpkg -i %s", m.deb("old"))
		m.write(flagsFile, "KUBELET_ARGS=--config=/var/lib/kubelet/config.yaml --v=1\n")
		m.must("kubelet-supervisor enable --now")
		m.healthy("kubelet-supervisor")
		m.must("mv /usr/bin/kubelet-supervisor /root/")
		m.saysItsNextStart("systemd cannot execute /usr/bin/kubelet-supervisor")
		m.must("kill -HUP %s", m.property("kubelet-supervisor", "MainPID")) // a reload that finds no program changes nothing
		_, _ = m.try("systemctl restart kubelet-supervisor")
		await(t, "the kubelet runs without the supervisor", func() error { return m.only(m.property("kubelet-supervisor", "MainPID")) })
		m.reboot()
		await(t, "the kubelet runs without the supervisor", func() error { return m.only(m.property("kubelet-supervisor", "MainPID")) })
		m.must("mv /root/kubelet-supervisor /usr/bin/ && kubelet-supervisor enable --now")
		m.healthy("kubelet-supervisor")
	})
}

// A package that brings the program back brings the supervisor back at the next restart, and says so. It restarts nothing.
func TestReinstallingAProgramThatWasGone(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.supervised()
		m.must("rm /usr/bin/kubelet-supervisor")
		_, _ = m.try("systemctl restart kubelet") // which tells that the first try failed
		m.runsAlone()
		before := m.property("kubelet", "MainPID")
		if said := m.must("dpkg -i %s", m.deb("old")); !strings.Contains(said, "systemctl restart kubelet.service") || strings.Contains(said, "goes on") {
			t.Errorf("said %s", said)
		}
		m.unchanged("reinstalling", before)
		m.must("systemctl restart kubelet")
		m.healthy("kubelet")
	})
}
