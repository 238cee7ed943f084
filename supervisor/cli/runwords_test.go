//go:build linux

package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// systemd looks for a program without a slash in its own folders, whatever PATH the unit has, and so do we.
func TestAKubeletWithoutAPath(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"sh", "kubelet-of-path"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{folder, folder + ":/usr/bin:/bin"} {
		t.Setenv("PATH", path)
		if got, err := findKubelet("sh"); err != nil || filepath.Base(got) != "sh" || filepath.Dir(got) == folder {
			t.Errorf("with PATH=%s: %s, %v", path, got, err)
		}
		if got, err := findKubelet("kubelet-of-path"); err != nil || got != filepath.Join(folder, "kubelet-of-path") {
			t.Errorf("with PATH=%s: %s, %v", path, got, err)
		}
	}
}
