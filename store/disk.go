//go:build linux

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// disk is everything that the store does to the file system; tests put failures and power cuts below it. Paths are absolute,
// and their folders have been checked. What is not there is fs.ErrNotExist; what is there but cannot be trusted is a *defect.
type disk interface {
	// checkFolder reports whether path is a folder, ours and not a link.
	checkFolder(path string) error
	list(folder string) ([]fs.DirEntry, error)
	// read returns the whole file, which may have at most limit bytes.
	read(path string, limit int) ([]byte, error)
	// create writes a new file; its bytes are durable, its name is not before the sync of its folder.
	create(path string, content []byte) error
	mkdir(path string) error
	rename(from, to string) error
	// remove removes a file or a folder with all it holds; what is not there is removed already.
	remove(path string) error
	sync(folder string) error
}

// defect is the error for something on disk that cannot be trusted, as opposed to a failure that passes.
type defect struct {
	path   string
	reason error
}

func (d *defect) Error() string { return fmt.Sprintf("%s %v", d.path, d.reason) }

// osDisk is the disk of the running system. It follows no links. Checking a name and then using it is enough here: no user
// else can write to the folders in between.
type osDisk struct {
	dir    string
	opened fs.FileInfo // dir when it was locked
}

func (d *osDisk) checkFolder(path string) error {
	info, err := os.Lstat(path)
	if path == d.dir && !os.SameFile(info, d.opened) {
		return fmt.Errorf("the state folder %s was removed or replaced while in use; restart kubelet-supervisor", path)
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &defect{path, fmt.Errorf("is a %s instead of a folder", kindOf(info))}
	}
	if reason := foreign(info); reason != "" {
		return &defect{path, errors.New(reason)}
	}
	return nil
}

func (d *osDisk) list(folder string) ([]fs.DirEntry, error) { return os.ReadDir(folder) }

func (d *osDisk) read(path string, limit int) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &defect{path, fmt.Errorf("is a %s instead of a file", kindOf(info))}
	}
	if reason := foreign(info); reason != "" {
		return nil, &defect{path, errors.New(reason)}
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer file.Close()
	content, err := bounded.Read(file, limit)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return content, nil
}

// unreadable tells a file that cannot be read from a process that is short of something: good state must not be set aside
// because of open files.
func unreadable(path string, err error) error {
	for _, passing := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.EINTR} {
		if errors.Is(err, passing) {
			return err
		}
	}
	return &defect{path, fmt.Errorf("cannot be read: %w", err)}
}

func (d *osDisk) create(path string, content []byte) error {
	crashPoint("create", path)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func (d *osDisk) mkdir(path string) error {
	crashPoint("mkdir", path)
	return os.Mkdir(path, 0o700)
}

func (d *osDisk) rename(from, to string) error {
	crashPoint("rename", to)
	return os.Rename(from, to)
}

func (d *osDisk) remove(path string) error {
	crashPoint("remove", path)
	return os.RemoveAll(path)
}

func (d *osDisk) sync(folder string) error { return syncFolder(folder) }

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// foreign says whose the file is if it is not ours.
func foreign(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int64(stat.Uid) == int64(os.Geteuid()) {
		return ""
	}
	return fmt.Sprintf("belongs to user %d, not to %d", stat.Uid, os.Geteuid())
}

func kindOf(info fs.FileInfo) string {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return "folder"
	case mode.IsRegular():
		return "file"
	case mode&fs.ModeSymlink != 0:
		return "symbolic link"
	default:
		return "special file"
	}
}
