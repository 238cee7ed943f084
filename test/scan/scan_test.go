// Package scan holds make scan, which asks for known vulnerabilities.
package scan

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/tree"
)

// known is a vulnerability that nobody has found.
const known = `{"schema_version":"1.3.1","id":"GO-2000-0001","modified":"2000-01-01T00:00:00Z","published":"2000-01-01T00:00:00Z","summary":"made up","details":"made up",
"database_specific":{"url":"https://example.org/GO-2000-0001"},
"affected":[{"package":{"name":"stdlib","ecosystem":"Go"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}],"ecosystem_specific":{"imports":[{"path":"net/url","symbols":["Parse"]}]}}]}`

// It says what is known, and where nothing can be known it says so and does not pass.
func TestScan(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds govulncheck")
	}
	module := t.TempDir()
	write(t, module, "go.mod", "module example.org/m\n\ngo 1.26.0\n")
	write(t, module, "m.go", "package main\n\nimport \"net/url\"\n\nfunc main() { _, _ = url.Parse(\"x\") }\n")
	none, one := t.TempDir(), t.TempDir()
	for _, folder := range []string{none, one} {
		write(t, folder, "index/db.json", `{"modified":"2000-01-01T00:00:00Z"}`)
		write(t, folder, "index/modules.json", "[]")
	}
	write(t, one, "index/modules.json", `[{"path":"stdlib","vulns":[{"id":"GO-2000-0001","modified":"2000-01-01T00:00:00Z"}]}]`)
	write(t, one, "ID/GO-2000-0001.json", known)
	for database, want := range map[string]struct {
		code int
		says string
	}{
		"file://" + none:       {0, "No vulnerabilities found"},
		"file://" + one:        {1, "GO-2000-0001"},
		"https://127.0.0.1:1":  {3, "NOT SCANNED: the database https://127.0.0.1:1 cannot be had"},
		"file:///no/such/file": {3, "NOT SCANNED: the database file:///no/such/file cannot be had"},
	} {
		command := exec.CommandContext(t.Context(), "./scan.sh", module)
		command.Env = append(os.Environ(), "GOVULNDB="+database)
		output, err := command.CombinedOutput()
		var exit *exec.ExitError
		code := 0
		if errors.As(err, &exit) {
			code = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if code != want.code || !strings.Contains(string(output), want.says) {
			t.Errorf("%s: exit code %d, not %d\n%s", database, code, want.code, output)
		}
	}
}

func write(t *testing.T, folder, name, text string) {
	t.Helper()
	file := filepath.Join(folder, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// It is a step of a release, and no other target of make waits for it: a gate has to run without the network.
func TestTheScanIsAStepOfARelease(t *testing.T) {
	files := tree.Files(t, "Makefile", "CONTRIBUTING.md")
	_, release, _ := strings.Cut(files["CONTRIBUTING.md"], "\n## How to release\n")
	if release, _, _ = strings.Cut(release, "\n## "); !strings.Contains(release, "Run `make scan`") {
		t.Error("the steps of a release do not have make scan")
	}
	for line := range strings.Lines(files["Makefile"]) {
		if line = strings.TrimSpace(line); line != ".PHONY: scan" && slices.Contains(strings.Fields(line), "scan") {
			t.Errorf("another target needs it: %s", line)
		}
	}
}
