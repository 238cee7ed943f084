//go:build systemd && release

package systemd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/pages"
)

// These tests are of make test-release. /shared has two releases of one commit then, made by test/release/releases.sh, and not old/ and new/.

const (
	served   = "/srv/kubelet-supervisor" // where docs/howto/verify.md has a release
	older    = "/srv/older"              // where the release before is then
	aptList  = "/etc/apt/sources.list.d/kubelet-supervisor.list"
	yumRepo  = "/etc/yum.repos.d/kubelet-supervisor.repo"
	stateDir = "/var/lib/kubelet-supervisor"
	dnf      = "dnf --quiet --assumeyes --releasever=1 " // Debian's does not know which release of Fedora it is on
)

// repository is how packages come out of a release's folder: lines of shell, those that install, upgrade and downgrade from docs/howto/verify.md.
type repository struct {
	change    string // of what is signed, in the folder CHANGED
	prepare   string
	first     string // installs
	others    string // installs plugin and controller
	refresh   string
	upgrade   string
	keep      string // goes on with the release before as a second repository
	downgrade string
	installed string // says which of kubelet-supervisor
}

func repositories(t *testing.T) map[string]repository {
	t.Helper()
	text, err := os.ReadFile("../../docs/howto/verify.md")
	if err != nil {
		t.Fatal(err)
	}
	answering := strings.NewReplacer("apt upgrade", "apt upgrade -y", "apt install", "apt install -y", "dnf ", dnf)
	var lines []string
	for _, name := range []string{"Debian and Ubuntu", "Fedora, RHEL and their like", "The next release, and back"} {
		for _, fence := range pages.Marked(pages.Section(string(text), name), "release") {
			for _, command := range fence {
				lines = append(lines, answering.Replace(command.Line))
			}
		}
	}
	ini := regexp.MustCompile("(?s)```ini\n(.*?)```").FindStringSubmatch(string(text))
	if len(lines) != 10 || ini == nil {
		t.Fatalf("the page has the commands %q and the file %q", lines, ini)
	}
	return map[string]repository{
		"apt": {
			change:    "sed -i 's/^Origin: .*/Origin: somebody/' CHANGED/apt/dists/stable/InRelease",
			prepare:   "rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*", // the machine has no network
			first:     "cd " + served + " && " + strings.Join(lines[:3], " && "),
			others:    lines[3],
			refresh:   "apt-get update -q",
			upgrade:   lines[6],
			keep:      "sed 's#file:[^ ]*#file:" + older + "/apt#' " + aptList + " >/etc/apt/sources.list.d/older.list && apt-get update -q",
			downgrade: lines[7],
			installed: "dpkg-query -W -f '${Version}' kubelet-supervisor",
		},
		"dnf": {
			change:    "echo '<!-- -->' >>CHANGED/yum/repodata/repomd.xml",
			prepare:   "mkdir -p /etc/yum.repos.d && cat >" + yumRepo + " <<'INI'\n" + ini[1] + "INI\n",
			first:     lines[4],
			others:    lines[5],
			refresh:   dnf + "--refresh makecache",
			upgrade:   lines[8],
			keep:      "sed 's#^.kubelet-supervisor#&-older#; s#" + served + "#" + older + "#' " + yumRepo + " >/etc/yum.repos.d/older.repo",
			downgrade: lines[9],
			installed: "rpm -q --queryformat '%{VERSION}-%{RELEASE}' kubelet-supervisor",
		},
	}
}

// A stranger's node, with the repositories of two releases alone: it installs the first one and runs a configuration that has passed its trial,
// upgrades to the next one and goes back. Neither kubelet nor supervisor is another process then, and nothing that is known is lost. The plugin and
// the controller come and go with it.
func TestFromAReleaseToTheNextAndBack(t *testing.T) {
	for name, r := range repositories(t) {
		t.Run(name, func(t *testing.T) {
			onEachSystemd(t, func(t *testing.T, m *machine) {
				m.standsAlone()
				m.must("%s", r.prepare)
				if name == "dnf" { // rpm knows nothing of the shell that Debian's dpkg has put there
					m.must("%s--justdb -i %s", debianRPM, m.shellPackage())
				}
				m.takesNothingChanged(r)

				m.must("ln -sfn /shared/%s %s", oldVersion, served)
				m.must("%s", r.refreshed(r.first))
				m.must("%s", r.others)
				m.othersAre(oldVersion)
				first := m.must("%s", r.installed)
				m.assign("maxPods: 99\n")
				m.write(flagsFile, "KUBELET_SUPERVISOR_ARGS=--trial-period=2s\n")
				m.must("kubelet-supervisor enable --now")
				m.healthy("kubelet")
				m.awaitPromoted()
				before := m.known()
				m.isVersion(oldVersion, before.supervisor, before.kubelet)

				m.must("ln -sfn /shared/%s %s && ln -sfn /shared/%s %s", newVersion, served, oldVersion, older)
				m.must("%s && %s", r.keep, r.upgrade)
				m.isKept("the upgrade", newVersion, before)
				m.othersAre(newVersion)
				next := m.must("%s", r.installed)

				m.must("%s", r.downgrade)
				m.isKept("the way back", oldVersion, before)
				m.othersAre(oldVersion)
				if now := m.must("%s", r.installed); now != first || next == first {
					t.Errorf("installed were %s, then %s, then %s", first, next, now)
				}
				t.Logf("%s, %s, %s; %+v", first, next, first, before)

				m.must("systemctl restart kubelet")
				m.healthy("kubelet")
				if after := m.known(); after.config != before.config || after.kubelet == before.kubelet {
					t.Errorf("after a restart it knows %+v, and knew %+v", after, before)
				}
			})
		})
	}
}

