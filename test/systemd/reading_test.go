//go:build systemd

package systemd

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// lines are units whose files are read by systemd and by enable, and that both read alike.
var lines = map[string][]string{
	"bom":        {"[Service]\nExecStart=/usr/bin/kubelet --config=/a\n", "\uFEFF[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --config=/b\n"},
	"joined":     {"[Service]\nExecStart=/usr/bin/kubelet \\\n# a comment \\\n\t--a=1   --b=2 \\\n; another\n  --labels='a=b, \\\n   c=d' \\\n\nRestart=always\n"},
	"windows":    {"[Service]\r\nExecStart=/usr/bin/kubelet \\\r\n --a=1\r\nRestart=always\r\n"},
	"quoted":     {"[Service]\nExecStart=\"/usr/bin/kubelet\" --labels='a=b c' --x=\"${Y}\" 'it''s' \"\" --z\n"},
	"escaped":    {`[Service]` + "\n" + `ExecStart=/usr/bin/kubelet --a=\x41\102\u0043\tx --b=\"q\" \s '\'' --c=a\\b` + "\n"},
	"specifiers": {"[Service]\nExecStart=/usr/bin/kubelet --host=%H --unit=%n --percent=100%% $$HOME\n"},
	"variables":  {"[Service]\nEnvironment=A=b\nExecStart=/usr/bin/kubelet $A ${A} --x=${A},$A\n"},
	"prefixed":   {"[Service]\nExecStart=-+/usr/bin/kubelet --a\n"},
	"relative":   {"[Service]\nExecStart=kubelet --a\n"},
	"twice":      {"[Service]\nExecStart=/usr/bin/kubelet --a\n", "[Unit]\nExecStart=/no\n[Service]\n  ExecStart =  \n ExecStart= /usr/bin/kubelet   --b\n"},
	"semicolon":  {"[Service]\nExecStart=/usr/bin/kubelet --a=b;c --d=';'\n"},
	"wild":       {"[Service]\nExecStart=/usr/bin/kubelet --reserved=cpu=1,memory=1Gi --x=.*(a|b)[c]{2}^$ --y=ä\n"},
}

// unlike are those that systemd reads otherwise than they look, and what enable says of them.
var unlike = map[string]struct{ file, refused string }{
	"blank":  {"[Service]\nExecStart=/usr/bin/kubelet --a \\ \nRestart=always\n", "ends with a backslash"},
	"return": {"[Service]\nExecStart=/usr/bin/kubelet --a\r--b\n", "otherwise than enable does"},
}

// What enable puts behind -- is what systemd started before, to the word, whatever a unit's files look like. What the two read otherwise is
// refused, and nothing is written.
func TestSystemdReadsUnitsAsEnableDoes(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.kubeadm("fake")
		m.must("dpkg -i %s", m.deb("old"))
		for name, files := range lines {
			m.unitFiles("reads-"+name, files)
		}
		for name, u := range unlike {
			m.unitFiles("unlike-"+name, []string{u.file})
		}
		m.must("systemctl daemon-reload")
		for name := range lines {
			unit := "reads-" + name + ".service"
			before := m.argv(unit)
			if said, err := m.try("kubelet-supervisor enable --unit=%s", unit); err != nil {
				t.Errorf("%s: %s", name, said)
				continue
			}
			if now, want := m.argv(unit), "/usr/bin/kubelet-supervisor run $KUBELET_SUPERVISOR_ARGS -- "+before; now != want {
				t.Errorf("%s: systemd started\n%s\nand starts\n%s", name, before, now)
			}
			if said := m.must("kubelet-supervisor enable --unit=%s", unit); !strings.Contains(said, "is there and up to date") {
				t.Errorf("%s, again: %s", name, said)
			}
		}
		for name, u := range unlike {
			said, err := m.try("kubelet-supervisor enable --unit=unlike-%s.service", name)
			if err == nil || !strings.Contains(said, u.refused) || m.has("/etc/systemd/system/unlike-"+name+".service.d") {
				t.Errorf("%s: %v, %s; systemd starts %s", name, err, said, m.argv("unlike-"+name))
			}
		}
		m.readAgain()
		m.distributions()
	})
}

