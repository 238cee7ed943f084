//go:build systemd

package systemd

import (
	"fmt"
	"strings"
	"testing"
)

// Apt stops before it installs a kubelet that would refuse what this node runs it with, and only then. Here the fake kubelet, which takes
// any feature gate, is upgraded to the real one, which does not.
func TestAptAsksTheKubelet(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.joined()
		for version, program := range map[string]string{"1.0": "/shared/fake", "1.1": "/shared/fake", "2.0": "/shared/real"} {
			m.kubeletPackage(version, program)
		}
		m.must("apt-get install -q -y /root/kubelet_1.0.deb %s %s", m.deb("old"), m.packaged("old", "kubelet-supervisor-apt_*.deb"))
		m.assign("featureGates: {DynamicKubeletConfig: true}\n")
		m.must("kubelet-supervisor enable --now")
		runs := m.healthy("kubelet")

		if said := m.apt("1.1"); strings.Contains(said, "kubelet-supervisor:") {
			t.Errorf("a good one: %s", said)
		}

		said, err := m.try("apt-get install -q -y /root/kubelet_2.0.deb")
		if err == nil || !strings.Contains(said, "the kubelet of kubelet 2.0 would not start with all that this node may start it with:\n  assigned, kube-system/a/kubelet: refused: ") ||
			!strings.Contains(said, "unrecognized feature gate: DynamicKubeletConfig") || !strings.Contains(said, "  local: accepted") || !strings.Contains(said, "KUBELET_SUPERVISOR_SKIP=1") {
			t.Errorf("one that refuses: %v: %s", err, said)
		}
		m.hasKubelet("1.1")
		if err := m.only(runs); err != nil {
			t.Error(err)
		}

		m.must("KUBELET_SUPERVISOR_SKIP=1 apt-get install -q -y /root/kubelet_2.0.deb")
		m.hasKubelet("2.0")
		m.apt("1.1")

		m.must("systemctl stop kubelet")
		if said := m.apt("2.0"); !strings.Contains(said, "whether the kubelet of kubelet 2.0 would start on this node is not known:\n  kubelet-supervisor: no supervisor runs with") {
			t.Errorf("its flags are not known: %s", said)
		}
		m.must("kubelet-supervisor disable")
		if said := m.apt("1.1"); strings.Contains(said, "kubelet-supervisor:") {
			t.Errorf("without the supervisor: %s", said)
		}
		m.must("kubelet-supervisor enable && apt-get remove -q -y kubelet-supervisor-apt")
		if said := m.apt("2.0"); !m.has("/etc/apt/apt.conf.d/60kubelet-supervisor") {
			t.Errorf("what is left of the package: %s", said)
		}
	})
}

// kubeletPackage makes /root/kubelet_VERSION.deb.
func (m *machine) kubeletPackage(version, program string) {
	m.Helper()
	m.write("/root/kubelet/DEBIAN/control", fmt.Sprintf("Package: kubelet\nVersion: %s\nArchitecture: all\nMaintainer: Nobody <nobody@example.org>\nDescription: kubelet\n", version))
	m.must("cd /root && install -D %s kubelet/usr/bin/kubelet && echo %s >>kubelet/usr/bin/kubelet && dpkg-deb -Znone -b kubelet kubelet_%s.deb", program, version, version)
}

// apt installs what must go through.
func (m *machine) apt(version string) (said string) {
	m.Helper()
	said = m.must("apt-get install -q -y --allow-downgrades /root/kubelet_%s.deb", version)
	m.hasKubelet(version)
	return said
}

// hasKubelet sees to it that this version is installed, and that nobody left anything behind.
func (m *machine) hasKubelet(version string) {
	m.Helper()
	if got := m.must("dpkg-query -W -f '${Version}' kubelet; tail -n 1 %s", m.kubelet); !strings.HasPrefix(got, version) || !strings.HasSuffix(got, version) {
		m.Errorf("kubelet %.200s is installed, want %s", got, version)
	}
	if left := m.must("ls -d /var/lib/kubelet-supervisor-apt /tmp/kubelet-supervisor-check-* 2>/dev/null || true"); left != "" {
		m.Errorf("left behind: %s", left)
	}
}
