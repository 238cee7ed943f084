// Package again holds the script that runs a failed test once more to its word: only a test that is known by name gets a second try, and that
// it needed one is said.
package again

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A tests program is a script that prints what go test would, and keeps count of how often it ran. Its arguments are printed, too.
const program = `#!/bin/bash
echo "arguments: $*"
runs=$(cat runs 2>/dev/null || echo 0)
echo $((runs + 1)) >runs
[ "$runs" = 0 ] || { [ -e fails-again ] && { printf -- '--- FAIL: TestSlow (1.00s)\nFAIL\n'; exit 1; }; echo PASS; exit 0; }
cat output
exit 1
`

func TestAgain(t *testing.T) {
	const failed = "--- PASS: TestGood (0.00s)\n--- FAIL: TestSlow (1.00s)\n    slow_test.go:7: not yet\n"
	for name, row := range map[string]struct {
		output string
		again  bool   // the second run fails, too
		env    string // of the script
		runs   string // how many
		code   int
		says   string
	}{
		"a test that passes the second time":  {output: failed + "FAIL\n", runs: "2", says: "UNSTABLE: TestSlow failed, and passed when it ran once more"},
		"a test of one package among several": {output: failed + "FAIL\nFAIL\texample/a\t1.0s\nok  \texample/b\t1.0s\nFAIL\n", runs: "2", says: "-test.run=^(TestSlow)$"},
		"two tests":                           {output: failed + "--- FAIL: TestSlower (1.00s)\nFAIL\n", runs: "2", says: "-test.run=^(TestSlow|TestSlower)$"},
		"a test that fails twice":             {output: failed + "FAIL\n", again: true, runs: "2", code: 1, says: "once more, by itself: TestSlow"},
		"four tests":                          {output: failed + "--- FAIL: TestA (0s)\n--- FAIL: TestB (0s)\n--- FAIL: TestC (0s)\nFAIL\n", runs: "1", code: 1},
		"a panic":                             {output: failed + "panic: no\n", runs: "1", code: 1},
		"a data race":                         {output: failed + "WARNING: DATA RACE\n", runs: "1", code: 1},
		"a leak":                              {output: failed + "goleak: Errors on successful test run\n", runs: "1", code: 1},
		"a package that was not built":        {output: failed + "FAIL\texample/b [build failed]\n", runs: "1", code: 1},
		"a second package without a name":     {output: failed + "FAIL\texample/a\t1.0s\nFAIL\texample/b\t1.0s\nFAIL\n", runs: "1", code: 1},
		"nobody knows what":                   {output: "FAIL\n", runs: "1", code: 1},
		"AGAIN=0":                             {output: failed + "FAIL\n", env: "AGAIN=0", runs: "1", code: 1},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, filepath.Join(folder, "program"), program)
			write(t, filepath.Join(folder, "output"), row.output)
			if row.again {
				write(t, filepath.Join(folder, "fails-again"), "")
			}
			script, err := filepath.Abs("again.sh")
			if err != nil {
				t.Fatal(err)
			}
			command := exec.CommandContext(t.Context(), script, "./program", "-test.v")
			command.Dir, command.Env = folder, append(os.Environ(), "AGAIN=1", row.env)
			output, _ := command.CombinedOutput() // the exit code is looked at below
			runs, err := os.ReadFile(filepath.Join(folder, "runs"))
			if err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			if got := strings.TrimSpace(string(runs)); got != row.runs || command.ProcessState.ExitCode() != row.code || !strings.Contains(string(output), row.says) {
				t.Errorf("ran %s times, exit code %d; want %s, %d, and %q in:\n%s", got, command.ProcessState.ExitCode(), row.runs, row.code, row.says, output)
			}
			if unstable := strings.Contains(string(output), "UNSTABLE"); unstable != (row.code == 0) {
				t.Errorf("said UNSTABLE: %t, in:\n%s", unstable, output)
			}
		})
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil { //nolint:gosec // scripts are run
		t.Fatal(err)
	}
}
