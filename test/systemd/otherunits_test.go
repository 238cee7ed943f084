//go:build systemd

package systemd

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const (
	plainStart = "ExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml\n"
	vanishes   = "rm /usr/bin/kubelet-supervisor"
)

// ownKubelet makes this the service of the node's own unit, whose kubelet runs.
func (m *machine) ownKubelet(service string) {
	m.Helper()
	m.must("install /shared/fake %s", m.kubelet)
	m.join()
	m.write("/usr/lib/systemd/system/kubelet.service", "[Service]\nEnvironment=FAKE_KUBELET_RECORD="+recorded+"\n"+service)
	m.must("systemctl daemon-reload && systemctl start kubelet")
	await(m.T, "the kubelet alone", func() error { return m.only(m.property("kubelet", "MainPID")) })
	m.must("dpkg -i %s", m.deb("old"))
}

// oneKubelet: there is one, whoever started it.
func (m *machine) oneKubelet() error {
	if pids := m.pids(m.kubelet); len(pids) != 1 {
		return fmt.Errorf("kubelets %v: %s", pids, m.must("systemctl show -p ActiveState,SubState,NRestarts,Result kubelet"))
	}
	return nil
}

// Whatever the unit of others is like, and whatever became of the program: there is a kubelet after the next start (rules 2 and 25).
func TestUnitsOfOthersWhereTheProgramCannotBeExecuted(t *testing.T) {
	for name, test := range map[string]struct{ service, harm string }{
		"Restart=no, which is systemd's default":  {plainStart, vanishes},
		"a minus, and an ExecStopPost that fails": {"ExecStart=-/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml\nRestart=always\nExecStopPost=/bin/false\n", vanishes},
		"a PATH without /usr/bin, and a program that is cut": {plainStart + "Restart=always\nEnvironment=PATH=/opt/bin\n",
			"head -c 9000000 /usr/bin/kubelet-supervisor >/root/n && chmod 755 /root/n && mv /root/n /usr/bin/kubelet-supervisor"},
		"a run folder that is a file, and Restart=no": {plainStart, "systemctl stop kubelet && rm -r /run/kubelet-supervisor && touch /run/kubelet-supervisor"},
		"codes after which it stays down, and kill -9": {plainStart + "RestartPreventExitStatus=70 SIGKILL\n",
			"kill -KILL $(systemctl show -p MainPID --value kubelet) && sleep 0.2"},
	} {
		t.Run(name, func(t *testing.T) {
			onEachSystemd(t, func(t *testing.T, m *machine) {
				m.ownKubelet(test.service)
				m.must("kubelet-supervisor enable --now")
				m.healthy("kubelet")
				m.must("%s", test.harm)
				if !strings.Contains(test.harm, "kill") {
					_, _ = m.try("systemctl restart kubelet")
				}
				await(t, "a kubelet after a restart", func() error {
					_, err := m.try("systemctl is-active kubelet")
					return errors.Join(err, m.oneKubelet())
				})
			})
		})
	}
}

// What takes the way back from the drop-in is refused, and said where it came later.
func TestALaterFileThatEmptiesExecStopPost(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		empties := "mkdir -p /etc/systemd/system/kubelet.service.d && printf '[Service]\\nExecStopPost=\\n' >/etc/systemd/system/kubelet.service.d/zzz.conf && systemctl daemon-reload"
		m.ownKubelet(plainStart)
		m.must("%s", empties)
		if said, err := m.try("kubelet-supervisor enable --now"); err == nil || !strings.Contains(said, "empties ExecStopPost=") {
			t.Errorf("enable: %v, %s", err, said)
		}
		m.must("rm /etc/systemd/system/kubelet.service.d/zzz.conf && systemctl daemon-reload")
		m.must("kubelet-supervisor enable --now")
		m.must("%s", empties)
		if said, _ := m.try("kubelet-supervisor status"); !strings.Contains(said, "lack our ExecStopPost=, or empty it") {
			t.Errorf("status: %s", said)
		}
	})
}
