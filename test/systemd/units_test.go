//go:build systemd

package systemd

import (
	"slices"
	"strings"
	"testing"
)

// settings are what the drop-in and the unit of our own say, as systemd understands it. No sandboxing is among them: a kubelet would
// inherit it.
const settings = `Type=notify
NotifyAccess=main
Restart=always
RestartUSec=1s
StartLimitIntervalUSec=0
WatchdogUSec=1min
TimeoutStartUSec=10min
TimeoutStopUSec=1min 30s
OOMScoreAdjust=-999
Delegate=yes
NoNewPrivileges=no
PrivateMounts=no
PrivateTmp=no
ProtectSystem=no
`

// ordering decides what is started before and stopped after the kubelet, a graceful shutdown of the node among it.
var ordering = []string{"After", "Before", "Wants", "Requires", "BindsTo", "PartOf", "Conflicts", "WantedBy"}

// The drop-in changes how the kubelet is run, and neither when nor how systemd kills it.
func TestWhatTheDropInChanges(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.write("/etc/systemd/system/kubelet.service.d/20-runtime.conf", "[Unit]\nAfter=containerd.service remote-fs.target\nWants=containerd.service\nPartOf=nodes.target\n")
		m.joined()
		before := m.ordering("kubelet")
		kill := m.property("kubelet", "KillMode")
		m.must("dpkg -i %s", m.deb("old"))
		m.must("kubelet-supervisor enable --now")
		m.healthy("kubelet")
		m.wantSettings("kubelet")
		if now := m.property("kubelet", "KillMode"); now != kill {
			t.Errorf("KillMode was %s and is %s", kill, now)
		}
		after := m.ordering("kubelet")
		after["After"] = slices.DeleteFunc(after["After"], func(unit string) bool { return unit == "-.mount" }) // comes with any RuntimeDirectory
		for _, name := range ordering {
			if !slices.Equal(before[name], after[name]) {
				t.Errorf("%s was %q and is %q", name, before[name], after[name])
			}
		}
	})
}

// wantSettings compares what systemd says of a unit that runs.
func (m *machine) wantSettings(unit string) {
	m.Helper()
	for line := range strings.Lines(settings) {
		name, want, _ := strings.Cut(strings.TrimSpace(line), "=")
		if got := m.property(unit, name); got != want {
			m.Errorf("%s has %s=%s, want %s", unit, name, got, want)
		}
	}
}

// ordering gives the units that each property names, sorted.
func (m *machine) ordering(unit string) map[string][]string {
	m.Helper()
	units := map[string][]string{}
	for _, name := range ordering {
		units[name] = slices.Sorted(slices.Values(strings.Fields(m.property(unit, name))))
	}
	return units
}

// A kubelet that takes longer to start and to stop than systemd gives is given the time that it is known to need.
func TestASlowKubeletIsGivenTime(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.write("/etc/systemd/system/kubelet.service.d/zzz-impatient.conf", "[Service]\nTimeoutStartSec=2s\nTimeoutStopSec=2s\nEnvironment=\"FAKE_KUBELET={mode: slow, after: 6s, stopAfter: 6s}\"\n")
		m.kubeadm("fake")
		m.join()
		m.must("dpkg -i %s", m.deb("old"))
		m.must("kubelet-supervisor enable --now")
		if state := m.property("kubelet", "StatusText"); !strings.HasPrefix(state, "Local: ") {
			t.Errorf("started, and its status is %q", state)
		}
		m.healthy("kubelet")
		m.must("systemctl stop kubelet")
		if result := m.property("kubelet", "Result"); result != "success" || m.property("kubelet", "NRestarts") != "0" {
			t.Errorf("the unit ended with %s, after %s restarts", result, m.property("kubelet", "NRestarts"))
		}
		if said := m.read(recorded); !strings.Contains(said, `"event":"exit"`) {
			t.Errorf("the kubelet did not end by itself: %s", said)
		}
	})
}
