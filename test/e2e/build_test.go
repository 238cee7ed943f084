//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// supervisorBinary is the static binary under test.
func supervisorBinary(t *testing.T) string {
	t.Helper()
	file, err := buildOnce()
	if err != nil {
		t.Fatalf("building the supervisor: %v", err)
	}
	return file
}

var buildOnce = sync.OnceValues(func() (string, error) {
	if given := os.Getenv("KUBELET_SUPERVISOR_TEST_BINARY"); given != "" {
		return given, nil
	}
	return filepath.Join(scratch, "kubelet-supervisor"), run("packaging/compile.sh", "e2e", scratch, "kubelet-supervisor")
})

// crashBinary is the same program, which kills itself where CRASH_AT says.
var crashBinary = sync.OnceValues(func() (string, error) { return build("kubelet-supervisor-crashpoints", "-tags", "crashpoints") })

func build(name string, flags ...string) (string, error) {
	file := filepath.Join(scratch, name)
	return file, run("go", append(append([]string{"build"}, flags...), "-o", file, "./cmd/kubelet-supervisor")...)
}

// run runs a command of the project's own folder.
func run(name string, arguments ...string) error {
	command := exec.Command(name, arguments...)
	command.Dir = "../.."
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	return command.Run()
}
