//go:build linux

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// baseInfix stands between a resource version and the digest of a node's own file that was kept with that version.
const baseInfix = ".base-"

// SaveBase keeps the node's own configuration file, whose digest is given as "sha256:HEX" or "sha256:none", next to
// the checkpoint of layers that lie over it: what was good is what ran, whatever becomes of that file. When it returns
// nil the copy is durable.
func (s *Store) SaveBase(source corev1.ConfigMapNodeConfigSource, digest string, document []byte) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	name, err := baseName(source, digest)
	if err != nil {
		return fmt.Errorf("keeping the node's own configuration file: %w", err)
	}
	parent, err := s.makeFolder(checkpointsFolder, string(source.UID))
	if err == nil {
		err = s.replaceFile(parent, name, document)
	}
	if err != nil {
		return fmt.Errorf("keeping the node's own configuration file: %w", err)
	}
	return nil
}

// LoadBase returns what SaveBase kept. A file that is not what its name says is set aside.
func (s *Store) LoadBase(source corev1.ConfigMapNodeConfigSource, digest string) ([]byte, error) {
	path, document, err := s.readBase(source, digest)
	var found *defect
	if errors.As(err, &found) && found.path == path {
		s.turn.Lock()
		defer s.turn.Unlock()
		err = s.setAside(err)
	}
	if err != nil {
		return nil, fmt.Errorf("the copy of the node's own configuration file that the layers lie over: %w", err)
	}
	return document, nil
}

func (s *Store) readBase(source corev1.ConfigMapNodeConfigSource, digest string) (path string, document []byte, err error) {
	name, err := baseName(source, digest)
	if err != nil {
		return "", nil, err
	}
	parent, err := s.reach(checkpointsFolder, string(source.UID))
	if err == nil {
		path = filepath.Join(parent, name)
		document, err = s.disk.read(path, fileLimit)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = errors.New("there is none")
	case err == nil && digest != noBase && digest != digestPrefix+sumOf(document):
		err = &defect{path, errors.New("does not match its name")}
	}
	return path, document, err
}

const (
	digestPrefix = "sha256:"
	noBase       = digestPrefix + "none"
)

// baseName refuses what is no digest: it becomes a name.
func baseName(source corev1.ConfigMapNodeConfigSource, digest string) (string, error) {
	if err := checkSource(source); err != nil {
		return "", err
	}
	hex, is := strings.CutPrefix(digest, digestPrefix)
	if !is || !plain(hex, 64) {
		return "", fmt.Errorf("%.80q is no digest", digest)
	}
	name := source.ResourceVersion + baseInfix + hex
	if len(temporaryPrefix)+len(name) > nameLimit {
		return "", errors.New("the name of its copy would be too long")
	}
	return name, nil
}
