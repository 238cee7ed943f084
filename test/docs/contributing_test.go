package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/tree"
)

var (
	firstFence = regexp.MustCompile("(?s)^# Contributing\n\n## [^\n]*\n[^#]*?\n```console\n(.*?)\n```\n([^#]*)")
	row        = regexp.MustCompile("`(--- FAIL: [^`]*)`")
)

// What CONTRIBUTING.md begins with is typed here, in a copy: the test of the changed rule fails with the row that the page names, and
// afterwards nothing is changed.
func TestTheFirstCommandsOfContributing(t *testing.T) {
	fence := firstFence.FindStringSubmatch(tree.Files(t, "CONTRIBUTING.md")["CONTRIBUTING.md"])
	if fence == nil {
		t.Fatal("CONTRIBUTING.md does not begin with commands that change a rule")
	}
	says := row.FindStringSubmatch(fence[2])
	if says == nil {
		t.Fatal("CONTRIBUTING.md does not name the row that fails")
	}
	folder := copyOfCore(t)
	mustRun(t, folder, "git init -q && git add . && git -c user.name=x -c user.email=x@example.invalid commit -qm before")

	failed := false
	for command := range strings.Lines(fence[1] + "\n") {
		command, isCommand := strings.CutPrefix(strings.TrimSpace(command), "$ ")
		if !isCommand {
			continue
		}
		output, err := run(folder, command)
		switch {
		case !strings.HasPrefix(command, "go test"):
			if err != nil {
				t.Fatalf("%s: %v\n%s", command, err, output)
			}
		case err == nil || !strings.Contains(output, says[1]):
			t.Errorf("%s: %v, want a failure with %q:\n%s", command, err, says[1], output)
		default:
			failed = true
		}
	}
	if !failed {
		t.Error("no test failed")
	}
	if left := mustRun(t, folder, "git status --porcelain"); left != "" {
		t.Errorf("this is left behind:\n%s", left)
	}
}

// copyOfCore is a folder with package core, and the packages of ours that it and its tests import.
func copyOfCore(t *testing.T) string {
	t.Helper()
	folder, root := t.TempDir(), tree.Root()
	list := `go list -deps -test -f '{{if .Module}}{{if .Module.Main}}{{.Dir}}{{end}}{{end}}' ./supervisor/core | sort -u`
	for dir := range strings.Lines(mustRun(t, root, list)) {
		path, err := filepath.Rel(root, strings.TrimSpace(dir))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(folder, path)); err == nil {
			continue // it is in a folder that is there already
		}
		if err := os.CopyFS(filepath.Join(folder, path), os.DirFS(filepath.Join(root, path))); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, root, "cp go.mod go.sum "+folder)
	return folder
}

func mustRun(t *testing.T, folder, command string) string {
	t.Helper()
	output, err := run(folder, command)
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, output)
	}
	return output
}

func run(folder, command string) (string, error) {
	shell := exec.Command("sh", "-ec", command)
	shell.Dir = folder
	output, err := shell.CombinedOutput()
	return string(output), err
}
