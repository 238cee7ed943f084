//go:build systemd

package systemd

import (
	"strings"
	"testing"
)

// Names of units as people type them, and flags and paths with what systemd reads in its own way.
func TestNamesThatSystemdReadsInItsOwnWay(t *testing.T) {
	const escaped = `'my\x2dkubelet.service'`
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.must("install /shared/fake %s", m.kubelet)
		m.join()
		m.write(`/etc/systemd/system/my\x2dkubelet.service`, "[Service]\nEnvironment=FAKE_KUBELET_RECORD="+recorded+"\nExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml\nRestart=always\n")
		m.must("dpkg -i %s && systemctl daemon-reload && systemctl start %s", m.deb("old"), escaped)
		m.must("mkdir '/opt/my tools' && cp /usr/bin/kubelet-supervisor '/opt/my tools/'")
		if said, err := m.try("'/opt/my tools/kubelet-supervisor' enable --now --unit=%s", escaped); err == nil || !strings.Contains(said, "a unit cannot name") {
			t.Errorf("a path with a blank: %v, %s", err, said)
		}
		m.write(flagsFile, `KUBELET_SUPERVISOR_ARGS="--trial-period=30m '--kill-switch=/etc/my switch'"`+"\n")
		m.must("kubelet-supervisor enable --now --unit=%s", escaped)
		m.healthy(escaped)
		if said := m.must("kubelet-supervisor enable --now --unit=%s", escaped); !strings.Contains(said, "Nothing to do:") {
			t.Errorf("again: %s", said)
		}
		m.must("kubelet-supervisor disable --unit=%s && systemctl stop %[1]s && rm /etc/systemd/system/my*", escaped)

		m.joined()
		m.must("kubelet-supervisor enable --now --unit=kubelet")
		m.healthy("kubelet")
		m.must("touch '/etc/my switch' && systemctl restart kubelet")
		m.runsAlone()
		m.must("kubelet-supervisor disable --unit=kubelet")
		m.plain()
	})
}

// status says why the kubelet runs alone also where there is no room to write it down.
func TestAloneBecauseTheRunFolderIsFull(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.supervised()
		m.must("systemctl stop kubelet && rm -r /run/kubelet-supervisor/* && mount -t tmpfs -o size=4k,nr_inodes=2 tmpfs /run/kubelet-supervisor && touch /run/kubelet-supervisor/x && systemctl start kubelet")
		m.runsAlone()
		m.saysNotRunning("the kubelet of kubelet.service runs without it: ")
	})
}

// Two supervisors cannot have one folder. The second is refused before its kubelet is touched.
func TestASecondUnitWithTheSameFolders(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		first := m.supervised()
		m.must("cp %s /usr/bin/kubelet2", m.kubelet)
		m.write("/etc/second.yaml", configuration+"healthzPort: 10348\nport: 10350\n")
		m.write("/etc/systemd/system/second.service", "[Service]\nExecStart=/usr/bin/kubelet2 --config=/etc/second.yaml\nRestart=always\n")
		m.must("systemctl daemon-reload && systemctl start second")
		second := m.property("second", "MainPID")
		for _, flag := range []string{"--dry-run", "", "--now"} {
			if said, err := m.try("kubelet-supervisor enable --unit=second.service %s", flag); err == nil || !strings.Contains(said, "the supervisor of kubelet.service") {
				t.Errorf("%s: %v, %s", flag, err, said)
			}
		}
		if now := m.property("second", "MainPID"); now != second || m.has("/etc/systemd/system/second.service.d") {
			t.Errorf("the second kubelet was %s and is %s, or its unit was changed", second, now)
		}
		if now := m.healthy("kubelet"); now != first {
			t.Errorf("the first kubelet was %s and is %s", first, now)
		}
	})
}
