//go:build systemd

package systemd

import "testing"

// shellPackage makes an rpm of the shell of this machine, for a place that has nothing of rpm's. It says where the file is.
func (m *machine) shellPackage() string {
	m.Helper()
	m.write("/root/shell.spec", `Name: zz-a-shell
Version: 1
Release: 1
Summary: A shell
License: None
AutoReqProv: no
Provides: /bin/sh
%global debug_package %{nil}
%global __os_install_post %{nil}
%description
A shell, with the libraries that it needs.
%install
install -D /bin/dash %{buildroot}/usr/bin/sh
ldd /bin/dash | grep -o '/[^ ]*' | while read -r library; do install -D "$library" "%{buildroot}/usr$(realpath -s "$library" | sed 's,^/usr,,')"; done
ln -s usr/bin %{buildroot}/bin
for folder in lib lib64; do [ ! -d "%{buildroot}/usr/$folder" ] || ln -s "usr/$folder" "%{buildroot}/$folder"; done
find %{buildroot} -mindepth 1 -not -type d -printf '/%%P\n' >/root/shell.files
%files -f /root/shell.files
`)
	m.must("rpmbuild -bb --define '_topdir /root/shell' --define '_binary_payload w1.gzdio' /root/shell.spec")
	return "/root/shell/RPMS/*/zz-a-shell-*.rpm"
}

// An image is made in one transaction, from nothing. rpm then puts the shell before the packages whose scriptlets need it, because they say so,
// and refuses them where there is none.
func TestAnRPMIntoAnEmptyRoot(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		shell := m.shellPackage()
		// With --force-debian before rpm 4.20, as elsewhere here, but with the dependencies.
		const install = "mkdir -p /root/empty && $(rpm --version | grep -q ' 4.1' && echo rpm --force-debian || echo rpm) --root=/root/empty -i "
		for program, files := range map[string]string{
			"kubelet-supervisor": m.rpm("old"),
			controllerUnit:       m.packaged("old", controllerUnit+"-*.rpm"),
		} {
			m.must("rm -rf /root/empty")
			if said, err := m.try(install+"%s", files); err == nil {
				t.Errorf("without a shell, %s was installed: %s", program, said)
			}
			m.must(install+"%s %s", files, shell)
			if m.must("chroot /root/empty /usr/bin/%s --version || chroot /root/empty /usr/bin/%s version", program, program) == "" {
				t.Errorf("%s is not there", program)
			}
		}
	})
}
