//go:build e2e

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// A short soak whose sequence is always the same, and has something of most kinds; `make soak` runs longer ones with others.
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
	if err := soak(t.Context(), options{Rounds: 5, Seed: 8139, Binary: binary, Log: t.Output()}); err != nil {
		t.Fatal(err)
	}
}

// While the disk hangs a write waits; when it goes on, so does the write.
func TestTheDiskHangs(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "disk")
	d, err := newDisk(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(d.thaw(), unix.Unmount(folder, 0)); err != nil {
			t.Error(err)
		}
	})
	if err := d.hang(); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(filepath.Join(folder, "file"), nil, 0o600) }()
	select {
	case err := <-written:
		t.Fatalf("a write to a disk that hangs ended: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	if err := d.thaw(); err != nil {
		t.Fatal(err)
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
}
