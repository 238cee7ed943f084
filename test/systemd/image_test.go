//go:build systemd

package systemd

import (
	"strings"
	"testing"
)

const (
	// extensionFiles lays an extension made of a deb where it is merged from at the next boot.
	extensionFiles = `mkdir -p /var/lib/extensions && dpkg-deb -x %s /var/lib/extensions/kubelet-supervisor && rm -r /var/lib/extensions/kubelet-supervisor/etc &&
		install -d /var/lib/extensions/kubelet-supervisor/usr/lib/extension-release.d &&
		echo ID=_any >/var/lib/extensions/kubelet-supervisor/usr/lib/extension-release.d/extension-release.kubelet-supervisor &&
		systemctl enable systemd-sysext`
	mergeNow = "systemd-sysext refresh && systemctl daemon-reload"
)

// Nodes whose /usr is made elsewhere get the same files without a package manager, as docs/howto/images.md says.
func TestImagesWithoutPackages(t *testing.T) {
	for name, test := range map[string]struct{ bring, at, take string }{
		"a copied binary": {
			bring: "dpkg-deb -x %s /tmp/x && install /tmp/x/usr/bin/kubelet-supervisor /usr/local/bin/",
			at:    "/usr/local/bin/kubelet-supervisor",
			take:  "rm /usr/local/bin/kubelet-supervisor",
		},
		"a system extension": {
			bring: extensionFiles + " && " + mergeNow,
			at:    "/usr/bin/kubelet-supervisor",
			take:  "rm -r /var/lib/extensions/kubelet-supervisor && systemd-sysext refresh",
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEachSystemd(t, func(t *testing.T, m *machine) {
				m.supervisor = test.at
				m.joined()
				before := m.property("kubelet", "MainPID")
				m.must(test.bring, m.deb("old"))
				if unit := m.must("systemctl cat kubelet"); strings.Contains(unit, "kubelet-supervisor") || m.property("kubelet", "MainPID") != before {
					t.Errorf("before enable the unit is %s", unit)
				}
				if err := m.only(before); err != nil {
					t.Error(err)
				}
				m.must("kubelet-supervisor enable --now")
				m.healthy("kubelet")
				if unit := m.must("systemctl cat kubelet"); !strings.Contains(unit, "ExecStart="+test.at+" run ") {
					t.Error(unit)
				}
				m.reboot()
				m.healthy("kubelet")
				m.must("kubelet-supervisor disable")
				m.plain()
				m.must("%s", test.take)
			})
		})
	}
}

// A host that gets the extension and another host's drop-in before its first boot: its first kubelet is the supervisor's, and nobody has
// typed anything.
func TestADropInOfAnotherHost(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.joined()
		m.must(extensionFiles+" && "+mergeNow, m.deb("old"))
		m.must("kubelet-supervisor enable")

		other := boot(t, m.root)
		other.kubeadm("fake")
		other.join()
		other.must(extensionFiles, other.deb("old"))
		other.write(dropIn, m.read(dropIn))
		other.reboot()
		other.healthy("kubelet")
		if starts := other.starts(); len(starts) != 1 {
			t.Errorf("kubelets were started %d times: %+v", len(starts), starts)
		}
		if said := other.must("kubelet-supervisor enable"); !strings.Contains(said, "Nothing to do") {
			t.Errorf("it would write another: %s", said)
		}
		other.must("kubelet-supervisor disable")
		other.plain()
	})
}

// A host that keeps versions side by side, and a link to the one that is used: the unit starts what the link leads to.
func TestALinkToTheProgram(t *testing.T) {
	const link = "/usr/local/bin/kubelet-supervisor"
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.joined()
		m.must("dpkg-deb -x %s /opt/1 && dpkg-deb -x %s /opt/2 && ln -s /opt/1/usr/bin/kubelet-supervisor %s", m.deb("old"), m.deb("new"), link)
		m.supervisor = "/opt/1/usr/bin/kubelet-supervisor"
		m.must("kubelet-supervisor enable --now")
		kubeletPID, main := m.healthy("kubelet"), m.property("kubelet", "MainPID")
		if unit := m.must("systemctl cat kubelet"); !strings.Contains(unit, "ExecStart="+link+" run ") {
			t.Errorf("the unit is %s", unit)
		}
		m.must("ln -sfn /opt/2/usr/bin/kubelet-supervisor %s && systemctl reload kubelet && rm -r /opt/1", link)
		m.supervisor = "/opt/2/usr/bin/kubelet-supervisor"
		m.isUpgraded(main, kubeletPID)
		m.must("systemctl restart kubelet")
		m.healthy("kubelet")
	})
}
