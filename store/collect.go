//go:build linux

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// corruptLimit is how many *.corrupt-* are left in a folder, the newest.
const corruptLimit = 5

// Collect removes the checkpoints of all sources but those to keep, what writers left behind when they were killed, and old
// *.corrupt-* files. The .sha256 goes first, so that there is never half a checkpoint. It does what it can and returns what it
// could not. With a source in keep that names no checkpoint it removes nothing, for the caller is in error.
//
// A checkpoint that was saved and is named nowhere yet has to be among those to keep. Upstream never collected
// anything. Of the copies of the node's own file next to the checkpoints that are kept, those of the given digests
// stay.
func (s *Store) Collect(keep []corev1.ConfigMapNodeConfigSource, bases ...string) error {
	kept := map[string]map[string]bool{} // uid → resourceVersion, and the names of copies
	for _, source := range keep {
		if err := checkSource(source); err != nil {
			return fmt.Errorf("collecting checkpoints: keeping %s: %w", apiPath(source), err)
		}
		versions := kept[string(source.UID)]
		if versions == nil {
			versions = map[string]bool{}
			kept[string(source.UID)] = versions
		}
		versions[source.ResourceVersion] = true
		for _, digest := range bases {
			if name, err := baseName(source, digest); err == nil {
				versions[name] = true
			}
		}
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	if err := errors.Join(s.tidy(), s.tidy(metaFolder), s.collectAll(kept)); err != nil {
		return fmt.Errorf("collecting checkpoints: %w", err)
	}
	return nil
}

// collectAll removes from the folder of checkpoints.
func (s *Store) collectAll(kept map[string]map[string]bool) error {
	if err := s.tidy(checkpointsFolder); err != nil {
		return err
	}
	parent, err := s.reach(checkpointsFolder)
	names, err := s.names(parent, err)
	var errs []error
	for _, name := range names {
		switch {
		case strings.Contains(name, corruptInfix): // tidied
		case kept[name] == nil:
			ours, err := s.collectOne(parent, name, nil)
			if err == nil && ours {
				err = s.disk.remove(filepath.Join(parent, name))
			}
			errs = append(errs, err)
		default:
			_, err := s.collectOne(parent, name, kept[name])
			errs = append(errs, s.tidy(checkpointsFolder, name), err)
		}
	}
	return errors.Join(append(errs, err)...)
}

// collectOne removes the checkpoints of one uid, except the versions to keep. A folder that is not ours is left as it
// is: STATE_DIR may have been a folder of another program's, and the kubelet for one has a folder of this name, with
// files in it (rule 24).
func (s *Store) collectOne(parent, uid string, versions map[string]bool) (ours bool, err error) {
	folder := filepath.Join(parent, uid)
	names, err := s.names(folder, s.disk.checkFolder(folder))
	var found *defect
	if errors.As(err, &found) {
		return false, nil
	}
	doomed := func(name string) bool {
		return !versions[strings.TrimSuffix(name, markerSuffix)] && !strings.Contains(name, corruptInfix)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !doomed(name) })
	if err != nil || len(names) == 0 {
		return true, err
	}
	remove := func(markers bool) error {
		var errs []error
		for _, name := range names {
			if strings.HasSuffix(name, markerSuffix) == markers {
				errs = append(errs, s.disk.remove(filepath.Join(folder, name)))
			}
		}
		return errors.Join(errs...)
	}
	if err := errors.Join(remove(true), s.disk.sync(folder)); err != nil {
		return true, err
	}
	return true, remove(false)
}

// tidy removes temporary files, and all except the newest *.corrupt-* from a folder below STATE_DIR.
func (f *folders) tidy(folders ...string) error {
	folder, err := f.reach(folders...)
	names, err := f.names(folder, err)
	var corrupt []string
	errs := []error{err}
	for _, name := range names {
		switch {
		case strings.HasPrefix(name, temporaryPrefix):
			errs = append(errs, f.disk.remove(filepath.Join(folder, name)))
		case strings.Contains(name, corruptInfix):
			corrupt = append(corrupt, name)
		}
	}
	slices.SortFunc(corrupt, func(a, b string) int { return strings.Compare(corruptSince(a), corruptSince(b)) })
	for _, name := range corrupt[:max(0, len(corrupt)-corruptLimit)] {
		errs = append(errs, f.disk.remove(filepath.Join(folder, name)))
	}
	return errors.Join(errs...)
}

func corruptSince(name string) string { return name[strings.LastIndex(name, corruptInfix):] }

// names lists a folder, unless it is missing or reaching it failed.
func (f *folders) names(folder string, err error) ([]string, error) {
	var entries []fs.DirEntry
	if err == nil {
		entries, err = f.disk.list(folder)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, err
}
