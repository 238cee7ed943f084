//go:build systemd

package systemd

import (
	"errors"
	"strings"
	"testing"
)

const (
	controllerUnit       = "kubelet-supervisor-controller"
	controllerProgram    = "/usr/libexec/kubelet-supervisor-controller"
	controllerKubeconfig = "/etc/kubelet-supervisor-controller/kubeconfig"
)

// lonely is a kubeconfig for an API server that is not there.
const lonely = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`

// The controller as a service: installing starts nothing, without a kubeconfig it says so, with one it runs as nobody and waits for its API
// server, an upgrade restarts it, and a removal takes it away but for the kubeconfig.
func TestTheControllerAsAService(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.must("dpkg -i %s", m.packaged("old", controllerUnit+"_*.deb"))
		if got := m.property(controllerUnit, "ActiveState"); got != "inactive" {
			t.Errorf("after installing it is %s", got)
		}
		if said, err := m.try("systemctl start %s", controllerUnit); err == nil || !strings.Contains(said, "assertion") && !strings.Contains(said, "Assertion") {
			t.Errorf("without a kubeconfig: %v, %s", err, said)
		}

		m.write(controllerKubeconfig, lonely)
		m.must("chmod 600 %s && systemctl enable --now %s", controllerKubeconfig, controllerUnit)
		first := m.controller()
		if said := m.must("stat -c %%U /proc/%s", first); strings.TrimSpace(said) == "root" {
			t.Error("it runs as root")
		}
		if said, err := m.try("systemd-analyze security --no-pager --threshold=15 %s", controllerUnit); err != nil {
			t.Errorf("it is more exposed than it has to be: %s", said)
		}
		// container-selinux labels each of these as a kubelet.
		if path := m.program(first); strings.Contains(path, "bin/kubelet") {
			t.Errorf("it is started as %s", path)
		}

		m.must("dpkg -i %s", m.packaged("new", controllerUnit+"_*.deb"))
		if second := m.controller(); second == first {
			t.Errorf("after an upgrade it is still process %s", first)
		}
		if said := m.must("%s --version", controllerUnit); !strings.Contains(said, "v0.2.0") {
			t.Errorf("after an upgrade it is %s", said)
		}

		m.must("dpkg --remove %s", controllerUnit)
		if m.pids(controllerProgram) != nil || m.has(controllerProgram) || m.has("/usr/bin/"+controllerUnit) || m.has("/usr/lib/systemd/system/"+controllerUnit+".service") {
			t.Error("it is still there")
		}
		if got := m.read(controllerKubeconfig); got != lonely {
			t.Errorf("the kubeconfig is %q", got)
		}
	})
}

// controller waits until the service says that it waits for its API server, and gives its process.
func (m *machine) controller() string {
	m.Helper()
	pid := m.property(controllerUnit, "MainPID")
	await(m.T, "it has said what it waits for", func() error {
		pid = m.property(controllerUnit, "MainPID")
		if said := m.must("journalctl --no-pager -u %s _PID=%s || :", controllerUnit, pid); !strings.Contains(said, "127.0.0.1:1") {
			return errors.New(said)
		}
		return nil
	})
	if got := m.property(controllerUnit, "ActiveState"); got != "active" {
		m.Errorf("it is %s", got)
	}
	return pid
}
