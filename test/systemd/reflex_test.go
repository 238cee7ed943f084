//go:build systemd

package systemd

import (
	"strings"
	"testing"
)

// Somebody who has installed a package types systemctl enable --now of its name, and the node keeps its kubelet.
func TestEnabledByReflex(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.joined()
		before := m.property("kubelet", "MainPID")
		m.must("dpkg -i %s", m.deb("old"))
		if said, err := m.try("systemctl enable --now kubelet-supervisor"); err == nil || !strings.Contains(said, "kubelet-supervisor.service") {
			t.Errorf("%v, %s", err, said)
		}
		m.unchanged("that", before)
		m.reboot()
		m.plain()
	})
}

// shippers build a package of an earlier version, which ships the unit that is in /root/unit, and install it over, or in place of, the one
// that is there.
var shippers = map[string]func(m *machine){
	"deb": func(m *machine) {
		m.must("dpkg-deb -R %s /root/shipped && install -D -m 644 /root/unit /root/shipped%s && dpkg-deb -Znone -b /root/shipped /root/shipped.deb", m.deb("old"), shippedUnit)
		m.must("dpkg --force-confold -i /root/shipped.deb")
	},
	"rpm": func(m *machine) {
		m.must("cp /usr/bin/kubelet-supervisor /root/program && cp %s /root/flags && %s -e kubelet-supervisor && rm -f %s.rpmsave", flagsFile, debianRPM, flagsFile)
		m.write("/root/shipped.spec", `Name: kubelet-supervisor
Version: 0.0.9
Release: 1
Summary: The supervisor, with its unit
License: Apache-2.0
AutoReqProv: no
%global debug_package %{nil}
%global __os_install_post %{nil}
%description
The supervisor, with its unit.
%install
install -D /root/program %{buildroot}/usr/bin/kubelet-supervisor
install -D -m 644 /root/unit %{buildroot}`+shippedUnit+`
install -D -m 644 /root/flags %{buildroot}`+flagsFile+`
%files
/usr/bin/kubelet-supervisor
`+shippedUnit+`
%config(noreplace) `+flagsFile+`
`)
		m.must("rpmbuild -bb --define '_topdir /root/rpm' --define '_binary_payload w1.gzdio' /root/shipped.spec && %s -i /root/rpm/RPMS/*/*.rpm && systemctl daemon-reload", debianRPM)
	},
}

const shippedUnit = "/usr/lib/systemd/system/kubelet-supervisor.service"

// A package of an earlier version shipped the unit. Upgraded, a node that uses it keeps its unit and its kubelet; removed, it has neither.
func TestAPackageThatShippedTheUnit(t *testing.T) {
	const kept, link = "/etc/systemd/system/kubelet-supervisor.service", "/etc/systemd/system/multi-user.target.wants/kubelet-supervisor.service"
	for name, p := range packagers {
		t.Run(name, func(t *testing.T) {
			onEachSystemd(t, func(t *testing.T, m *machine) {
				m.must("install /shared/fake %s", m.kubelet)
				m.write("/var/lib/kubelet/config.yaml", configuration)
				m.must("%s", p.install(m))
				m.write(flagsFile, "KUBELET_ARGS=--config=/var/lib/kubelet/config.yaml --node-labels=a=b\nFAKE_KUBELET_RECORD="+recorded+"\n")
				m.must("kubelet-supervisor enable && tail -n +2 %s >/root/unit && kubelet-supervisor disable && ! test -e %s", kept, kept)
				shippers[name](m)
				m.must("systemctl enable --now kubelet-supervisor")
				before, main := m.healthy("kubelet-supervisor"), m.property("kubelet-supervisor", "MainPID")

				m.must("%s", p.upgrade(m))
				if after := m.healthy("kubelet-supervisor"); after != before || m.property("kubelet-supervisor", "MainPID") != main {
					t.Errorf("after the upgrade %s is %s", before, after)
				}
				m.wantSettings("kubelet-supervisor")
				if m.has(shippedUnit) || !m.has(kept) {
					t.Error("the unit is still shipped, or the node has none")
				}
				m.reboot()
				m.healthy("kubelet-supervisor")
				m.must("%s", p.remove(m))
				if left := append(m.pids(m.kubelet), m.pids(m.supervisor)...); len(left) > 0 || m.has(kept) || m.has(link) {
					t.Errorf("%v are left, or the unit is", left)
				}
			})
		})
	}
}

// A kubelet that would refuse its local configuration is not restarted into it, neither by disable nor by the package's removal.
func TestALocalConfigurationThatIsBroken(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		before := m.supervised()
		m.write("/var/lib/kubelet/config.yaml", configuration+"fake: {mode: refuse, words: maxPods must not be -1}\n")
		for _, line := range []string{"kubelet-supervisor disable", "kubelet-supervisor disable --dry-run", "dpkg --remove kubelet-supervisor"} {
			if said, err := m.try("%s", line); err == nil || !strings.Contains(said, "maxPods must not be -1") || !strings.Contains(said, "--force") {
				t.Errorf("%s: %v, %s", line, err, said)
			}
		}
		if after := m.healthy("kubelet"); after != before || !m.has(dropIn) {
			t.Errorf("%s became %s, and the drop-in is there: %v", before, after, m.has(dropIn))
		}
		m.write("/var/lib/kubelet/config.yaml", configuration)
		m.must("dpkg --remove kubelet-supervisor")
		m.plain()
	})
}

// The kubelet's package is upgraded, and its unit has another line now: status says so until enable was run again.
func TestAnUpgradeOfTheKubeletsUnit(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.supervised()
		const stale = "The ExecStart of kubelet.service differs from when it was enabled"
		if said := m.must("kubelet-supervisor status"); strings.Contains(said, stale) {
			t.Error(said)
		}
		m.write("/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf", strings.Replace(kubeadmDropIn, "$KUBELET_EXTRA_ARGS", "$KUBELET_EXTRA_ARGS --v=3", 1))
		if said := m.must("systemctl daemon-reload && kubelet-supervisor status"); !strings.Contains(said, stale) {
			t.Error(said)
		}
		m.must("kubelet-supervisor enable --now")
		m.kubeletArguments("--node-labels=a=b --v=3")
		if said := m.must("kubelet-supervisor status"); strings.Contains(said, stale) {
			t.Error(said)
		}
	})
}
