//go:build linux

package store

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A process that can open no more files reads nothing, sets nothing aside, and does not say that something was made durable.
func TestNoMoreOpenFiles(t *testing.T) {
	s := open(t, t.TempDir())
	one := *source("1")
	must(t, s.SaveSource(Assigned, &one))
	must(t, s.SaveDocument("trial", "Trial", trial{Of: "new"}))
	must(t, s.SaveCheckpoint(one, map[string]string{"kubelet": "x"}))
	must(t, s.SaveCheckpoint(*sourceOf("gone", "1"), map[string]string{"kubelet": "x"}))
	must(t, s.SaveBase(one, digestOf("own"), []byte("own")))
	disk := s.disk.(*osDisk)
	for what, do := range map[string]func() error{
		"loading a pointer":    func() error { _, err := s.LoadSource(Assigned); return err },
		"loading a document":   func() error { return s.LoadDocument("trial", "Trial", &trial{}) },
		"loading a checkpoint": func() error { _, err := s.LoadCheckpoint(one); return err },
		"loading a base":       func() error { _, err := s.LoadBase(one, digestOf("own")); return err },
		"saving a pointer":     func() error { return s.SaveSource(Assigned, source("2")) },
		"saving a checkpoint":  func() error { return s.SaveCheckpoint(*source("2"), nil) },
		"collecting":           func() error { return s.Collect([]corev1.ConfigMapNodeConfigSource{one}) },
		"a new file":           func() error { return disk.create(filepath.Join(s.dir, "file"), nil) },
		"a durable folder":     func() error { return disk.sync(s.dir) },
	} {
		err := withoutOpenFiles(t, do)
		if !errors.Is(err, syscall.EMFILE) || strings.Contains(err.Error(), "set aside") {
			t.Errorf("%s: %v", what, err)
		}
	}
	wantList(t, s, "", "checkpoints lock meta")
	wantList(t, s, "meta", "assigned trial")
	wantList(t, s, "checkpoints", "gone uid")
	wantList(t, s, "checkpoints/gone", "1 1.sha256")
	payload, err := s.LoadCheckpoint(one)
	must(t, err)
	wantPayload(t, payload, map[string]string{"kubelet": "x"})
}

// withoutOpenFiles does something while this process can open no file.
func withoutOpenFiles(t *testing.T, do func() error) error {
	t.Helper()
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 0, Max: limit.Max}))
	err := do()
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	return err
}

// A supervisor that runs for years leaves no file open.
func TestNoFileIsLeftOpen(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which would close them
	s := open(t, t.TempDir())
	opened := func() int { return len(strings.Fields(list(t, "/proc/self/fd"))) }
	before := opened()
	for range 5 {
		must(t, s.SaveSource(Assigned, source("1")))
		must(t, s.SaveCheckpoint(*source("1"), map[string]string{"kubelet": "x"}))
		_, err := s.LoadCheckpoint(*source("1"))
		must(t, err)
		must(t, s.Collect(nil))
		other, err := Open(filepath.Join(s.dir, "other"))
		must(t, err)
		must(t, other.Close())
		wantError(t, other.Close(), "closing the state folder: ")
	}
	if after := opened(); after > before {
		t.Errorf("%d files are open, before it were %d", after, before)
	}
}

// A file that could not be written whole is none, and the store says so: the disk is full.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv("STORE_TEST_MOUNT"); dir != "" {
		must(t, syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
		must(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,mode=0700"))
		s := open(t, dir)
		must(t, s.SaveSource(Assigned, source("1")))
		large := map[string]string{"kubelet": strings.Repeat("x", 128<<10)}
		if err := s.SaveCheckpoint(*source("1"), large); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("saving more than there is room for: %v", err)
		}
		if err := s.disk.create(filepath.Join(dir, "file"), bytes.Repeat([]byte("x"), 128<<10)); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("writing more than there is room for: %v", err)
		}
		_, err := s.LoadCheckpoint(*source("1"))
		wantError(t, err, "no checkpoint for source")
		wantList(t, s, "checkpoints/uid", "")
		return
	}
	inMountNamespace(t, t.TempDir())
}

// deaf is a disk that lists no folder below another.
type deaf struct {
	disk
	folder string
}

func (d deaf) list(folder string) ([]fs.DirEntry, error) {
	if strings.HasPrefix(folder, d.folder) {
		return nil, syscall.EMFILE
	}
	return d.disk.list(folder)
}

// What cannot be listed now is neither taken for whole, nor set aside, nor removed.
func TestFoldersThatCannotBeListedNow(t *testing.T) {
	memory := populated(t)
	s := memory.store()
	s.disk = deaf{memory, "/state/checkpoints/uid"}
	before := memory.String()
	for what, err := range map[string]error{
		"loading":                  func() error { _, err := s.LoadCheckpoint(*source("1")); return err }(),
		"collecting, keeping none": s.Collect(nil),
		"collecting, keeping some": s.Collect([]corev1.ConfigMapNodeConfigSource{*source("1")}),
	} {
		if !errors.Is(err, syscall.EMFILE) || strings.Contains(err.Error(), "set aside") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if after := memory.String(); after != strings.Replace(before, "/state/meta/tmp_assigned false \"cut\"\n", "", 1) {
		t.Errorf("before\n%safter\n%s", before, after)
	}
}
