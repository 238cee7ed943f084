//go:build linux

package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockFile is in the state folder. Only its user can open it, and so lock it: a folder can be locked by every user who
// can read it (rule 27).
const lockFile = "lock"

// openLock opens the lock file and makes it where there is none. Where it cannot be made, as on a disk that is full or
// read-only, the folder takes its place: what is stored can be read anyway.
//
// The os package opens close-on-exec: the kubelet must not keep the lock when the supervisor is gone.
func openLock(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockFile)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if _, missing := os.Lstat(path); errors.Is(missing, os.ErrNotExist) {
		return os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	}
	if errors.Is(err, syscall.EROFS) {
		file, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the state folder: %w", err)
	}
	info, err := file.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("it is a %s instead of a file: remove it", kindOf(info))
	case foreign(info) != "":
		err = fmt.Errorf("it %s: remove it", foreign(info))
	case info.Mode().Perm()&0o077 != 0:
		err = file.Chmod(0o600)
	}
	if err != nil && !errors.Is(err, syscall.EROFS) {
		return nil, fmt.Errorf("the lock of the state folder, %s: %w", path, errors.Join(err, file.Close()))
	}
	return file, nil
}

// A supervisor that is killed while it starts a program leaves its lock with a child that is between fork and exec, for a moment.
const (
	lockTries = 25
	lockPause = 20 * time.Millisecond
)

// take locks what was opened.
func take(lock *os.File, dir string) error {
	err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	for tries := 1; tries < lockTries && errors.Is(err, syscall.EWOULDBLOCK); tries++ {
		time.Sleep(lockPause)
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		held := &HeldError{Dir: dir}
		if info, err := lock.Stat(); err == nil {
			held.PID = holderOf(info)
		}
		return held
	}
	if err != nil {
		return fmt.Errorf("locking the state folder %s: %w", dir, err)
	}
	return nil
}
