//go:build linux

package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

// Before the kubelet depends on the supervisor, systemd itself has started it once, as the unit would.
func TestEnableAsksSystemd(t *testing.T) {
	const exited = "ExecMainCode=1\nResult=exit-code\nExecMainStatus="
	asRoot(t)
	for name, test := range map[string]struct {
		active      string
		now         bool
		probe, says string // nothing: it went well
		refused     string // with these words
	}{
		"it can":                      {active: "active"},
		"it may not execute the file": {active: "active", probe: exited + "203", refused: "systemd cannot execute /usr/bin/kubelet-supervisor for kubelet.service (status 203/EXEC)"},
		"it cannot make what the unit's sandbox is": {active: "active", probe: exited + "226", refused: "status 226"},
		"no answer":                          {active: "active", probe: "ExecMainCode=2\nResult=timeout\nExecMainStatus=15", refused: "gave no answer in 30s"},
		"killed":                             {active: "active", probe: "ExecMainCode=2\nResult=signal\nExecMainStatus=31", refused: "ended with signal 31"},
		"what the supervisor has against it": {active: "active", probe: exited + "1", says: "kubelet-supervisor: the kubelet cannot be started: permission denied", refused: "the supervisor says: the kubelet cannot be started: permission denied"},
		"a unit that names what is missing":  {active: "active", probe: "ExecMainCode=0\nResult=resources\nExecMainStatus=0", refused: "such as an EnvironmentFile"},
		"the same, on a machine that becomes an image":           {active: "inactive", probe: "ExecMainCode=0\nResult=resources\nExecMainStatus=0"},
		"a local configuration that is refused, before a join":   {active: "activating", now: true, probe: exited + "3", says: "x\nkubelet-supervisor: the kubelet would not start with its local configuration: no such file"},
		"the same, and the kubelet that runs is not touched now": {active: "active", probe: exited + "3", says: "kubelet-supervisor: the kubelet would not start with its local configuration: no such file"},
		"the same, and a kubelet that runs would go for it":      {active: "active", now: true, probe: exited + "3", says: "kubelet-supervisor: the kubelet would not start", refused: "the kubelet would not start"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.kubelet(test.active)
			if test.probe != "" {
				written(t, filepath.Join(h.folder, "probe"), test.probe+"\n")
				written(t, filepath.Join(h.folder, "probe-says"), test.says+"\n")
			}
			err := h.enable(t.Context(), test.now)
			if test.refused == "" && (err != nil || !h.has(h.dropInPath())) {
				t.Error(err)
			}
			if test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused) || h.has(h.folder+"/etc") || h.changes() != "") {
				t.Errorf("%v; did %s", err, h.changes())
			}
			if left, _ := os.ReadDir(h.probeFolder); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func asRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: only root asks systemd")
	}
}

