//go:build linux

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPackageFiles(t *testing.T) {
	folder := t.TempDir()
	if code, _, stderr := does("package-files", folder); code != exitOK {
		t.Fatalf("code %d: %s", code, stderr)
	}
	for file, want := range map[string][]string{
		"man/kubelet-supervisor.8":        {".TH KUBELET\\-SUPERVISOR 8", ".SH COMMANDS", "\\fBkubelet\\-supervisor\\-enable\\fR(8)"},
		"man/kubelet-supervisor-run.8":    {"\\fB\\-\\-trial\\-period=duration\\fR\nhealthy time", "(default: kube\\-system,kubelet\\-config)", ".SH EXAMPLES"},
		"man/kubelet-supervisor-status.8": {"\\fB\\-o, \\-\\-output=string\\fR"},
		"completion/bash":                 {"kubelet-supervisor"},
		"completion/zsh":                  {"#compdef kubelet-supervisor"},
		"completion/fish":                 {"kubelet-supervisor"},
	} {
		text, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			t.Error(err)
		}
		for _, words := range want {
			if !strings.Contains(string(text), words) {
				t.Errorf("%s does not say %q:\n%s", file, words, text)
			}
		}
	}
	if unit := ownUnitFile("/x"); strings.Contains(unit, "@") || !strings.Contains(unit, "\nExecStart=/x run $KUBELET_SUPERVISOR_ARGS -- ${KUBELET} $KUBELET_ARGS\n") {
		t.Errorf("the unit that enable writes is\n%s", unit)
	}
	if _, err := os.Stat(filepath.Join(folder, ownUnit)); err == nil {
		t.Error("packages would ship the unit, and systemctl enable --now, typed by reflex, would take the kubelet away")
	}
	if pages, err := filepath.Glob(folder + "/man/*"); err != nil || len(pages) != len(bookOf(newRoot()).Commands())+1 {
		t.Errorf("%v, %v: want a page for the program, each command and completion", pages, err)
	}
}
