//go:build systemd

package systemd

import "testing"

const aside = "/run/systemd/system.control/kubelet.service.d/zz-kubelet-supervisor.conf"

// A package whose program is gone, or is none any more, can be removed, and the kubelet is then what its own unit says: the one that the supervisor in
// memory runs still, and the one that was started without it.
func TestRemovingAPackageWhoseProgramIsGone(t *testing.T) {
	for name, p := range packagers {
		t.Run(name, func(t *testing.T) {
			onEachSystemd(t, func(t *testing.T, m *machine) {
				m.joined()
				files := m.files()
				for _, harm := range []func(){
					func() { m.must("rm /usr/bin/kubelet-supervisor") },
					func() {
						m.must("touch /root/empty && chmod +x /root/empty && mv /root/empty /usr/bin/kubelet-supervisor")
						_, _ = m.try("systemctl restart kubelet") // which tells that the first try failed
						m.runsAlone()
					},
				} {
					m.must("%s", p.install(m))
					m.write(flagsFile, "KUBELET_SUPERVISOR_ARGS=--trial-period=1h\n")
					m.must("kubelet-supervisor enable --now")
					m.healthy("kubelet")
					harm()
					m.must("%s", p.remove(m))
					m.plain()
					if m.has(aside) {
						t.Errorf("%s is still there", aside)
					}
					m.must("%s", p.forget(m))
				}
				if left := added(files, m.files()); len(left) > 0 {
					t.Errorf("left behind: %q", left)
				}
			})
		})
	}
}
