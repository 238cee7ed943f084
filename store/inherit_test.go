//go:build linux

package store

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// handedOver is the lock as another program gets it: the same lock behind another file.
func handedOver(t *testing.T, s *Store) *os.File {
	t.Helper()
	fd, err := syscall.Dup(int(s.Lock().Fd()))
	must(t, err)
	return os.NewFile(uintptr(fd), "lock")
}

func TestInheritLeavesNoGap(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	before, err := Open(dir)
	must(t, err)
	lock := handedOver(t, before)
	must(t, before.lock.Close()) // as exec does; Close would unlock for both
	if _, err := Open(dir); !errors.Is(err, ErrHeld) {
		t.Errorf("in between, another could have it: %v", err)
	}
	after, err := Inherit(dir, lock)
	must(t, err)
	if _, err := Open(dir); !errors.Is(err, ErrHeld) {
		t.Errorf("after it, another could have it: %v", err)
	}
	must(t, after.SaveSource(Assigned, source("1")))
	must(t, after.Close())
	must(t, open(t, dir).Close())
}

// Where the lock file cannot be made the folder is locked, and handed over as well.
func TestInheritOfTheFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	must(t, os.Mkdir(dir, 0o700))
	folder, err := os.Open(dir)
	must(t, err)
	must(t, take(folder, dir))
	after, err := Inherit(dir, folder)
	must(t, err)
	must(t, after.Close())
}

func TestInheritTakesNoOtherLock(t *testing.T) {
	dir, other := filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "other")
	must(t, os.Mkdir(dir, 0o700))
	_, err := Inherit(dir, handedOver(t, open(t, other)))
	wantError(t, err, "not that of the state folder")
	closed := os.NewFile(1000, "lock")
	_, err = Inherit(dir, closed)
	wantError(t, err, "examining the inherited lock")
	must(t, os.Symlink(dir, dir+"-link"))
	_, err = Inherit(dir+"-link/", handedOver(t, open(t, other+"1")))
	wantError(t, err, "not a link")
	must(t, os.Chmod(dir, 0o770))
	_, err = Inherit(dir, handedOver(t, open(t, other+"2")))
	wantError(t, err, "others can write to the state folder")
	must(t, os.Chmod(dir, 0o700))
	_, err = Inherit(filepath.Dir(other), handedOver(t, open(t, other+"3"))) // where there is no lock file
	wantError(t, err, "not that of the state folder")
	must(t, open(t, dir).Close())
}
