//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var builds sync.Map // package → func() (string, error), run once

// supervisorBinary is the static binary under test.
func supervisorBinary(t *testing.T) string {
	t.Helper()
	if given := os.Getenv("KUBELET_SUPERVISOR_TEST_BINARY"); given != "" {
		return given
	}
	return build(t, "cmd/kubelet-supervisor")
}

// fakeKubelet is the fake of test/fakekubelet, for faults that the real one does not produce on demand.
func fakeKubelet(t *testing.T) string {
	t.Helper()
	return build(t, "test/fakekubelet")
}

func build(t *testing.T, folder string) string {
	t.Helper()
	once, _ := builds.LoadOrStore(folder, sync.OnceValues(func() (string, error) {
		file := filepath.Join(scratch, filepath.Base(folder))
		command := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=e2e", "-o", file, "./"+folder)
		command.Dir = "../.."
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		command.Stdout, command.Stderr = os.Stderr, os.Stderr
		return file, command.Run()
	}))
	file, err := once.(func() (string, error))()
	if err != nil {
		t.Fatalf("building %s: %v", folder, err)
	}
	return file
}
