//go:build linux

package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

// host is a machine with a systemctl that answers from files: units/UNIT is what show says of it, loaded/UNIT what it says after a
// daemon-reload; @LINE@ there is the ExecStart of our drop-in or unit, @TWIN@ that of the twin. What it starts is a supervisor with a kubelet, or
// a probe, which ends as the file probe says. Every call is recorded.
type host struct {
	*testing.T
	folder string
	out    bytes.Buffer
	installation
}

func newHost(t *testing.T) *host {
	h := &host{T: t, folder: t.TempDir()}
	written(t, filepath.Join(h.folder, "bin/systemctl"), `#!/bin/sh
cd '`+h.folder+`'
echo "$*" >>calls
for unit; do :; done
case $1,$unit in
show,kubelet-supervisor-probe*) cat probe 2>/dev/null || echo ActiveState=active ;;
start,kubelet-supervisor-probe*) cp "probes/$unit" probed; ! grep -q ExecMain probe 2>/dev/null || { cat probe-says >"probes/$unit.said"; exit 1; } ;;
show,*) line=$(sed -n 's/^ExecStart=[-+!]*//p' "etc/$unit.d/zz-kubelet-supervisor.conf" "etc/$unit" 2>/dev/null | tail -1)
	twin=$(cat probes/*twin.service probes/*twin.service.d/* 2>/dev/null | sed -n 's/^ExecStart=//p' | tail -1)
	stop=$(sed -n 's/^ExecStopPost=[-+]*\(..*\)/\1/p' etc/kubelet.service.d/zz-kubelet-supervisor.conf etc/kubelet-supervisor.service 2>/dev/null | head -1)
	[ -z "$stop" ] || echo "ExecStopPost={ path=/bin/sh ; argv[]=$stop ; ignore_errors=yes }"
	sed "s|@LINE@|$line|g; s|@TWIN@|$twin|g" "units/$unit" 2>/dev/null || echo LoadState=not-found
	[ ! -e started ] || grep -q ^MainPID "units/$unit" 2>/dev/null || echo MainPID=1 ;;
list-units,*) cat active-units 2>/dev/null || : ;;
--version,*) cat version 2>/dev/null || echo 'systemd 252 (252.38-1)' ;;
daemon-reload,*) mkdir -p units && cp loaded/* units/ 2>/dev/null || : ;;
restart,* | start,*) [ ! -e start-fails ] || { rm start-fails; echo "Job failed." >&2; exit 1; }; touch started; mkdir -p run && cp record run/state.json ;;
esac
`)
	if err := os.Chmod(filepath.Join(h.folder, "bin/systemctl"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(h.folder, "bin")+":"+os.Getenv("PATH"))
	h.installation = installation{out: &h.out, prober: prober{probeFolder: filepath.Join(h.folder, "probes"), unitFiles: unitFiles{unit: kubeletUnit,
		folder: filepath.Join(h.folder, "etc"), executable: "/usr/bin/kubelet-supervisor", aside: filepath.Join(h.folder, "control"),
		flagsFile: filepath.Join(h.folder, "flags.env"), processes: processes{kubelets: func() []runningKubelet { return nil }}}}}
	written(t, h.flagsFile, h.flags("--trial-period=30m"))
	h.runs(&kubelet.Process{PID: 1})
	return h
}

// flags is a file with the supervisor's own, and its folders.
func (h *host) flags(more string) string {
	return "KUBELET_SUPERVISOR_ARGS=--state-dir=" + h.folder + "/state --run-dir=" + h.folder + "/run " + more + "\n"
}

// runs says what a supervisor that is started has for a kubelet.
func (h *host) runs(child *kubelet.Process) {
	h.records(supervisor.Record{Child: child, Healthy: child != nil})
}

// records says what it writes.
func (h *host) records(r supervisor.Record) {
	r.APIVersion, r.Supervisor, r.BootID = "kubelet-supervisor.io/v1", kubelet.ProcessOf(os.Getpid()), kubelet.BootID()
	record, err := json.Marshal(r)
	if err != nil {
		h.Fatal(err)
	}
	written(h.T, filepath.Join(h.folder, "record"), string(record))
}

// kubelet is a unit as kubeadm's packages have it.
func (h *host) kubelet(active string) {
	unit := written(h.T, filepath.Join(h.folder, "lib/kubelet.service"), "[Service]\nExecStart="+fakeKubelet+"\nRestart=always\n")
	conf := written(h.T, filepath.Join(h.folder, "lib/kubelet.service.d/10-kubeadm.conf"), "[Service]\nExecStart=\nExecStart="+fakeKubelet+" $KUBELET_KUBECONFIG_ARGS\n")
	show := "LoadState=loaded\nActiveState=" + active + "\nType=simple\nFragmentPath=" + unit + "\nDropInPaths=" + conf
	written(h.T, filepath.Join(h.folder, "units/kubelet.service"), show+execStart(fakeKubelet+" $KUBELET_KUBECONFIG_ARGS"))
	written(h.T, filepath.Join(h.folder, "loaded/"+twinUnit), "LoadState=loaded"+execStart("@TWIN@"))
	written(h.T, filepath.Join(h.folder, "loaded/kubelet.service"), show+" "+h.dropInPath()+execStart("@LINE@"))
}

// execStart is what systemctl show says of one with these words.
func execStart(words string) string {
	program, _, _ := strings.Cut(words, " ")
	return "\nExecStart={ path=" + program + " ; argv[]=" + words + " ; ignore_errors=no ; start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }\n"
}

// changes are the calls that are no questions.
func (h *host) changes() string {
	data, err := os.ReadFile(filepath.Join(h.folder, "calls"))
	if err != nil && !os.IsNotExist(err) {
		h.Fatal(err)
	}
	var changes []string
	for line := range strings.Lines(string(data)) {
		asked := strings.HasPrefix(line, "show ") || line == "--version\n" || strings.HasPrefix(line, "list-units ")
		if !asked && !strings.Contains(line, "kubelet-supervisor-probe") {
			changes = append(changes, strings.TrimSpace(line))
		}
	}
	return strings.Join(changes, ", ")
}

func (h *host) has(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func TestEnableTakesTheUnitsCommandOver(t *testing.T) {
	for name, test := range map[string]struct {
		active  string
		now     bool
		changes string
		says    string
	}{
		"a kubelet that runs is not touched": {"active", false, "daemon-reload", "When it suits:  systemctl restart kubelet.service"},
		"unless that is asked for":           {"active", true, "daemon-reload, restart kubelet.service", "The supervisor runs the kubelet"},
		"one that does not run":              {"inactive", false, "daemon-reload", "systemctl start kubelet.service"},
		"and that is to run":                 {"failed", true, "daemon-reload, start kubelet.service", "The supervisor runs the kubelet"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.kubelet(test.active)
			if err := h.enable(t.Context(), test.now); err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(h.dropInPath())
			line := "\nExecStart=\nExecStart=/usr/bin/kubelet-supervisor run $KUBELET_SUPERVISOR_ARGS -- " + fakeKubelet + " $KUBELET_KUBECONFIG_ARGS\n"
			if err != nil || !strings.HasSuffix(string(content), line) || !strings.HasPrefix(string(content), ourMark) {
				t.Errorf("%v, %s", err, content)
			}
			if strings.Contains(string(content), "@") || strings.Contains(string(content), "KillMode=") {
				t.Errorf("a placeholder or a KillMode in\n%s", content)
			}
			if h.changes() != test.changes || !strings.Contains(h.out.String(), test.says) {
				t.Errorf("did %s, said %s", h.changes(), h.out.String())
			}
		})
	}
}

func TestEnableAgainChangesNothing(t *testing.T) {
	h := newHost(t)
	h.kubelet("active")
	for range 2 {
		if err := h.enable(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	if h.changes() != "daemon-reload" || !strings.Contains(h.out.String(), "is there and up to date") {
		t.Errorf("did %s, said %s", h.changes(), h.out.String())
	}
}

func TestEnableAgainFollowsAChangedUnit(t *testing.T) {
	h := newHost(t)
	h.kubelet("active")
	if err := h.enable(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	written(t, filepath.Join(h.folder, "lib/kubelet.service.d/10-kubeadm.conf"), "[Service]\nExecStart=\nExecStart="+fakeKubelet+" --new\n")
	if err := h.enable(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(h.dropInPath()); err != nil || !strings.HasSuffix(string(content), " --new\n") {
		t.Errorf("%v, %s", err, content)
	}
}

// status tells that enable has to be run again.
func TestAUnitThatChangedIsTold(t *testing.T) {
	h := newHost(t)
	h.kubelet("active")
	if err := h.enable(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	written(t, h.folder+"/units/kubelet.service", "LoadState=loaded\nFragmentPath="+h.folder+"/lib/kubelet.service\nDropInPaths="+
		h.folder+"/lib/kubelet.service.d/10-kubeadm.conf "+h.dropInPath()+"\n")
	if stale := staleUnits(t.Context(), h.installation.folder); len(stale) > 0 {
		t.Errorf("nothing has changed, and it says %q", stale)
	}
	written(t, filepath.Join(h.folder, "lib/kubelet.service.d/10-kubeadm.conf"), "[Service]\nExecStart=\nExecStart="+fakeKubelet+" --new\n")
	if stale := staleUnits(t.Context(), h.installation.folder); len(stale) != 1 || stale[0] != kubeletUnit {
		t.Errorf("its ExecStart has changed, and it says %q", stale)
	}
}

func TestDryRunChangesNothing(t *testing.T) {
	h := newHost(t)
	h.kubelet("active")
	h.dryRun = true
	if err := h.enable(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	said := h.out.String()
	if h.changes() != "" || h.has(h.folder+"/etc") || !strings.Contains(said, "Would write:        "+h.dropInPath()) ||
		!strings.Contains(said, "ExecStart=/usr/bin/kubelet-supervisor run") || !strings.Contains(said, "Would do:           systemctl restart") {
		t.Errorf("did %s, said %s", h.changes(), said)
	}
}

// Whatever speaks against it is found before anything is changed.
func TestEnableIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(h *host)
		want    string
	}{
		"a masked unit": {func(h *host) {
			written(h.T, h.folder+"/units/kubelet.service", "LoadState=masked\n")
		}, "systemd calls it masked"},
		"no such unit": {func(h *host) { h.unit = "k.service" }, "there is no unit k.service"},
		"no kubelet": {func(h *host) {
			written(h.T, h.flagsFile, "KUBELET=/absent/kubelet\n")
			if err := os.Remove(h.folder + "/units/kubelet.service"); err != nil {
				h.Fatal(err)
			}
		}, "there is neither a kubelet.service nor the kubelet itself"},
		"a kubelet without a command line": {func(h *host) {
			written(h.T, h.flagsFile, "KUBELET="+fakeKubelet+"\nKUBELET_ARGS=\"\"\nKUBELET_SUPERVISOR_ARGS=--state-dir="+h.folder+"/state\n")
			if err := os.Remove(h.folder + "/units/kubelet.service"); err != nil {
				h.Fatal(err)
			}
		}, "KUBELET_ARGS is empty"},
		"a unit that ends": {func(h *host) {
			written(h.T, h.folder+"/units/kubelet.service", "LoadState=loaded\nType=oneshot\n")
		}, "Type=oneshot"},
		"flags that are none": {func(h *host) {
			written(h.T, h.flagsFile, "KUBELET_SUPERVISOR_ARGS=\"--trial=1m\"\n")
		}, "unknown flag: --trial"},
		"flags that make no sense": {func(h *host) {
			written(h.T, h.flagsFile, "KUBELET_SUPERVISOR_ARGS=--trial-failures=0\n")
		}, "leaves no try"},
		"a state folder on what cannot be written": {func(h *host) {
			written(h.T, h.flagsFile, "KUBELET_SUPERVISOR_ARGS=--state-dir=/proc/state\n")
		}, "the state folder /proc/state cannot be written"},
		"a quote that is not closed": {func(h *host) {
			written(h.T, h.flagsFile, "KUBELET_SUPERVISOR_ARGS=--state-dir=\"/x y\n")
		}, "a quote \" is not closed"},
		"a path with a blank":              {func(h *host) { h.executable = "/opt/my tools/kubelet-supervisor" }, "a unit cannot name"},
		"a path that systemd would expand": {func(h *host) { h.executable = "/opt/100%/kubelet-supervisor" }, "a unit cannot name"},
		"a shell as the kubelet": {func(h *host) {
			written(h.T, h.folder+"/lib/kubelet.service.d/10-kubeadm.conf", "[Service]\nExecStart=\nExecStart=/bin/sh -c kubelet\n")
		}, "ExecStart must run the kubelet directly"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.kubelet("active")
			test.prepare(h)
			err := h.enable(t.Context(), true)
			if err == nil || !strings.Contains(err.Error(), test.want) || h.changes() != "" || h.has(h.folder+"/etc") {
				t.Errorf("%v; did %s", err, h.changes())
			}
		})
	}
}

// A drop-in with a later name wins: then ours is of no use, and is taken away again.
func TestADropInThatDoesNotCountIsTakenAway(t *testing.T) {
	h := newHost(t)
	h.kubelet("active")
	if err := os.RemoveAll(h.folder + "/loaded"); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(h.dropInPath())
	err := h.enable(t.Context(), true)
	if err == nil || !strings.Contains(err.Error(), "does a later drop-in set ExecStart?") || h.has(folder) || h.changes() != "daemon-reload, daemon-reload" {
		t.Errorf("%v; did %s", err, h.changes())
	}
}

func TestANodeWithoutAKubeletUnit(t *testing.T) {
	for name, packaged := range map[string]bool{"with a unit of a package that shipped it": true, "without a unit": false} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			written(t, h.flagsFile, "KUBELET="+fakeKubelet+"\nKUBELET_ARGS=--v=2\n"+h.flags(""))
			own := filepath.Join(h.folder, "etc", ownUnit)
			show := "LoadState=loaded\nActiveState=inactive" + execStart("@LINE@") + "FragmentPath="
			if packaged {
				written(t, h.folder+"/units/"+ownUnit, show+"/usr/lib/systemd/system/"+ownUnit+"\n")
			} else {
				written(t, h.folder+"/loaded/"+ownUnit, show+own+"\n")
			}
			if err := h.enable(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			want := "enable " + ownUnit + ", start " + ownUnit
			if !packaged {
				want = "daemon-reload, " + want
			}
			if h.changes() != want || h.has(own) == packaged {
				t.Errorf("did %s, said %s", h.changes(), h.out.String())
			}
			written(t, h.folder+"/units/"+ownUnit, show+own+"\nUnitFileState=enabled\n")
			if err := h.disable(t.Context()); err != nil {
				t.Fatal(err)
			}
			if want += ", disable --now " + ownUnit; !strings.HasPrefix(h.changes(), want) || h.has(own) {
				t.Errorf("did %s, said %s", h.changes(), h.out.String())
			}
		})
	}
}

func TestDisable(t *testing.T) {
	h := newHost(t)
	h.kubelet("active")
	if err := h.enable(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	dry := h.installation
	dry.dryRun = true
	if err := dry.disable(t.Context()); err != nil || !h.has(h.dropInPath()) || h.changes() != "daemon-reload" {
		t.Fatalf("dry run: %v; did %s", err, h.changes())
	}
	if err := h.disable(t.Context()); err != nil {
		t.Fatal(err)
	}
	if h.has(filepath.Dir(h.dropInPath())) || h.changes() != "daemon-reload, daemon-reload, restart kubelet.service" {
		t.Errorf("did %s, said %s", h.changes(), h.out.String())
	}
	h.out.Reset()
	if err := h.disable(t.Context()); err != nil || !strings.HasPrefix(h.out.String(), "Nothing to undo:") {
		t.Errorf("again: %v, %s", err, h.out.String())
	}
}

func TestDisableLeavesWhatOthersMade(t *testing.T) {
	h := newHost(t)
	h.kubelet("active")
	written(t, h.dropInPath(), "[Service]\n")
	if err := h.disable(t.Context()); err == nil || !strings.Contains(err.Error(), "was not made by kubelet-supervisor enable") || !h.has(h.dropInPath()) {
		t.Error(err)
	}
}
