//go:build linux

package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// replaceRunFile writes a file of RUN_DIR again. What is in the way is removed and not written through, links and folders alike.
func replaceRunFile(path string, content []byte) error {
	temporary := path + ".new"
	if err := os.RemoveAll(temporary); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err == nil {
		crashPoint("rename", path)
		err = os.Rename(temporary, path)
	}
	if errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.EEXIST) {
		err = errors.Join(os.RemoveAll(path), os.Rename(temporary, path))
	}
	if err != nil {
		_ = os.RemoveAll(temporary)
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// readRunFile reads a file of RUN_DIR. It follows no link, and waits for no writer of a pipe: the kubelet's start waits for this.
func readRunFile(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no file")
	case ownerOf(info) != ownerOf(folder):
		return nil, fmt.Errorf("it belongs to user %d, and its folder to %d", ownerOf(info), ownerOf(folder))
	}
	return bounded.Read(file, recordLimit)
}

// ownerOf is -1 where a file system knows none.
func ownerOf(info os.FileInfo) int64 {
	if stat, known := info.Sys().(*syscall.Stat_t); known {
		return int64(stat.Uid)
	}
	return -1
}
