//go:build linux

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// properties adds to what systemd says of a unit before it was taken over.
func (h *host) properties(lines string) {
	h.Helper()
	for _, folder := range []string{"units", "loaded"} {
		path := filepath.Join(h.folder, folder, kubeletUnit)
		written(h.T, path, contentOf(h.T, path)+lines)
	}
}

// What a unit may not do, the supervisor in it may not either: enable asks, with --dry-run as without.
func TestTheSandboxOfAUnit(t *testing.T) {
	for name, test := range map[string]struct{ properties, flags, refused string }{
		"none":                                  {"User=\nProtectSystem=no\nProtectHome=no\n", "", ""},
		"root, by name":                         {"User=root\n", "", ""},
		"another user":                          {"User=kube\n", "", "kubelet.service has User=kube, and the supervisor has to be root"},
		"a user for the time being":             {"DynamicUser=yes\n", "", "has DynamicUser=yes"},
		"another root":                          {"RootDirectory=/srv/node\n", "", "has RootDirectory=/srv/node"},
		"nothing may be written":                {"ProtectSystem=strict\n", "", "has ProtectSystem=strict, so that the supervisor could not write DIR/state (--state-dir); add ReadWritePaths=DIR/state"},
		"but the folder":                        {"ProtectSystem=strict\nReadWritePaths=/var/lib/kubelet -DIR/state\n", "", ""},
		"but the folder above it":               {"ProtectSystem=strict\nReadWritePaths=DIR\n", "", ""},
		"but a folder of a name that begins so": {"ProtectSystem=strict\nReadWritePaths=DIR/st\n", "", "has ProtectSystem=strict"},
		"and again not the folder":              {"ReadWritePaths=DIR\nReadOnlyPaths=DIR/state\n", "", "has ReadOnlyPaths=DIR/state"},
		"systemd makes the folder":              {"ProtectSystem=strict\nStateDirectory=kubelet kubelet-supervisor\n", "--state-dir=/var/lib/kubelet-supervisor", ""},
		"another run folder":                    {"ProtectSystem=strict\nReadWritePaths=DIR/state\n", "--run-dir=/run/other", "could not write /run/other (--run-dir)"},
		"the system may not be written":         {"ProtectSystem=full\n", "", ""},
		"and the state is there":                {"ProtectSystem=full\n", "--state-dir=/etc/kubelet-supervisor/state", "has ProtectSystem=full"},
		"a folder that is empty at each start":  {"TemporaryFileSystem=DIR:ro\n", "", "has TemporaryFileSystem=DIR:ro"},
		"a program that cannot be seen":         {"InaccessiblePaths=-/usr/bin/kubelet-supervisor\n", "", "systemd could not start /usr/bin/kubelet-supervisor there"},
		"a home that cannot be seen":            {"ProtectHome=yes\n", "--state-dir=/root/state", "has ProtectHome=yes"},
		"a home that can be read":               {"ProtectHome=read-only\n", "--state-dir=/home/state", "has ProtectHome=read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, dry := range []bool{true, false} {
				h := newHost(t)
				h.kubelet("active")
				h.dryRun = dry
				in := strings.NewReplacer("DIR", h.folder)
				h.properties(in.Replace(test.properties))
				h.settings("--run-dir="+defaultRunDir+" "+test.flags, "")
				err := h.enable(t.Context(), false)
				if test.refused == "" && err != nil || test.refused != "" && (err == nil || !strings.Contains(err.Error(), in.Replace(test.refused)) || h.changes() != "" || h.has(h.folder+"/etc")) {
					t.Errorf("dry run %t: %v; did %s", dry, err, h.changes())
				}
			}
		})
	}
}

