//go:build linux

package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func digestOf(document string) string { return digestPrefix + sumOf([]byte(document)) }

// What layers lie over is kept as long as it is asked for, and by nobody else's name.
func TestBase(t *testing.T) {
	s := open(t, t.TempDir())
	one, none := *source("1"), "the defaults"
	must(t, s.SaveCheckpoint(one, map[string]string{"kubelet": "x"}))
	must(t, s.SaveBase(one, digestOf("own"), []byte("own")))
	must(t, s.SaveBase(one, digestOf("own"), []byte("own")))
	must(t, s.SaveBase(one, noBase, []byte(none)))
	must(t, s.SaveBase(one, digestOf("older"), []byte("older")))
	for digest, want := range map[string]string{digestOf("own"): "own", noBase: none} {
		if got, err := s.LoadBase(one, digest); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", digest, got, err)
		}
	}
	must(t, s.Collect([]corev1.ConfigMapNodeConfigSource{one}, digestOf("own")))
	if got, err := s.LoadBase(one, digestOf("own")); err != nil || string(got) != "own" {
		t.Errorf("what was to be kept: %q, %v", got, err)
	}
	_, err := s.LoadBase(one, digestOf("older"))
	wantError(t, err, "there is none")
	payload, err := s.LoadCheckpoint(one)
	if err != nil || payload["kubelet"] != "x" {
		t.Errorf("the checkpoint: %q, %v", payload, err)
	}
	must(t, s.Collect(nil, digestOf("own")))
	_, err = s.LoadBase(one, digestOf("own"))
	wantError(t, err, "there is none")
}

func TestDefectBase(t *testing.T) {
	s := open(t, t.TempDir())
	one := *source("1")
	must(t, s.SaveBase(one, digestOf("own"), []byte("own")))
	path := filepath.Join(s.dir, checkpointsFolder, string(one.UID), "1"+baseInfix+strings.TrimPrefix(digestOf("own"), digestPrefix))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for i, o := range append([]obstacle{contents("another", "another", "does not match its name")}, obstacles...) {
		s.now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, i, 6, time.UTC) }
		must(t, os.RemoveAll(path))
		o.put(t, path)
		_, err := s.LoadBase(one, digestOf("own"))
		wantError(t, err, o.says)
		wantError(t, err, "; set aside as ")
		_, err = s.LoadBase(one, digestOf("own"))
		wantError(t, err, "there is none")
	}
	must(t, s.SaveBase(one, digestOf("own"), []byte("own")))
	for _, digest := range []string{"", "own", "sha256:../../x", "sha256:" + strings.Repeat("a", 65)} {
		wantError(t, s.SaveBase(one, digest, nil), "is no digest")
		_, err := s.LoadBase(one, digest)
		wantError(t, err, "is no digest")
	}
	wantError(t, s.SaveBase(*source(""), noBase, nil), "empty ResourceVersion is ambiguous")
	wantError(t, s.SaveCheckpoint(*source("1" + baseInfix + "x"), nil), "the store gives such names")
}

// A name that a file system does not take, with that of the file it is written to first, is refused before anything is written.
func TestLongNamesOfBases(t *testing.T) {
	s := open(t, t.TempDir())
	must(t, s.SaveBase(*source(strings.Repeat("1", 181)), digestOf("own"), []byte("own")))
	wantError(t, s.SaveBase(*source(strings.Repeat("1", 182)), digestOf("own"), []byte("own")), "the name of its copy would be too long")
}

// Where the folder of the copy is none, it is for the next Save to set it aside, along with the checkpoints.
func TestBaseInNoFolder(t *testing.T) {
	s := open(t, t.TempDir())
	must(t, s.SaveBase(*source("1"), digestOf("own"), []byte("own")))
	folder := filepath.Join(s.dir, checkpointsFolder, "uid")
	must(t, os.RemoveAll(folder))
	must(t, os.WriteFile(folder, nil, 0o600))
	_, err := s.LoadBase(*source("1"), digestOf("own"))
	wantError(t, err, "uid is a file instead of a folder")
	wantList(t, s, checkpointsFolder, "uid")
}

// A copy that could not be kept is none.
func TestBaseThatCannotBeKept(t *testing.T) {
	disk := populated(t)
	for step, failed := 0, true; failed; step++ {
		disk.left = step
		err := disk.store().SaveBase(*source("1"), digestOf("own"), []byte("own"))
		if failed = disk.left < 0; failed == (err == nil) {
			t.Fatalf("step %d: fails %v, but the error is %v", step, failed, err)
		}
		disk.left = -1
		if got, err := disk.store().LoadBase(*source("1"), digestOf("own")); err == nil && string(got) != "own" {
			t.Errorf("step %d: %q", step, got)
		}
	}
}

// What is kept can be read again: a file has at most 1 MiB.
func TestLargeBases(t *testing.T) {
	s := open(t, t.TempDir())
	largest := strings.Repeat("x", 1<<20)
	must(t, s.SaveBase(*source("1"), digestOf(largest), []byte(largest)))
	if got, err := s.LoadBase(*source("1"), digestOf(largest)); err != nil || string(got) != largest {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	wantError(t, s.SaveBase(*source("1"), digestOf(largest+"x"), []byte(largest+"x")), "would have 1048577 bytes")
}
