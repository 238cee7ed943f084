//go:build systemd

package systemd

import (
	"strings"
	"testing"
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
			bring: `mkdir -p /var/lib/extensions && dpkg-deb -x %s /var/lib/extensions/kubelet-supervisor && rm -r /var/lib/extensions/kubelet-supervisor/etc &&
				install -d /var/lib/extensions/kubelet-supervisor/usr/lib/extension-release.d &&
				echo ID=_any >/var/lib/extensions/kubelet-supervisor/usr/lib/extension-release.d/extension-release.kubelet-supervisor &&
				systemctl enable systemd-sysext && systemd-sysext refresh && systemctl daemon-reload`,
			at:   "/usr/bin/kubelet-supervisor",
			take: "rm -r /var/lib/extensions/kubelet-supervisor && systemd-sysext refresh",
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEachSystemd(t, func(t *testing.T, m *machine) {
				m.supervisor = test.at
				m.joined()
				m.must(test.bring, m.deb("old"))
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
