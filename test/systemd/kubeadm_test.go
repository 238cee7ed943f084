//go:build systemd

package systemd

import (
	"fmt"
	"strings"
	"testing"
)

// The order in which things come on a node that kubeadm makes: packages first, the configuration and the bootstrap credentials with
// kubeadm join, the kubelet's own credentials when the cluster has signed them; later, kubeadm upgrade node.
func TestANodeThatKubeadmMakes(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.kubeadm("fake")
		m.must("dpkg -i %s", m.deb("old"))
		m.must("kubelet-supervisor enable")
		// As on any node before it has joined: no configuration, so no kubelet that stays. It must not hold up anybody.
		m.must("systemctl start --no-block kubelet")
		await(t, "a kubelet that cannot run yet", func() error {
			if !m.has(recorded) || len(m.starts()) == 0 {
				return fmt.Errorf("none was started")
			}
			return nil
		})

		m.join()
		m.write("/etc/kubernetes/bootstrap-kubelet.conf", "apiVersion: v1\nkind: Config\n")
		m.must("systemctl daemon-reload && systemctl restart kubelet")
		m.healthy("kubelet")
		m.kubeletArguments("--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml --node-labels=a=b")

		m.write("/etc/kubernetes/kubelet.conf", kubeconfig)
		m.must("rm /etc/kubernetes/bootstrap-kubelet.conf")
		before := m.healthy("kubelet")

		m.write("/var/lib/kubelet/config.yaml", configuration+"maxPods: 50\n")
		m.write("/var/lib/kubelet/kubeadm-flags.env", "KUBELET_KUBEADM_ARGS=\"--node-labels=a=c\"\n")
		m.write("/etc/default/kubelet", "KUBELET_EXTRA_ARGS=--v=4\n")
		m.must("systemctl restart kubelet")
		if after := m.healthy("kubelet"); after == before {
			t.Errorf("still %s", before)
		}
		m.kubeletArguments("--config=/var/lib/kubelet/config.yaml --node-labels=a=c --v=4")

		m.must("dpkg --purge kubelet-supervisor")
		m.plain()
		m.kubeletArguments("--config=/var/lib/kubelet/config.yaml --node-labels=a=c --v=4")
	})
}

// kubeconfig names an API server that does not answer.
const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`

// kubeletArguments waits until the newest kubelet is one whose arguments end so.
func (m *machine) kubeletArguments(end string) {
	m.Helper()
	await(m.T, "a kubelet with "+end, func() error {
		starts := m.starts()
		if last := strings.Join(starts[len(starts)-1].Argv, " "); !strings.HasSuffix(last, end) {
			return fmt.Errorf("the newest was started with %s", last)
		}
		return nil
	})
}

// A node without a kubelet.service gets the supervisor's own.
func TestANodeWithoutAKubeletUnit(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.must("install /shared/fake %s", m.kubelet)
		m.write("/var/lib/kubelet/config.yaml", configuration)
		m.must("dpkg -i %s", m.deb("old"))
		m.write("/etc/kubelet-supervisor/flags.env", "KUBELET_ARGS=--config=/var/lib/kubelet/config.yaml --node-labels=a=b\nFAKE_KUBELET_RECORD="+recorded+"\n")
		m.must("kubelet-supervisor enable --now")
		before := m.healthy("kubelet-supervisor")
		m.kubeletArguments("--config=/var/lib/kubelet/config.yaml --node-labels=a=b")
		m.wantSettings("kubelet-supervisor")
		if mode := m.property("kubelet-supervisor", "KillMode"); mode != "process" {
			t.Errorf("KillMode=%s", mode)
		}
		main := m.property("kubelet-supervisor", "MainPID")
		m.must("dpkg -i --force-confold %s", m.deb("new"))
		if after := m.healthy("kubelet-supervisor"); after != before || m.property("kubelet-supervisor", "MainPID") != main {
			t.Errorf("after the upgrade %s is %s", before, after)
		}
		m.must("kill -KILL %s", main)
		await(t, "another supervisor", func() error {
			if now := m.property("kubelet-supervisor", "MainPID"); now == main || now == "0" {
				return fmt.Errorf("MainPID=%s", now)
			}
			return nil
		})
		if after := m.healthy("kubelet-supervisor"); after == before {
			t.Errorf("still %s", before)
		}
		if said := m.must("journalctl --boot --unit=kubelet-supervisor --output=cat"); !strings.Contains(said, "stopping the kubelet that an earlier supervisor left behind") {
			t.Errorf("the kubelet was not left behind, or not found:\n%s", said)
		}
		m.reboot()
		m.healthy("kubelet-supervisor")
		m.must("dpkg --purge kubelet-supervisor")
		if left := append(m.pids(m.kubelet), m.pids(m.supervisor)...); len(left) > 0 || m.has("/etc/systemd/system/multi-user.target.wants/kubelet-supervisor.service") {
			t.Errorf("%v are left", left)
		}
	})
}
