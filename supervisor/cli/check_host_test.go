//go:build linux

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// expired is a kubeconfig that no kubelet can start with.
func expired(t *testing.T, path string) string {
	t.Helper()
	content, err := fakenode.Kubeconfig("system:node:n1", time.Now().Add(-time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return written(t, path, content)
}

// What a kubelet accepts, and could not be started with on this host, is told beside what it accepts.
func TestCheckLooksAtTheHost(t *testing.T) {
	for name, row := range map[string]struct {
		flags          []string // of the kubelet, after the node's
		impact         bool
		active, file   int // exit codes
		stdout, stderr string
	}{
		"nothing is in the way":     {nil, false, exitOK, exitOK, "local: accepted\n", ""},
		"an expired kubeconfig":     {[]string{"--kubeconfig=EXPIRED"}, false, checkRefused, exitOK, "local: accepted, and no kubelet would start here now: kubeconfig EXPIRED has a client certificate that expired on ", "warning: no kubelet would start with it on this machine now: kubeconfig EXPIRED has"},
		"and the change is made":    {[]string{"--kubeconfig=EXPIRED"}, true, checkRefused, checkRefused, "local: accepted, and no", "is accepted, and no kubelet would start here now: kubeconfig EXPIRED"},
		"a runtime that is not yet": {[]string{"--container-runtime-endpoint=unix:///none.sock"}, false, checkUnknown, exitOK, "local: accepted, and whether a kubelet would start here is not known: the container runtime at unix:///none.sock does not answer", "the container runtime at unix:///none.sock"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			in := strings.NewReplacer("EXPIRED", expired(t, n.path("kubelet.conf")))
			kubelet := append([]string{"--"}, n.kubelet...)
			for _, flag := range row.flags {
				kubelet = append(kubelet, in.Replace(flag))
			}
			code, stdout, _ := does(append([]string{"check", "--active", "--state-dir=" + n.stateDir}, kubelet...)...)
			if code != row.active || !strings.HasPrefix(stdout, in.Replace(row.stdout)) {
				t.Errorf("--active: code %d, said %q", code, stdout)
			}
			words := []string{"check", n.local}
			if row.impact {
				words = append(words, "--impact", "--run-dir="+n.runDir)
			}
			code, stdout, stderr := does(append(words, kubelet...)...)
			if code != row.file || !strings.Contains(stdout, "is accepted by") || !strings.Contains(stderr, in.Replace(row.stderr)) {
				t.Errorf("a file: code %d, said %q and %q", code, stdout, stderr)
			}
		})
	}
}

// enable --now does not restart a kubelet that would not come back, and then changes nothing.
func TestEnableNowLooksAtTheHost(t *testing.T) {
	for name, row := range map[string]struct {
		expired, supervised, now bool
		active                   string
		refused                  bool
	}{
		"it would not come back":                     {true, false, true, "active", true},
		"it runs with a supervisor in front already": {true, true, true, "active", true},
		"nobody has asked for a restart":             {true, false, false, "active", false},
		"it does not run":                            {true, false, true, "failed", false},
		"it would come back":                         {false, false, true, "active", false},
	} {
		t.Run(name, func(t *testing.T) {
			h, n := newHost(t), newNode(t)
			if row.expired {
				n.kubelet = append(n.kubelet, "--kubeconfig="+expired(t, n.path("kubelet.conf")))
			}
			var pid int
			if row.supervised {
				pid = n.run().awaitHealthy().Supervisor.PID
			} else {
				runs := exec.Command(n.kubelet[0], n.kubelet[1:]...)
				if err := runs.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = runs.Process.Signal(syscall.SIGTERM); _ = runs.Wait() })
				pid = runs.Process.Pid
			}
			h.kubelet(row.active)
			unit := filepath.Join(h.folder, "units/kubelet.service")
			says, err := os.ReadFile(unit)
			if err != nil {
				t.Fatal(err)
			}
			written(t, unit, string(says)+fmt.Sprintf("MainPID=%d\n", pid))
			err = h.enable(t.Context(), row.now)
			switch {
			case !row.refused && err != nil:
				t.Error(err)
			case row.refused && (err == nil || !strings.Contains(err.Error(), "kubelet.service is not restarted, because the kubelet would not come back") || h.changes() != "" || h.has(h.dropInPath())):
				t.Errorf("%v; did %q", err, h.changes())
			}
		})
	}
}
