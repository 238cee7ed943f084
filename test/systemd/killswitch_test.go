//go:build systemd

package systemd

import (
	"strings"
	"testing"
)

// The kill switch makes the next start one of the kubelet alone, in the same unit, and its absence one of the supervisor.
func TestTheKillSwitch(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.write("/etc/systemd/system/kubelet.service.d/zzz-impatient.conf", "[Service]\nWatchdogSec=1s\n")
		m.supervised()
		m.must("systemctl stop kubelet")
		m.assign("maxPods: 99\n")
		m.must("systemctl start kubelet")
		m.healthy("kubelet")
		m.must("touch /etc/kubelet-supervisor/disabled && systemctl restart kubelet")
		main := m.property("kubelet", "MainPID")
		await(t, "the kubelet alone", func() error { return m.only(main) })
		if said := m.must("systemctl status kubelet"); !strings.Contains(said, "the kill switch /etc/kubelet-supervisor/disabled is on") {
			t.Error(said)
		}
		m.kubeletArguments("--config=/var/lib/kubelet/config.yaml --node-labels=a=b")
		if said, err := m.try("kubelet-supervisor status"); err == nil {
			t.Errorf("status: %s", said)
		}
		m.must("dpkg -i %s", m.deb("new"))
		m.must("systemctl --no-pager status kubelet; ! timeout 3 tail --pid=%s -f /dev/null", main) // longer than the watchdog's time
		if err := m.only(main); err != nil {
			t.Errorf("a kubelet without a watchdog: %v", err)
		}
		m.must("rm /etc/kubelet-supervisor/disabled && systemctl restart kubelet")
		m.healthy("kubelet")
	})
}
