package store

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A folder that others could read, and so lock, is closed to them, and their lock is in nobody's way.
func TestAStrangersLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	must(t, os.Mkdir(dir, 0o755))
	must(t, os.Chmod(dir, 0o755)) // whatever the umask
	stranger, err := os.Open(dir)
	must(t, err)
	t.Cleanup(func() { _ = stranger.Close() })
	must(t, syscall.Flock(int(stranger.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
	s, err := Open(dir)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, lockFile): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
	if _, err := Open(dir); !errors.Is(err, ErrHeld) {
		t.Errorf("it is open, and can be opened once more: %v", err)
	}
}

// The lock of a supervisor that was killed can be held for a moment by a child that is between fork and exec.
func TestALockThatIsAboutToBeFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "state")
		must(t, os.Mkdir(dir, 0o700))
		child, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
		must(t, err)
		must(t, syscall.Flock(int(child.Fd()), syscall.LOCK_EX))
		time.AfterFunc(lockTries*lockPause/2, func() { _ = child.Close() })
		s, err := Open(dir)
		must(t, err)
		must(t, s.Close())
	})
}

// Whatever else is in the place of the lock is an error that names it, and nothing waits for it.
func TestWhatIsNoLock(t *testing.T) {
	for name, test := range map[string]struct {
		make func(path string) error
		says string // empty: it is a lock
	}{
		"a file that others can read": {func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o644))
		}, ""},
		"a link":   {func(path string) error { return os.Symlink("/dev/null", path) }, "opening the lock of the state folder"},
		"a folder": {func(path string) error { return os.Mkdir(path, 0o700) }, "opening the lock of the state folder"},
		"a pipe":   {func(path string) error { return syscall.Mkfifo(path, 0o600) }, "instead of a file: remove it"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			must(t, os.Mkdir(dir, 0o700))
			must(t, test.make(filepath.Join(dir, lockFile)))
			s, err := Open(dir)
			if test.says != "" {
				wantError(t, err, test.says)
				return
			}
			must(t, err)
			must(t, s.Close())
			if info, err := os.Stat(filepath.Join(dir, lockFile)); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("it is %v, %v", info.Mode(), err)
			}
		})
	}
}
