//go:build e2e

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// A short soak whose sequence is always the same; `make soak` runs longer ones with others.
func TestShortSoak(t *testing.T) {
	binary := os.Getenv("KUBELET_SUPERVISOR_TEST_BINARY")
	if binary == "" {
		binary = filepath.Join(t.TempDir(), "kubelet-supervisor")
		build := exec.Command("go", "build", "-o", binary, "./cmd/kubelet-supervisor")
		build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building the supervisor: %v: %s", err, output)
		}
	}
	if err := soak(t.Context(), options{Time: 30 * time.Second, Seed: 1, Binary: binary, Log: t.Output()}); err != nil {
		t.Fatal(err)
	}
}
