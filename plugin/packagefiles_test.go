package plugin

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPackageFiles(t *testing.T) {
	folder := t.TempDir()
	newBench(t).do(t, "package-files", folder)
	for file, want := range map[string][]string{
		"man/kubectl-kubelet.1":              {".TH KUBECTL\\-KUBELET 1", "\\fBkubectl kubelet [flags]\\fR", "\\-\\-context=string", "\\-\\-kubeconfig=string", ".SH COMMANDS", "\\fBassign\\fR", "\\fBkubectl\\-kubelet\\-assign\\fR(1)"},
		"man/kubectl-kubelet-assign.1":       {"\\fBkubectl kubelet assign (NODE... | \\-l SELECTOR)", "\\-\\-answer\\-timeout=duration", ".SH EXAMPLES", "\\fBkubectl\\-kubelet\\fR(1)"},
		"man/kubectl-kubelet-rollout.1":      {".SH COMMANDS", "\\fBstatus\\fR"},
		"man/kubectl-kubelet-rollout-undo.1": {"\\fBkubectl kubelet rollout undo POOL", "\\-\\-to\\-revision=int", ".SH EXAMPLES"},
		"completion/bash":                    {"kubectl-kubelet"},
		"completion/zsh":                     {"#compdef kubectl-kubelet"},
		"completion/fish":                    {"kubectl-kubelet"},
	} {
		text, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			t.Fatal(err)
		}
		contains(t, string(text), want...)
	}
}

// Every command has what a manual page is made of, and an example.
func TestEveryCommandIsDocumented(t *testing.T) {
	for _, command := range bookOf(newRoot(newBench(t).factory, "test")).Commands()[1:] {
		if command.Short == "" || command.Example == "" {
			t.Errorf("%s: short %q, example %q", command.Name(), command.Short, command.Example)
		}
	}
}