// standsAlone is a node whose kubelet runs without a cluster, so that no Lease is missed in a trial.
func (m *machine) standsAlone() {
	m.Helper()
	m.kubeadm("fake")
	m.join()
	m.write("/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf", strings.ReplaceAll(kubeadmDropIn, "$KUBELET_KUBECONFIG_ARGS ", ""))
	m.must("systemctl daemon-reload && systemctl start kubelet")
	await(m.T, "the kubelet alone", func() error { return m.only(m.property("kubelet", "MainPID")) })
}

// othersAre: plugin and controller are installed in this version. No controller runs, for nobody has given it a kubeconfig.
func (m *machine) othersAre(version string) {
	m.Helper()
	for _, asked := range []string{"kubectl-kubelet --version", controllerUnit + " --version"} {
		if said := m.must("%s", asked); !strings.Contains(said, version) {
			m.Errorf("%s says %s, want %s", asked, said, version)
		}
	}
	if state := m.property(controllerUnit, "ActiveState"); state != "inactive" {
		m.Errorf("the controller's unit is %s", state)
	}
}

// refreshed is a line, with the lists of packages read before.
func (r repository) refreshed(line string) string {
	if strings.Contains(line, "apt update") { // the page's own
		return line
	}
	return r.refresh + " && " + line
}

// takesNothingChanged: what the key has not signed is not installed.
func (m *machine) takesNothingChanged(r repository) {
	m.Helper()
	m.must("mkdir -p /root/changed && cd /shared/%s && cp -r --parents apt/dists yum/repodata kubelet-supervisor.asc /root/changed/ && ln -s $PWD/apt/pool /root/changed/apt/ && ln -s $PWD/yum/*.rpm /root/changed/yum/",
		oldVersion)
	m.must("ln -sfn /root/changed %s && %s", served, strings.ReplaceAll(r.change, "CHANGED", "/root/changed"))
	said, err := m.try("%s", r.refreshed(r.first))
	if err == nil || m.has("/usr/bin/kubelet-supervisor") {
		m.Fatalf("what somebody has changed is installed: %s", said)
	}
	m.Logf("what somebody has changed: %s", said)
}

// known is what an upgrade must not lose.
type known struct {
	kubelet, supervisor string // processes
	config              string // assigned, active and last known good, as status -o json has them
	reason              string
	files               string // of the state folder, with their checksums, but for what is written at times of its own: how a pre-flight went, and the time on trial
}

func (m *machine) known() (k known) {
	m.Helper()
	s, err := m.status()
	if err != nil || s.Child == nil {
		m.Fatalf("%v: %s", err, s.text)
	}
	var more struct{ Config json.RawMessage }
	if err := json.Unmarshal([]byte(s.text), &more); err != nil {
		m.Fatal(err)
	}
	return known{kubelet: fmt.Sprint(s.Child.PID), supervisor: m.property("kubelet", "MainPID"), config: string(more.Config), reason: s.Condition.Reason,
		files: m.must("cd %s && find . -type f ! -path ./meta/preflight ! -path ./meta/trial -print0 | sort -z | xargs -0 sha256sum", stateDir)}
}

// isKept waits until the version runs in place, and compares what it knows.
func (m *machine) isKept(after, version string, before known) {
	m.Helper()
	m.isVersion(version, before.supervisor, before.kubelet)
	m.healthy("kubelet")
	if now := m.known(); now != before {
		m.Errorf("after %s it knows\n%+v\nand knew\n%+v", after, now, before)
	}
	if s, err := m.status(); err != nil || !strings.Contains(s.text, `"version": "`+version+`"`) {
		m.Errorf("after %s the program that runs is another: %v, %s", after, err, s.text)
	}
}

// awaitPromoted waits until what is assigned is the last known good configuration, too.
func (m *machine) awaitPromoted() {
	m.Helper()
	await(m.T, "a passed trial", func() error {
		s, err := m.status()
		if err == nil && (s.Condition.Reason != "Active" || !strings.Contains(s.text, `"lastKnownGood"`)) {
			err = errors.New(s.text)
		}
		return err
	})
}
