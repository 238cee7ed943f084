//go:build linux

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

const (
	// A ConfigMap holds at most 1 MiB of values; the keys come on top.
	payloadLimit = 1<<20 + keysLimit*nameLimit // bytes
	keysLimit    = 1024                        // each is a file
)

// CheckpointFolder returns the folder whose files are the payload of the source, and in which relative paths of that
// payload are resolved; "" for a source that cannot have one.
func (s *Store) CheckpointFolder(source corev1.ConfigMapNodeConfigSource) string {
	if checkSource(source) != nil {
		return ""
	}
	return filepath.Join(s.dir, checkpointsFolder, string(source.UID), source.ResourceVersion)
}

// SaveCheckpoint keeps the payload of the source. When it returns nil the checkpoint is complete and durable; before that it
// does not exist. Saving what is there already writes nothing; other contents under the same uid and resourceVersion, which
// the API server rules out, are replaced.
func (s *Store) SaveCheckpoint(source corev1.ConfigMapNodeConfigSource, payload map[string]string) error {
	err := checkSource(source)
	if err == nil {
		err = checkPayload(payload)
	}
	if err == nil {
		err = s.saveCheckpoint(string(source.UID), source.ResourceVersion, payload)
	}
	if err != nil {
		return fmt.Errorf("saving the checkpoint of %s, UID: %.64s, ResourceVersion: %.64s: %w",
			apiPath(source), source.UID, source.ResourceVersion, err)
	}
	return nil
}

func checkPayload(payload map[string]string) error {
	if len(payload) > keysLimit {
		return fmt.Errorf("the payload has %d keys, more than %d", len(payload), keysLimit)
	}
	total := 0
	for _, key := range slices.Sorted(maps.Keys(payload)) {
		if err := checkKey(key); err != nil {
			return err
		}
		total += len(key) + len(payload[key])
	}
	if total > payloadLimit {
		return fmt.Errorf("the payload has %d bytes, more than %d", total, payloadLimit)
	}
	return nil
}

func (s *Store) saveCheckpoint(uid, version string, payload map[string]string) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	parent, err := s.makeFolder(checkpointsFolder, uid)
	if err != nil {
		return err
	}
	saved, err := s.readCheckpoint(parent, version)
	if err == nil && maps.Equal(saved, payload) {
		return s.disk.sync(parent) // an earlier attempt may have failed just before that
	}
	temporary := filepath.Join(parent, temporaryPrefix+version)
	if err := s.writeFolder(temporary, payload); err != nil {
		return errors.Join(err, s.disk.remove(temporary))
	}
	if err := s.removeCheckpoint(parent, version); err != nil {
		return errors.Join(err, s.disk.remove(temporary))
	}
	if err := s.disk.rename(temporary, filepath.Join(parent, version)); err != nil {
		return errors.Join(err, s.disk.remove(temporary))
	}
	if err := s.disk.sync(parent); err != nil { // or the marker could be there without the folder
		return err
	}
	return s.replaceFile(parent, version+markerSuffix, encodeMarker(version, sumsOf(payload)))
}

// writeFolder makes a new folder with the payload. Its contents are durable, its name is not.
func (s *Store) writeFolder(folder string, payload map[string]string) error {
	if err := s.disk.remove(folder); err != nil {
		return err
	}
	if err := s.disk.mkdir(folder); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(payload)) {
		if err := s.disk.create(filepath.Join(folder, key), []byte(payload[key])); err != nil {
			return err
		}
	}
	return s.disk.sync(folder)
}

// removeCheckpoint ends the existence of a checkpoint before it removes its files.
func (s *Store) removeCheckpoint(parent, version string) error {
	if err := s.disk.remove(filepath.Join(parent, version+markerSuffix)); err != nil {
		return err
	}
	if err := s.disk.sync(parent); err != nil {
		return err
	}
	return s.disk.remove(filepath.Join(parent, version))
}

// LoadCheckpoint returns the payload of the source after comparing it with its checksums. A checkpoint that differs from
// what was saved is set aside, .sha256 first, and the error says so; it can then be saved again. One that is whole is read without waiting
// for a writer, who may hang on the disk while a kubelet has to be started.
func (s *Store) LoadCheckpoint(source corev1.ConfigMapNodeConfigSource) (map[string]string, error) {
	if err := checkSource(source); err != nil { // upstream's words
		return nil, fmt.Errorf("failed to determine whether checkpoint exists for source %s, "+
			"UID: %.64s, ResourceVersion: %.64s exists, error: %w",
			apiPath(source), source.UID, source.ResourceVersion, err)
	}
	if payload, err := s.findCheckpoint(source); err == nil {
		return payload, nil
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	payload, err := s.findCheckpoint(source)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("no checkpoint for source %s", apiPath(source))
	case err != nil:
		return nil, fmt.Errorf("loading the checkpoint of %s, UID: %s, ResourceVersion: %s: %w",
			apiPath(source), source.UID, source.ResourceVersion, s.setAside(err))
	}
	return payload, nil
}

func (s *Store) findCheckpoint(source corev1.ConfigMapNodeConfigSource) (map[string]string, error) {
	parent, err := s.reach(checkpointsFolder, string(source.UID))
	if err != nil {
		return nil, err
	}
	return s.readCheckpoint(parent, source.ResourceVersion)
}

// readCheckpoint returns fs.ErrNotExist without a marker, and a *defect of the checkpoint's folder for whatever is wrong with
// folder, files or marker.
func (s *Store) readCheckpoint(parent, version string) (map[string]string, error) {
	folder := filepath.Join(parent, version)
	marker, err := s.disk.read(folder+markerSuffix, fileLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var payload map[string]string
	if err == nil {
		payload, err = s.readFolder(folder, marker)
	}
	var found *defect
	if errors.As(err, &found) || errors.Is(err, fs.ErrNotExist) {
		// Only the text of err: wrapped, a missing key would read as a missing checkpoint.
		return nil, &defect{folder, errors.New("is not the checkpoint that was saved: " + err.Error())}
	}
	return payload, err
}

func (s *Store) readFolder(folder string, marker []byte) (map[string]string, error) {
	sums, err := decodeMarker(filepath.Base(folder), marker)
	if err != nil {
		return nil, &defect{folder + markerSuffix, err}
	}
	if err := s.disk.checkFolder(folder); err != nil {
		return nil, err
	}
	if err := s.checkListing(folder, sums); err != nil {
		return nil, err
	}
	payload, room := make(map[string]string, len(sums)), payloadLimit
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		path := filepath.Join(folder, key)
		content, err := s.disk.read(path, room)
		if err != nil {
			return nil, err
		}
		if sumOf(content) != sums[key] {
			return nil, &defect{path, errors.New("does not match its checksum")}
		}
		payload[key] = string(content)
		room -= len(content)
	}
	return payload, nil
}

// checkListing refuses files that the marker does not list: the marker may have been cut short. Folders are the kubelet's, which
// makes those that a payload names by relative paths (volumePluginDir, podLogsDir).
func (s *Store) checkListing(folder string, sums map[string]string) error {
	entries, err := s.disk.list(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if _, listed := sums[entry.Name()]; !listed && !entry.IsDir() {
			return &defect{filepath.Join(folder, entry.Name()), errors.New("is not listed")}
		}
	}
	return nil
}
