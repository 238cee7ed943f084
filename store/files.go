//go:build linux

package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

const (
	temporaryPrefix = "tmp_" // as upstream's
	corruptInfix    = ".corrupt-"
	corruptTime     = "20060102T150405.000000000Z" // of equal length, so that names sort by time
	nameLimit       = 255                          // bytes, of the usual file systems
	fileLimit       = 1 << 20                      // bytes, of every file but those of a payload
)

// reach returns the path of a folder below STATE_DIR after checking each folder on the way.
func (s *Store) reach(names ...string) (string, error) {
	path := s.dir
	if err := s.disk.checkFolder(path); err != nil {
		return "", err
	}
	for _, name := range names {
		path = filepath.Join(path, name)
		if err := s.disk.checkFolder(path); err != nil {
			return "", err
		}
	}
	return path, nil
}

// makeFolder is reach for writers: what is missing is made, what is defect is set aside first. Parents are synced even if
// nothing is missing, for an earlier attempt may have failed just before that.
func (s *Store) makeFolder(names ...string) (string, error) {
	path := s.dir
	if err := s.disk.checkFolder(path); err != nil {
		return "", err
	}
	for _, name := range names {
		parent := path
		path = filepath.Join(path, name)
		err := s.disk.checkFolder(path)
		var found *defect
		if errors.As(err, &found) {
			_ = s.setAside(err) // mkdir says if this failed
			err = fs.ErrNotExist
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = s.disk.mkdir(path)
		}
		if err == nil {
			err = s.disk.sync(parent)
		}
		if err != nil {
			return "", err
		}
	}
	return path, nil
}

// replaceFile makes content the durable content of a file. Bytes that are there already are not written again.
func (s *Store) replaceFile(folder, name string, content []byte) error {
	if len(content) > fileLimit {
		return fmt.Errorf("%s would have %d bytes, more than the %d that are read back", name, len(content), fileLimit)
	}
	path := filepath.Join(folder, name)
	old, err := s.disk.read(path, fileLimit)
	if err == nil && bytes.Equal(old, content) {
		return s.disk.sync(folder) // an earlier attempt may have failed just before that
	}
	_ = s.setAside(err) // a rename cannot replace a folder; create says if this failed
	temporary := filepath.Join(folder, temporaryPrefix+name)
	if err := s.disk.remove(temporary); err != nil {
		return err
	}
	if err = s.disk.create(temporary, content); err == nil {
		err = s.disk.rename(temporary, path)
	}
	if err != nil {
		return errors.Join(err, s.disk.remove(temporary))
	}
	return s.disk.sync(folder)
}

// setAside renames what a *defect speaks of to NAME.corrupt-TIME, the marker that vouches for it first, and adds that to the
// error. Other errors, and nil, are returned as they are.
func (s *Store) setAside(err error) error {
	var found *defect
	if !errors.As(err, &found) {
		return err
	}
	suffix := corruptInfix + s.now().UTC().Format(corruptTime)
	folder := filepath.Dir(found.path)
	for _, path := range []string{found.path + markerSuffix, found.path} {
		renameErr := s.disk.rename(path, aside(path, suffix))
		if renameErr == nil {
			renameErr = s.disk.sync(folder)
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
