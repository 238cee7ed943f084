//go:build systemd

package systemd

import (
	"errors"
	"strings"
	"testing"
)

// kubeadm up to 1.34 gives the kubelet a flag that the kubelet of 1.35 does not know. kubeadm upgrade takes it out of kubeadm-flags.env, then the package
// comes, then the unit is restarted. The fake kubelet takes any flag, the real one does not.
func TestAFlagThatGoesAwayWithAnUpgrade(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		const flag = "--pod-infra-container-image=registry.k8s.io/pause:3.10"
		m.joined()
		m.write("/var/lib/kubelet/kubeadm-flags.env", `KUBELET_KUBEADM_ARGS="--node-labels=a=b `+flag+`"`+"\n")
		m.kubeletPackage("1.34", "/shared/fake")
		m.kubeletPackage("1.35", "/shared/real")
		m.must("apt-get install -q -y /root/kubelet_1.34.deb %s %s", m.deb("old"), m.packaged("old", "kubelet-supervisor-apt_*.deb"))
		m.must("kubelet-supervisor enable --now")
		m.healthy("kubelet")
		if said, err := m.try("apt-get install -q -y /root/kubelet_1.35.deb"); err == nil || !strings.Contains(said, "local: refused: failed to parse kubelet flag: unknown flag: --pod-infra-container-image") {
			t.Errorf("before kubeadm has taken the flag away: %v, %s", err, said)
		}

		m.write("/var/lib/kubelet/kubeadm-flags.env", `KUBELET_KUBEADM_ARGS="--node-labels=a=b"`+"\n")
		if said, _ := m.try("kubelet-supervisor check --active --kubelet=/shared/real"); !strings.Contains(said, "local: with the command line that the unit has now, which its next start takes: accepted") {
			t.Errorf("check --active: %s", said)
		}
		m.must("kubelet-supervisor reload")
		await(t, "the change is said to be pending", func() error {
			said, _ := m.try("kubelet-supervisor status")
			if !strings.Contains(said, "take effect when systemd starts it again: /var/lib/kubelet/kubeadm-flags.env") {
				return errors.New(said)
			}
			return nil
		})
		m.must("apt-get install -q -y /root/kubelet_1.35.deb")

		before := m.property("kubelet", "MainPID")
		m.must("kill -KILL %s", m.pids(m.kubelet)[0])
		await(t, "systemd starts the supervisor again, with the command line that the unit has now", func() error {
			words, _ := m.try("tr '\\0' ' ' </proc/%s/cmdline", m.property("kubelet", "MainPID"))
			if now := m.property("kubelet", "MainPID"); now == before || strings.Contains(words, flag) || !strings.Contains(words, "--node-labels=a=b") {
				return errors.New("main process " + now + " is " + words)
			}
			return nil
		})
	})
}