// Where systemd makes the run folder, nobody else can list it. The folders of the unit itself keep the mode that the unit gives them.
func TestTheModeOfTheRunFolder(t *testing.T) {
	const strict = "[Service]\nProtectSystem=strict\n"
	for name, test := range map[string]struct {
		unit       string
		made, mode bool
	}{
		"the unit may write below /run":   {"", false, false},
		"it may not":                      {strict, true, true},
		"it has a run folder of its own":  {strict + "RuntimeDirectory=kubelet\n", true, false},
		"it says which mode these have":   {strict + "RuntimeDirectoryMode=0750\n", true, false},
		"folders of other kinds are none": {strict + "StateDirectory=kubelet\n", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.kubelet("active")
			if test.unit != "" {
				h.properties("ProtectSystem=strict\nReadWritePaths=" + h.folder + "\n")
				path := filepath.Join(h.folder, "lib/kubelet.service")
				written(t, path, contentOf(t, path)+test.unit)
			}
			h.settings("--run-dir="+defaultRunDir, "")
			if err := h.enable(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			text := contentOf(t, h.dropInPath())
			if made := strings.Contains(text, "\nRuntimeDirectory=kubelet-supervisor\n"); made != test.made {
				t.Errorf("systemd makes it: %t", made)
			}
			if mode := strings.Contains(text, "\nRuntimeDirectoryMode=0711\n"); mode != test.mode {
				t.Errorf("with mode 0711: %t", mode)
			}
		})
	}
}

// A folder of units that cannot be written, as on NixOS, is found before the kubelet is restarted, and by a dry run.
func TestAFolderOfUnitsThatCannotBeWritten(t *testing.T) {
	for _, dry := range []bool{true, false} {
		h := newHost(t)
		h.kubelet("active")
		h.dryRun, h.installation.folder = dry, "/proc/units"
		if err := h.enable(t.Context(), true); err == nil || !strings.Contains(err.Error(), "/proc/units/kubelet.service.d/"+dropInName+" cannot be written") || h.changes() != "" {
			t.Errorf("dry run %t: %v; did %s", dry, err, h.changes())
		}
	}
}

// A kubelet without --kubeconfig joins no cluster: enable says so, and goes on.
func TestAKubeletWithoutAKubeconfig(t *testing.T) {
	const kubeadms = `Environment=A=b "KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/b --kubeconfig=/k"` + "\n"
	for name, test := range map[string]struct {
		properties, file string
		line             string // of the main process
		flags            string
		warned           bool
	}{
		"none":                           {"", "", "", "", true},
		"in the unit's environment":      {kubeadms, "", "", "", false},
		"there, from an older systemd":   {"Environment=A=b KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/b --kubeconfig=/k\n", "", "", "", false},
		"in a file":                      {"EnvironmentFiles=/absent (ignore_errors=yes)\nEnvironmentFiles=DIR/kubelet.env (ignore_errors=no)\n", `KUBELET_KUBECONFIG_ARGS="--v=2 --kubeconfig=/k"`, "", "", false},
		"only that for the first start":  {"", `KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/b`, "", "", true},
		"of the kubelet that runs":       {"", "", "KUBELET --kubeconfig /k", "", false},
		"not even of that":               {kubeadms, "", "KUBELET --v=2", "", true},
		"of one that runs under another": {"", "", "/usr/bin/kubelet-supervisor run --x -- KUBELET --kubeconfig=/k", "", false},
		"the supervisor has one":         {"", "", "", "--kubeconfig=/k --node-name=n1", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.kubelet("active")
			h.dryRun = true
			written(t, h.folder+"/kubelet.env", test.file+"\n")
			h.properties(strings.ReplaceAll(test.properties, "DIR", h.folder))
			h.settings(test.flags, "")
			if test.line != "" {
				h.mainProcess(kubeletUnit, test.line)
			}
			err := h.enable(t.Context(), false)
			if warned := strings.Contains(h.out.String(), "the kubelet has no --kubeconfig"); err != nil || warned != test.warned {
				t.Errorf("%v; said %s", err, h.out.String())
			}
		})
	}
	t.Run("a unit of our own", func(t *testing.T) {
		for arguments, warned := range map[string]bool{"--v=2": true, "--v=2 --kubeconfig=/k": false} {
			h := newHost(t)
			h.dryRun = true
			h.settings("", "KUBELET="+fakeKubelet+"\nKUBELET_ARGS="+arguments+"\n")
			if err := h.enable(t.Context(), false); err != nil || strings.Contains(h.out.String(), "the kubelet has no --kubeconfig") != warned {
				t.Errorf("%s: %v; said %s", arguments, err, h.out.String())
			}
		}
	})
}

func contentOf(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
