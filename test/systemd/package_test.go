//go:build systemd

package systemd

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// packager is how a package comes and goes.
type packager struct {
	install, upgrade, remove, forget func(m *machine) string // lines of shell
	theirs, ours                     string                  // the new version's flags.env after the upgrade, the edited one after the removal
}

const flagsFile = "/etc/kubelet-supervisor/flags.env"

var packagers = map[string]packager{
	"deb": {
		install: func(m *machine) string { return "dpkg -i " + m.deb("old") },
		upgrade: func(m *machine) string { return "dpkg --force-confold -i " + m.deb("new") }, // dpkg would ask, for the new version has another one
		remove:  func(*machine) string { return "dpkg --remove kubelet-supervisor" },
		forget:  func(*machine) string { return "dpkg --purge kubelet-supervisor" },
		theirs:  flagsFile + ".dpkg-dist",
		ours:    flagsFile,
	},
	"rpm": {
		install: func(m *machine) string { return debianRPM + "-i " + m.rpm("old") },
		upgrade: func(m *machine) string { return debianRPM + "-U " + m.rpm("new") },
		remove:  func(*machine) string { return debianRPM + "-e kubelet-supervisor" },
		forget: func(*machine) string {
			return "rm -r /var/lib/kubelet-supervisor /etc/kubelet-supervisor /run/kubelet-supervisor && rmdir --ignore-fail-on-non-empty -p " + strings.Join(rpmShared, " ")
		},
		theirs: flagsFile + ".rpmnew",
		ours:   flagsFile + ".rpmsave",
	},
}

// debianRPM is rpm where rpm is not what the system is made of; before 4.20 it asks whether that is meant.
const debianRPM = "rpm --nodeps $(rpm --version | grep -q ' 4.1' && echo --force-debian) "

// A package's whole life on a node with a running kubelet: nothing happens to that kubelet but one restart when the supervisor comes,
// and one when it goes.
func TestALifeOfThePackage(t *testing.T) {
	for name, p := range packagers {
		t.Run(name, func(t *testing.T) {
			onEachSystemd(t, func(t *testing.T, m *machine) {
				m.joined()
				const edited = "KUBELET_SUPERVISOR_ARGS=--trial-period=1h\n"
				begin := time.Now()
				before := m.property("kubelet", "MainPID")
				files := m.files()

				m.must("%s", p.install(m))
				m.unchanged("installing", before)
				if said := m.must("kubelet-supervisor enable --dry-run"); !strings.Contains(said, "Would write:        "+dropIn) || m.has(dropIn) {
					t.Errorf("dry run: %s", said)
				}
				if said := m.must("kubelet-supervisor enable"); !strings.Contains(said, "When it suits:  systemctl restart kubelet.service") || !m.has(dropIn) {
					t.Errorf("enable: %s", said)
				}
				m.unchanged("enabling", before)

				m.must("systemctl restart kubelet")
				kubeletPID := m.healthy("kubelet")
				t.Logf("installed, checked, enabled and healthy after %.2f s", time.Since(begin).Seconds())
				if kubeletPID == before {
					t.Errorf("still %s", before)
				}
				mainPID := m.property("kubelet", "MainPID")

				m.write(flagsFile, edited)
				m.must("%s", p.upgrade(m))
				m.isUpgraded(mainPID, kubeletPID)
				if got := m.read(flagsFile); got != edited || !m.has(p.theirs) {
					t.Errorf("what was edited is %q, and the new one is there: %v", got, m.has(p.theirs))
				}

				m.must("kubelet-supervisor disable")
				m.plain()
				m.must("kubelet-supervisor enable --now")
				m.healthy("kubelet")

				m.must("%s", p.remove(m))
				m.plain()
				if !m.has("/var/lib/kubelet-supervisor") || m.read(p.ours) != edited {
					t.Errorf("the state is not there, or %s", p.ours)
				}
				m.must("%s", p.forget(m))
				m.plain()
				if left := added(files, m.files()); len(left) > 0 {
					t.Errorf("left behind: %q", left)
				}
			})
		})
	}
}

