//go:build linux

package store

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
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

// A folder that others can even only enter is closed to them.
func TestAFolderThatOthersCanEnter(t *testing.T) {
	for _, mode := range []os.FileMode{0o755, 0o750, 0o740, 0o710, 0o701, 0o700} {
		dir := filepath.Join(t.TempDir(), "state")
		must(t, errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, mode)))
		must(t, open(t, dir).Close())
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%v has become %v, %v", mode, info.Mode(), err)
		}
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
		"a file that others can run": {func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o601))
		}, ""},
		"somebody else's": {func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, 65534, -1))
		}, "it belongs to user 65534, not to 0: remove it"},
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

// A folder in which no file can be made, as on a full disk, is locked itself: what is stored can be read all the same.
func TestALockFileThatCannotBeMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.Chmod(dir, 0o500))
	defer func() { must(t, os.Chmod(dir, 0o700)) }()
	var lock *os.File
	must(t, withoutRoot(t, dir, func() (err error) {
		lock, err = openLock(dir)
		return err
	}))
	if info, err := lock.Stat(); err != nil || !info.IsDir() {
		t.Errorf("the lock is %v, %v", info, err)
	}
	must(t, lock.Close())
}

// withoutRoot does something in a folder without what root may: on a thread of its own, as a user whose folder it is.
func withoutRoot(t *testing.T, dir string, do func() error) error {
	t.Helper()
	if os.Geteuid() != 0 {
		return do()
	}
	const nobody = 65534
	for _, parent := range []string{filepath.Dir(filepath.Dir(dir)), filepath.Dir(dir)} {
		must(t, os.Chmod(parent, 0o711))
	}
	must(t, os.Chown(dir, nobody, nobody))
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Setfsuid(nobody); err != nil {
			done <- err
			return
		}
		done <- do()
	}()
	return <-done
}

// A file that cannot be locked at all is no lock that somebody has.
func TestALockThatIsClosed(t *testing.T) {
	lock, err := os.Create(filepath.Join(t.TempDir(), lockFile))
	must(t, err)
	must(t, lock.Close())
	if err := take(lock, "/state"); !errors.Is(err, syscall.EBADF) || errors.Is(err, ErrHeld) {
		t.Error(err)
	}
}

// Where no lock can be made, or none be tightened, because the disk is read-only, there is one all the same.
func TestLocksOfAReadOnlyDisk(t *testing.T) {
	for name, mode := range map[string]os.FileMode{"no file": 0, "a file": 0o600, "a file that others can read": 0o644} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.Chmod(dir, 0o700|mode&0o055)) // nor can the folder be closed to others
			if mode != 0 {
				must(t, os.WriteFile(filepath.Join(dir, lockFile), nil, mode))
			}
			readOnly(t, dir, func() {
				s, err := Open(dir)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := Open(dir); !errors.Is(err, ErrHeld) {
					t.Errorf("it is open, and can be opened once more: %v", err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				_, err = Open(filepath.Join(dir, "x", "state"))
				if wantError(t, err, "creating the state folder: "); !errors.Is(err, syscall.EROFS) {
					t.Errorf("a folder was made: %v", err)
				}
			})
		})
	}
}

// readOnly does something in a thread to which the folder is on a read-only file system.
func readOnly(t *testing.T, dir string, do func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever, so that the thread ends with the goroutine
		err := errors.Join(syscall.Unshare(syscall.CLONE_NEWNS), syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
			syscall.Mount(dir, dir, "", syscall.MS_BIND, ""), syscall.Mount("", dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
		if err == nil {
			do()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Skipf("no mount namespace to be had: %v", err)
	}
}