// The first start is as the same user, with the same root and sandbox as the unit's, and touches nothing of what the unit has.
func TestTheProbesUnit(t *testing.T) {
	asRoot(t)
	h := newHost(t)
	h.kubelet("active")
	written(t, h.folder+"/lib/kubelet.service.d/10-kubeadm.conf", `[Unit]
Wants=containerd.service
ConditionPathExists=/etc
[Service]
User=kube
EnvironmentFile=-/etc/default/kubelet
ProtectSystem=strict
ExecStartPre=/bin/false
ExecStopPost=/bin/rm -r /
Restart=always
RuntimeDirectory=kubelet
NoExecPaths=/usr \
  /opt
Environment='KUBELET_ARGS=--v=2' NAME=%N
ExecStart=
ExecStart=-`+fakeKubelet+` $KUBELET_KUBECONFIG_ARGS
`)
	if err := h.enable(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	unit, err := os.ReadFile(h.folder + "/probed")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.SplitAfter(string(unit), "[Service]\n")
	service := parts[1]
	if !strings.Contains(parts[0], "\nConditionPathExists=/etc\n") || strings.Contains(parts[0], "Wants=") {
		t.Errorf("%s", parts[0])
	}
	want := "Environment=KUBELET_SUPERVISOR_ARGS=\nUser=kube\nEnvironmentFile=-/etc/default/kubelet\nProtectSystem=strict\nNoExecPaths=/usr    /opt\nEnvironment='KUBELET_ARGS=--v=2' NAME=kubelet\nReadWritePaths=-/run\nType=oneshot\nRemainAfterExit=yes\nTimeoutStartSec=30s\n"
	last := "\nExecStart=/usr/bin/kubelet-supervisor run --self-check=unit $KUBELET_SUPERVISOR_ARGS -- " + fakeKubelet + " $KUBELET_KUBECONFIG_ARGS\n"
	if !strings.HasPrefix(service, want) || !strings.HasSuffix(service, last) || !strings.Contains(service, "EnvironmentFile=-"+h.flagsFile+"\n") || strings.Contains(service, "KUBELET_ARGS=\n") {
		t.Errorf("%s", unit)
	}
}

// A node without a kubelet is lost: where enable --now brings none back, the unit is as before, and runs.
func TestEnableNowIsUndone(t *testing.T) {
	t.Run("systemd cannot restart the unit", func(t *testing.T) {
		h := newHost(t)
		h.kubelet("active")
		written(t, filepath.Join(h.folder, "start-fails"), "")
		err := h.enable(t.Context(), true)
		const want = "daemon-reload, restart kubelet.service, daemon-reload, restart kubelet.service, start kubelet.service"
		if err == nil || !strings.Contains(err.Error(), "the unit is again as it was before") || h.has(h.dropInPath()) || h.changes() != want {
			t.Errorf("%v; did %s", err, h.changes())
		}
	})
	t.Run("not where the supervisor ran the kubelet before", func(t *testing.T) {
		h := newHost(t)
		h.kubelet("active")
		if err := h.enable(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		written(t, filepath.Join(h.folder, "start-fails"), "")
		if err := h.enable(t.Context(), true); err == nil || !strings.Contains(err.Error(), "was enabled before, and stays so") || !h.has(h.dropInPath()) {
			t.Errorf("%v; did %s", err, h.changes())
		}
	})
	t.Run("and no kubelet runs then", func(t *testing.T) {
		h := newHost(t)
		h.kubelet("active")
		for _, folder := range []string{"units", "loaded"} {
			shown := mustRead(t, h.folder+"/"+folder+"/kubelet.service")
			written(t, h.folder+"/"+folder+"/kubelet.service", strings.TrimSpace(shown)+"\nMainPID=0\n")
		}
		written(t, filepath.Join(h.folder, "start-fails"), "")
		if err := h.enable(t.Context(), true); err == nil || !strings.Contains(err.Error(), "as it was before, and no kubelet runs") || h.has(h.dropInPath()) {
			t.Errorf("%v; did %s", err, h.changes())
		}
	})
	t.Run("systemd could not execute it after all", func(t *testing.T) {
		h := newHost(t)
		h.kubelet("active")
		h.runs(nil)
		if err := h.enable(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		written(t, h.asidePath(kubeletUnit), "")
		err := h.startOrUndo(t.Context(), unitState{ActiveState: "active"})
		if err == nil || !strings.Contains(err.Error(), "systemd cannot execute") || h.has(h.dropInPath()) || h.has(h.asidePath(kubeletUnit)) {
			t.Errorf("%v; did %s", err, h.changes())
		}
	})
}

// A unit that has stepped aside until the next boot is enabled again, though its drop-in is up to date.
func TestEnableAfterItSteppedAside(t *testing.T) {
	h := newHost(t)
	h.kubelet("active")
	if err := h.enable(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	written(t, h.asidePath(kubeletUnit), "")
	if err := h.enable(t.Context(), false); err != nil || h.has(h.asidePath(kubeletUnit)) || h.changes() != "daemon-reload, daemon-reload" {
		t.Errorf("%v; did %s", err, h.changes())
	}
}

func TestLabelType(t *testing.T) {
	for label, want := range map[string]string{"": "", "system_u:object_r:bin_t:s0": "bin_t", "system_u:object_r:kubelet_exec_t:s0:c1,c2": "kubelet_exec_t", "unlabeled": ""} {
		if got := labelType(label); got != want {
			t.Errorf("%q: %q", label, got)
		}
	}
}

// A disable that was killed after it had removed the drop-in is finished by the next one; a unit by which somebody else starts the supervisor is left
// alone.
func TestDisableThatWasKilled(t *testing.T) {
	for name, test := range map[string]struct {
		main    string
		line    string
		changes string
	}{
		"the supervisor runs still":      {"/usr/bin/kubelet-supervisor run -- kubelet", fakeKubelet, "daemon-reload, restart kubelet.service"},
		"the kubelet runs as it should":  {"/usr/bin/kubelet --v=2", fakeKubelet, ""},
		"somebody else's unit starts it": {"/usr/bin/kubelet-supervisor run -- kubelet", "/usr/bin/kubelet-supervisor run -- " + fakeKubelet, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.kubelet("active")
			written(t, h.folder+"/lib/kubelet.service.d/10-kubeadm.conf", "[Service]\nExecStart=\nExecStart="+test.line+"\n")
			shown, err := os.ReadFile(h.folder + "/units/kubelet.service")
			if err != nil {
				t.Fatal(err)
			}
			written(t, h.folder+"/units/kubelet.service", strings.TrimSpace(string(shown))+"\nMainPID=7\n")
			h.commandLine = func(int) []string { return strings.Fields(test.main) }
			if err := h.disable(t.Context()); err != nil || h.changes() != test.changes {
				t.Errorf("%v; did %q", err, h.changes())
			}
		})
	}
}

// What was started is said, and looked for where the unit has the supervisor look for it.
func TestWhatEnableNowHasStarted(t *testing.T) {
	t.Run("the kubelet alone", func(t *testing.T) {
		h := newHost(t)
		h.kubelet("active")
		h.records(supervisor.Record{Alone: "the kill switch is on"})
		if err := h.enable(t.Context(), true); err != nil || !strings.Contains(h.out.String(), "The kubelet runs alone, because the kill switch is on.") {
			t.Errorf("%v; said %s", err, h.out.String())
		}
	})
	t.Run("with a run folder of somebody else's drop-in", func(t *testing.T) {
		h := newHost(t)
		h.kubelet("active")
		flags := strings.TrimSpace(strings.TrimPrefix(mustRead(t, h.flagsFile), "KUBELET_SUPERVISOR_ARGS="))
		written(t, h.flagsFile, "")
		for _, folder := range []string{"units", "loaded"} {
			shown := mustRead(t, h.folder+"/"+folder+"/kubelet.service")
			written(t, h.folder+"/"+folder+"/kubelet.service", strings.TrimSpace(shown)+"\nEnvironment=\"KUBELET_SUPERVISOR_ARGS="+flags+"\"\n")
		}
		if err := h.enable(t.Context(), true); err != nil || !strings.Contains(h.out.String(), "The supervisor runs the kubelet") {
			t.Errorf("%v; said %s", err, h.out.String())
		}
	})
	t.Run("a kubelet that does not live", func(t *testing.T) {
		h := newHost(t)
		h.kubelet("active")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		h.records(supervisor.Record{Child: &kubelet.Process{PID: 1}})
		written(t, filepath.Join(h.folder, "run/state.json"), mustRead(t, filepath.Join(h.folder, "record")))
		if _, err := h.awaitKubelet(ctx, true); err == nil || !strings.Contains(err.Error(), "no kubelet that lived") {
			t.Error(err)
		}
		if _, err := h.awaitKubelet(t.Context(), false); err != nil {
			t.Errorf("where none lived before: %v", err)
		}
		if record, err := h.awaitKubelet(t.Context(), true); err != nil || record.Child.PID != 1 {
			t.Errorf("and one that lives: %v", err)
		}
	})
}

// systemctl's own words are told where the probe was not even tried.
func TestAProbeThatIsNotTried(t *testing.T) {
	asRoot(t)
	h := newHost(t)
	h.kubelet("active")
	written(t, filepath.Join(h.folder, "probe"), "ExecMainCode=0\nResult=success\nExecMainStatus=0\n")
	written(t, filepath.Join(h.folder, "probe-says"), "")
	script := filepath.Join(h.folder, "bin/systemctl")
	written(t, script, strings.Replace(mustRead(t, script), `"probes/$unit.said"; exit 1`, `"probes/$unit.said"; echo "Transaction is destructive." >&2; exit 1`, 1))
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := h.enable(t.Context(), false); err == nil || !strings.Contains(err.Error(), "Transaction is destructive.") {
		t.Error(err)
	}
}

// A unit whose conditions do not hold is not restarted, and a local configuration that is refused is no lack of a supervisor.
func TestWhatTheNextStartWouldMeet(t *testing.T) {
	asRoot(t)
	h := newHost(t)
	h.kubelet("active")
	written(t, filepath.Join(h.folder, "probe"), "ActiveState=inactive\nResult=success\n")
	written(t, filepath.Join(h.folder, "probe-says"), "")
	if err := h.enable(t.Context(), true); err == nil || !strings.Contains(err.Error(), "does not hold") || h.changes() != "" {
		t.Errorf("%v; did %s", err, h.changes())
	}
	h = newHost(t)
	h.enabled("active")
	written(t, filepath.Join(h.folder, "probe"), "ExecMainCode=1\nResult=exit-code\nExecMainStatus=3\n")
	written(t, filepath.Join(h.folder, "probe-says"), "kubelet-supervisor: the kubelet would not start with its local configuration: x\n")
	if remarks := strings.Join(h.startRemarks(t.Context()), ""); !strings.Contains(remarks, "has no kubelet with its local configuration") {
		t.Error(remarks)
	}
}
