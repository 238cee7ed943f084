//go:build linux

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	metaFolder        = "meta"
	checkpointsFolder = "checkpoints"
)

// ErrHeld says that another process has STATE_DIR open.
var ErrHeld = errors.New("another process holds the state folder")

// HeldError is an ErrHeld that names the process.
type HeldError struct {
	Dir string
	PID int // 0: that is not certain
}

func (e *HeldError) Error() string {
	holder := ""
	if e.PID != 0 {
		holder = fmt.Sprintf(" (pid %d)", e.PID)
	}
	return fmt.Sprintf("%v %s%s: stop it, or choose another folder with --state-dir", ErrHeld, e.Dir, holder)
}

func (e *HeldError) Unwrap() error { return ErrHeld }

// A Store is an open STATE_DIR. Its methods may be called from several goroutines; they are carried out one at a time.
type Store struct {
	folders
	lock *os.File
	turn sync.Mutex // two writers would meet in one temporary file
}

// Open opens the folder dir, an absolute path, and creates it (0700) if there is none. It locks it until Close or the
// end of the process; the error wraps ErrHeld while another process has it. A folder of ours that others can read is
// closed to them. A folder that is a link, that belongs to another user, or that others can write to, is refused,
// because a user who can write there decides what the kubelet runs.
//
// A folder on a read-only file system opens; only the Saves fail.
func Open(dir string) (*Store, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("the state folder %q is not an absolute path; give one that begins with /", dir)
	}
	dir = filepath.Clean(dir)
	if err := makeStateFolder(dir); err != nil {
		return nil, fmt.Errorf("creating the state folder: %w", err)
	}
	info, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	lock, err := openLock(dir)
	if err != nil {
		return nil, err
	}
	return newStore(dir, info, lock)
}

// Inherit opens the folder dir by the lock of the program that this one took the place of (Lock), so that no other process can have had
// it in between. The lock is the Store's from then on, or closed.
func Inherit(dir string, lock *os.File) (*Store, error) {
	dir = filepath.Clean(dir)
	theirs, err := lock.Stat()
	if err != nil {
		return nil, fmt.Errorf("examining the inherited lock: %w", errors.Join(err, lock.Close()))
	}
	info, err := openFolder(dir)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	ours, err := os.Lstat(filepath.Join(dir, lockFile))
	if !os.SameFile(theirs, info) && !os.SameFile(theirs, ours) {
		return nil, errors.Join(fmt.Errorf("the inherited lock is not that of the state folder %s", dir), err, lock.Close())
	}
	return newStore(dir, info, lock)
}

// Lock is what is locked, open, for the program that takes the place of this one. It stays the Store's.
func (s *Store) Lock() *os.File { return s.lock }

func newStore(dir string, info fs.FileInfo, lock *os.File) (*Store, error) {
	if err := take(lock, dir); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &Store{folders: folders{dir: dir, disk: &osDisk{dir: dir, opened: info}, now: time.Now}, lock: lock}, nil
}

// openFolder checks that the folder is fit to hold state. One that others can read is tightened, where its file system lets it.
func openFolder(dir string) (fs.FileInfo, error) {
	folder, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the state folder, which must be a folder and not a link: %w", err)
	}
	defer func() { _ = folder.Close() }()
	info, err := folder.Stat()
	if err != nil {
		return nil, fmt.Errorf("examining the state folder: %w", err)
	}
	if reason := foreign(info); reason != "" {
		return nil, fmt.Errorf("the state folder %s %s; chown it or choose another with --state-dir", dir, reason)
	}
	switch mode := info.Mode().Perm(); {
	case mode&0o022 != 0:
		return nil, fmt.Errorf("others can write to the state folder %s (mode %04o); chmod it to 0700", dir, mode)
	case mode&0o077 != 0:
		if err := folder.Chmod(0o700); err != nil && !errors.Is(err, syscall.EROFS) {
			return nil, fmt.Errorf("others can read the state folder %s (mode %04o), and it cannot be closed to them: %w", dir, mode, err)
		}
	}
	return info, nil
}

// makeStateFolder creates the folder and the parents that are missing, durably. Links among the parents are the
// administrator's business.
func makeStateFolder(dir string) error {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if _, err := os.Stat(parent); errors.Is(err, fs.ErrNotExist) {
		if err := makeStateFolder(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(parent)
}

// Close gives the folder up. The Store must not be used afterwards.
func (s *Store) Close() error {
	s.turn.Lock()
	defer s.turn.Unlock()
	// Closing alone would leave the lock with a child that is between fork and exec.
	unlockErr := syscall.Flock(int(s.lock.Fd()), syscall.LOCK_UN)
	if err := errors.Join(unlockErr, s.lock.Close()); err != nil {
		return fmt.Errorf("closing the state folder: %w", err)
	}
	return nil
}
