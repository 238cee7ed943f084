//go:build linux

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mainProcess gives a unit a main process with this command line.
func (h *host) mainProcess(unit, line string) {
	h.Helper()
	file, err := os.OpenFile(filepath.Join(h.folder, "units", unit), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		h.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString("MainPID=77\n"); err != nil {
		h.Fatal(err)
	}
	h.installation.commandLine = func(pid int) []string {
		if pid != 77 {
			h.Errorf("asked for process %d", pid)
		}
		return strings.Fields(strings.NewReplacer("KUBELET", fakeKubelet, "supervisor run", "supervisor run "+h.folders()).Replace(line))
	}
}

func (h *host) folders() string {
	return "--state-dir=" + h.folder + "/state --run-dir=" + h.folder + "/run"
}

// settings writes flags.env, with more flags of the supervisor and other variables.
func (h *host) settings(supervisors, others string) {
	h.Helper()
	written(h.T, h.flagsFile, h.flags(supervisors)+others)
}

// enable --now restarts a kubelet only where it was started otherwise than it would be now.
func TestEnableNowOnANodeThatIsRight(t *testing.T) {
	const kubelets = " -- KUBELET --kubeconfig=/etc/kubernetes/kubelet.conf --v=2"
	for name, test := range map[string]struct {
		line  string // of the main process
		flags string // of the supervisor, in flags.env
		right bool
	}{
		"right":                               {"/usr/bin/kubelet-supervisor run --trial-period=30m" + kubelets, "--trial-period=30m", true},
		"right, without flags":                {"/usr/bin/kubelet-supervisor run" + kubelets, "", true},
		"right, and the kubelet has no flags": {"/usr/bin/kubelet-supervisor run -- KUBELET", "", true},
		"other flags since":                   {"/usr/bin/kubelet-supervisor run" + kubelets, "--trial-period=30m", false},
		"fewer flags since":                   {"/usr/bin/kubelet-supervisor run --trial-period=30m" + kubelets, "", false},
		"another program":                     {"/opt/kubelet-supervisor run" + kubelets, "", false},
		"another kubelet":                     {"/usr/bin/kubelet-supervisor run -- /usr/bin/old/kubelet --v=2", "", false},
		"the kubelet alone":                   {"KUBELET --v=2", "", false},
		"nothing that can be looked at":       {"", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.kubelet("active")
			h.settings(test.flags, "")
			if err := h.enable(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			h.mainProcess(kubeletUnit, test.line)
			h.out.Reset()
			want, says := "daemon-reload, restart kubelet.service", "Nothing to change:"
			if test.right {
				want, says = "daemon-reload", "Nothing to do:      "+h.dropInPath()+" is there and up to date, and the supervisor runs as it says (process 77)"
			}
			if err := h.enable(t.Context(), true); err != nil || h.changes() != want || !strings.Contains(h.out.String(), says) {
				t.Errorf("%v; did %s, said %s", err, h.changes(), h.out.String())
			}
			h.out.Reset()
			if err := h.enable(t.Context(), false); err != nil || strings.Contains(h.out.String(), "When it suits:") == test.right {
				t.Errorf("without --now: %v; said %s", err, h.out.String())
			}
		})
	}
}

// The same for the unit that enable makes, whose kubelet and its flags are in flags.env.
func TestEnableNowOfAUnitOfOurOwn(t *testing.T) {
	for line, right := range map[string]bool{
		"/usr/bin/kubelet-supervisor run -- KUBELET --v=2 --a=b":           true,
		"/usr/bin/kubelet-supervisor run -- KUBELET --v=3 --a=b":           false,
		"/usr/bin/kubelet-supervisor run -- " + "/old/kubelet --v=2 --a=b": false,
	} {
		h := newHost(t)
		h.settings("", "KUBELET="+fakeKubelet+"\nKUBELET_ARGS=\"--v=2 --a=b\"\n")
		own := filepath.Join(h.folder, "etc", ownUnit)
		written(t, h.folder+"/loaded/"+ownUnit, "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\nFragmentPath="+own+execStart("@LINE@"))
		if err := h.enable(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		h.mainProcess(ownUnit, line)
		before := h.changes()
		if err := h.enable(t.Context(), true); err != nil || (h.changes() == before) != right {
			t.Errorf("%s: %v; did %s, said %s", line, err, h.changes(), h.out.String())
		}
	}
}

// What status says where no supervisor runs.
func TestWhyNoSupervisorRuns(t *testing.T) {
	running := "/usr/bin/kubelet-supervisor run -- KUBELET"
	for name, test := range map[string]struct {
		prepare func(h *host)
		want    string
	}{
		"not enabled":           {func(h *host) { h.kubelet("active") }, "not enabled: kubelet-supervisor enable"},
		"a drop-in of somebody": {func(h *host) { h.kubelet("active"); written(h.T, h.dropInPath(), "[Service]\n") }, "not enabled"},
		"enabled":               {func(h *host) { h.enabled("active") }, "enabled, not restarted yet: systemctl restart kubelet.service"},
		"the kubelet alone": {func(h *host) {
			h.enabled("active")
			h.property("StatusText=" + aloneStatus + "no space left")
		}, "the kubelet of kubelet.service runs without it: no space left"},
		"enabled, and not started": {func(h *host) { h.enabled("inactive") }, "enabled, and kubelet.service is not started: systemctl start kubelet.service"},
		"another run folder":       {func(h *host) { h.enabled("active"); h.mainProcess(kubeletUnit, running) }, "the supervisor of kubelet.service, process 77, has another run folder"},
		"a drop-in not read": {func(h *host) {
			h.kubelet("active")
			written(h.T, h.dropInPath(), dropIn("/k", startCommand{line: fakeKubelet}, surrounding{}))
		}, "run kubelet-supervisor enable again"},
		"a node that is not told of": {func(h *host) { h.enabled("active"); written(h.T, h.folder+"/bin/systemctl", "#!/bin/sh\nexit 1\n") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			test.prepare(h)
			if why := h.whyNone(t.Context()); !strings.HasPrefix(why, test.want) && !strings.HasSuffix(why, test.want) || (why == "") != (test.want == "") {
				t.Errorf("%q, want %q", why, test.want)
			}
		})
	}
}

// enabled is a unit that was taken over.
func (h *host) enabled(active string) {
	h.Helper()
	h.kubelet(active)
	h.settings("", "")
	if err := h.enable(h.Context(), false); err != nil {
		h.Fatal(err)
	}
}