// readAgain is the same for a unit that was taken over, and has another line since: systemd shows only ours by then.
func (m *machine) readAgain() {
	m.Helper()
	const unit, ours, changed = "again.service", "/etc/systemd/system/again.service.d/zz-kubelet-supervisor.conf", "/usr/lib/systemd/system/again.service.d/1.conf"
	m.unitFiles("again", []string{"[Service]\nExecStart=/usr/bin/kubelet --a\n"})
	m.must("systemctl daemon-reload && kubelet-supervisor enable --unit=%s", unit)
	before := m.read(ours)
	m.write(changed, "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --a\r--b\n")
	if said, err := m.try("kubelet-supervisor enable --unit=%s", unit); err == nil || !strings.Contains(said, "otherwise than enable does") || m.read(ours) != before {
		m.Errorf("%v, %s", err, said)
	}
	m.write(changed, lines["bom"][1])
	m.must("kubelet-supervisor enable --unit=%s", unit)
	if now, want := m.argv(unit), "/usr/bin/kubelet-supervisor run $KUBELET_SUPERVISOR_ARGS -- /usr/bin/kubelet --config=/b"; now != want {
		m.Errorf("systemd starts\n%s, want\n%s", now, want)
	}
	if left := m.must("systemctl list-units --all --plain --no-legend 'kubelet-supervisor-*'; ls /run/systemd/system"); strings.Contains(left, "twin") {
		m.Errorf("left: %s", left)
	}
}

// unitFiles writes a unit's file and its drop-ins.
func (m *machine) unitFiles(unit string, files []string) {
	m.Helper()
	for i, content := range files {
		path := "/etc/systemd/system/" + unit + ".service"
		if i > 0 {
			path = fmt.Sprintf("/usr/lib/systemd/system/%s.service.d/%d.conf", unit, i)
		}
		m.write(path, content)
	}
}

// argv is what systemd says that it starts.
func (m *machine) argv(unit string) string {
	m.Helper()
	_, words, _ := strings.Cut(m.must("systemctl show --property=ExecStart %s", unit), "argv[]=")
	words, _, _ = strings.Cut(words, " ; ignore_errors=")
	return words
}

// What a unit needs to be started at all, as systemd tries with the supervisor.
var (
	kubeletPath     = regexp.MustCompile(`(?m)^ExecStart=(\S*/bin/kubelet)\b`)
	environmentPath = regexp.MustCompile(`(?m)^EnvironmentFile=(/\S+)$`)
	workingPath     = regexp.MustCompile(`(?m)^WorkingDirectory=(/\S+)$`)
)

// distributions gives the machine each unit that the unit tests have as a fixture: what they say is taken over is read by systemd in the same way.
func (m *machine) distributions() {
	m.Helper()
	folders, err := filepath.Glob("../../supervisor/cli/testdata/units/*")
	if err != nil || len(folders) < 30 {
		m.Fatalf("%d units: %v", len(folders), err)
	}
	taken := []string{"kubeadm-deb", "kubeadm-rpm", "kind", "minikube", "kubespray", "kops", "eks-al2", "eks-al2023", "gke-cos", "aks-ubuntu", "flatcar", "hard-way", "debian",
		"nixos", "cluster-api-relative", "opensuse"}
	for _, folder := range folders {
		name := filepath.Base(folder)
		files, err := filepath.Glob(folder + "/*")
		if err != nil {
			m.Fatal(err)
		}
		var units []string
		script := ""
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				m.Fatal(err)
			}
			if filepath.Ext(file) == ".sh" {
				script = "/opt/" + name + "/" + filepath.Base(file)
				m.write(script, string(content))
				m.must("chmod +x %s", script)
				continue
			}
			for _, path := range environmentPath.FindAllStringSubmatch(string(content), -1) {
				m.must("mkdir -p %s && touch %s", filepath.Dir(path[1]), path[1])
			}
			for _, path := range workingPath.FindAllStringSubmatch(string(content), -1) {
				m.must("mkdir -p %s", path[1])
			}
			for _, path := range kubeletPath.FindAllStringSubmatch(string(content), -1) {
				m.must("mkdir -p %s && ln -sf /usr/bin/kubelet %s 2>/dev/null || :", filepath.Dir(path[1]), path[1])
			}
			units = append(units, string(content))
		}
		for i := range units {
			units[i] = strings.ReplaceAll(units[i], "=SCRIPT", "="+script)
		}
		m.unitFiles("from-"+name, units)
		m.must("systemctl daemon-reload")
		said, err := m.try("kubelet-supervisor enable --unit=from-%s.service", name)
		if (err == nil) != slices.Contains(taken, name) {
			m.Errorf("%s: %v, %s", name, err, said)
		}
	}
}
