//go:build linux

package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

const (
	temporaryPrefix = "tmp_" // as upstream's
	corruptInfix    = ".corrupt-"
	corruptTime     = "20060102T150405.000000000Z" // of equal length, so that names sort by time
	nameLimit       = 255                          // bytes, of the usual file systems
	fileLimit       = 1 << 20                      // bytes, of every file but those of a payload
)

// folders are what is below STATE_DIR. Their methods take no turn.
type folders struct {
	dir  string
	disk disk
	now  func() time.Time // names what is set aside
}

// reach returns the path of a folder below STATE_DIR after checking each folder on the way.
func (f *folders) reach(names ...string) (string, error) {
	path := f.dir
	if err := f.disk.checkFolder(path); err != nil {
		return "", err
	}
	for _, name := range names {
		path = filepath.Join(path, name)
		if err := f.disk.checkFolder(path); err != nil {
			return "", err
		}
	}
	return path, nil
}

// makeFolder is reach for writers: what is missing is made, what is defect is set aside first. Parents are synced even if
// nothing is missing, for an earlier attempt may have failed just before that.
func (f *folders) makeFolder(names ...string) (string, error) {
	path := f.dir
	if err := f.disk.checkFolder(path); err != nil {
		return "", err
	}
	for _, name := range names {
		parent := path
		path = filepath.Join(path, name)
		err := f.disk.checkFolder(path)
		var found *defect
		if errors.As(err, &found) {
			_ = f.setAside(err) // mkdir says if this failed
			err = fs.ErrNotExist
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = f.disk.mkdir(path)
		}
		if err == nil {
			err = f.disk.sync(parent)
		}
		if err != nil {
			return "", err
		}
	}
	return path, nil
}

// replaceFile makes content the durable content of a file. Bytes that are there already are not written again.
func (f *folders) replaceFile(folder, name string, content []byte) error {
	if len(content) > fileLimit {
		return fmt.Errorf("%s would have %d bytes, more than the %d that are read back", name, len(content), fileLimit)
	}
	path := filepath.Join(folder, name)
	old, err := f.disk.read(path, fileLimit)
	if err == nil && bytes.Equal(old, content) {
		return f.disk.sync(folder) // an earlier attempt may have failed just before that
	}
	_ = f.setAside(err) // a rename cannot replace a folder; create says if this failed
	temporary := filepath.Join(folder, temporaryPrefix+name)
	if err := f.disk.remove(temporary); err != nil {
		return err
	}
	if err = f.disk.create(temporary, content); err == nil {
		err = f.disk.rename(temporary, path)
	}
	if err != nil {
		return errors.Join(err, f.disk.remove(temporary))
	}
	return f.disk.sync(folder)
}

// setAside renames what a *defect speaks of to NAME.corrupt-TIME, the marker that vouches for it first, and adds that to the
// error. Other errors, and nil, are returned as they are.
func (f *folders) setAside(err error) error {
	var found *defect
	if !errors.As(err, &found) {
		return err
	}
	suffix := corruptInfix + f.now().UTC().Format(corruptTime)
	folder := filepath.Dir(found.path)
	for _, path := range []string{found.path + markerSuffix, found.path} {
		renameErr := f.disk.rename(path, aside(path, suffix))
		if renameErr == nil {
			renameErr = f.disk.sync(folder)
		}
		if renameErr != nil && !errors.Is(renameErr, fs.ErrNotExist) {
			return fmt.Errorf("%w; it could not be set aside: %w", err, renameErr)
		}
	}
	return fmt.Errorf("%w; set aside as %s", err, filepath.Base(aside(found.path, suffix)))
}

func aside(path, suffix string) string {
	folder, name := filepath.Split(path)
	return filepath.Join(folder, name[:min(len(name), nameLimit-len(suffix))]+suffix)
}