// rpmShared are folders that belong to packages of every distribution of rpm's, and to none here.
var rpmShared = []string{"/usr/share/fish/vendor_completions.d", "/usr/share/zsh/site-functions", "/usr/share/licenses"}

// unchanged sees to it that the plain kubelet is still the same.
func (m *machine) unchanged(after, mainPID string) {
	m.Helper()
	if now := m.property("kubelet", "MainPID"); now != mainPID || m.only(mainPID) != nil {
		m.Errorf("after %s the unit's main process is %s, not %s; %v", after, now, mainPID, m.only(mainPID))
	}
}

// isUpgraded sees to it that the new version runs, in the same process, above the same kubelet.
func (m *machine) isUpgraded(mainPID, kubeletPID string) {
	m.Helper()
	m.isVersion(newVersion, mainPID, kubeletPID)
}

func (m *machine) isVersion(version, mainPID, kubeletPID string) {
	m.Helper()
	if now := m.property("kubelet", "MainPID"); now != mainPID {
		m.Errorf("the supervisor is another process, %s, not %s", now, mainPID)
	}
	if program := m.program(mainPID); program != m.supervisor {
		m.Errorf("the supervisor still runs %s", program)
	}
	if err := m.only(kubeletPID); err != nil {
		m.Error(err)
	}
	if restarts := m.property("kubelet", "NRestarts"); restarts != "0" {
		m.Errorf("%s restarts", restarts)
	}
	if said := m.must("kubelet-supervisor version"); !strings.Contains(said, version) {
		m.Errorf("version: %s", said)
	}
	if state := m.property("kubelet", "ActiveState"); state != "active" {
		m.Errorf("the unit is %s", state)
	}
}

// plain waits until the kubelet is what its own unit says, and alone.
func (m *machine) plain() {
	m.Helper()
	await(m.T, "the kubelet as its own unit says", func() error {
		main := m.property("kubelet", "MainPID")
		if program := m.program(main); program != m.kubelet {
			return fmt.Errorf("the unit's main process %s is %s", main, program)
		}
		return m.only(main)
	})
	if m.has(dropIn) {
		m.Error("the drop-in is still there")
	}
	if kind := m.property("kubelet", "Type"); kind != "simple" {
		m.Errorf("the unit has Type=%s", kind)
	}
}

// files are all that lie on the machine's disk, but for what package managers and the journal write for themselves.
func (m *machine) files() map[string]bool {
	m.Helper()
	list := m.must(`find /etc /usr /opt /run /var /srv /root -xdev \( -path /var/lib/dpkg -o -path /var/lib/rpm -o -path /root/.rpmdb -o -path /var/log -o -path /var/cache \
		-o -path /run/systemd -o -path /var/lib/systemd -o -path /var/tmp -o -path /usr/lib/sysimage \) -prune -o -print`)
	files := map[string]bool{}
	for file := range strings.Lines(list) {
		files[strings.TrimSpace(file)] = true
	}
	return files
}

func added(before, after map[string]bool) (files []string) {
	for file := range after {
		if !before[file] && !strings.HasPrefix(file, "/run/log") {
			files = append(files, file)
		}
	}
	return files
}

// What the packages bring is to be found where people and programs look for it.
func TestWhatThePackagesBring(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.must("dpkg -i %s", m.deb("old"))
		for _, file := range []string{"/usr/share/man/man8/kubelet-supervisor-run.8.gz", "/usr/share/bash-completion/completions/kubelet-supervisor",
			"/usr/share/doc/kubelet-supervisor/third-party.txt.gz", "/usr/share/doc/kubelet-supervisor/copyright", "/etc/kubelet-supervisor/flags.env"} {
			if !m.has(file) {
				t.Errorf("there is no %s", file)
			}
		}
		m.must("install /shared/fake %s && sed -i 's/^#KUBELET_ARGS/KUBELET_ARGS/' %s && kubelet-supervisor enable", m.kubelet, flagsFile)
		if said, err := m.try("systemd-analyze verify --man=no kubelet-supervisor.service"); err != nil {
			t.Errorf("systemd does not like the unit: %v: %s", err, said)
		}
	})
}
