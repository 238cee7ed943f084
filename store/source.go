//go:build linux

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// A Pointer is a file in STATE_DIR/meta that names a source.
type Pointer string

// The pointers that upstream kept, under upstream's names.
const (
	Assigned      Pointer = "assigned"
	LastKnownGood Pointer = "last-known-good"
)

const (
	sourceKind    = "SerializedNodeConfigSource"
	sourceVersion = "kubelet.config.k8s.io/v1beta1"
)

// pointerFile is what k8s.io/kubelet calls SerializedNodeConfigSource. That package takes 2 MiB of memory, and this is all it is needed
// for.
type pointerFile struct {
	metav1.TypeMeta `json:",inline"`
	Source          corev1.NodeConfigSource `json:"source"`
}

// SaveSource makes the pointer name the source, durably; nil means local and leaves an empty file. The bytes are those that
// the kubelet wrote from 1.11 to 1.23. A source without uid or resourceVersion is refused, for it could mean any version.
func (s *Store) SaveSource(p Pointer, source *corev1.ConfigMapNodeConfigSource) error {
	content, err := encodeSource(source)
	if err != nil {
		return fmt.Errorf("saving %s: %w", p, err)
	}
	if err := s.saveMeta(string(p), content); err != nil {
		return fmt.Errorf("saving %s: %w", p, err)
	}
	return nil
}

// LoadSource returns the source that the pointer names; nil means local. What cannot be read or does not decode is set
// aside, and the error says so: the next LoadSource then returns nil.
func (s *Store) LoadSource(p Pointer) (*corev1.ConfigMapNodeConfigSource, error) {
	var source *corev1.ConfigMapNodeConfigSource
	err := s.loadMeta(string(p), func(content []byte) (err error) {
		source, err = decodeSource(content)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", p, err)
	}
	return source, nil
}

func encodeSource(source *corev1.ConfigMapNodeConfigSource) ([]byte, error) {
	if source == nil {
		return nil, nil
	}
	if err := checkReference(*source); err != nil {
		return nil, fmt.Errorf("failed to write RemoteConfigSource, %w", err)
	}
	var file pointerFile
	file.APIVersion, file.Kind = sourceVersion, sourceKind
	file.Source.ConfigMap = source
	return yaml.Marshal(file)
}

// decodeSource is the inverse of encodeSource. Like upstream it tolerates fields that it does not know.
func decodeSource(content []byte) (*corev1.ConfigMapNodeConfigSource, error) {
	if len(content) == 0 {
		return nil, nil
	}
	if err := checkAliases(content); err != nil {
		return nil, err
	}
	var file pointerFile
	if err := yaml.Unmarshal(content, &file); err != nil {
		return nil, fmt.Errorf("does not decode: %w", err)
	}
	if file.APIVersion != sourceVersion || file.Kind != sourceKind {
		return nil, fmt.Errorf("is %.64q of %.64q instead of %s of %s", file.Kind, file.APIVersion, sourceKind, sourceVersion)
	}
	if file.Source.ConfigMap == nil {
		return nil, errors.New("names no ConfigMap")
	}
	if err := checkReference(*file.Source.ConfigMap); err != nil {
		return nil, fmt.Errorf("is not usable: %w", err)
	}
	return file.Source.ConfigMap, nil
}

// checkReference refuses a source that could not be found again.
func checkReference(source corev1.ConfigMapNodeConfigSource) error {
	if err := checkSource(source); err != nil {
		return err
	}
	for _, field := range []struct{ name, value string }{
		{"namespace", source.Namespace}, {"name", source.Name}, {"kubeletConfigKey", source.KubeletConfigKey},
	} {
		if !plain(field.value, nameLimit) {
			return fmt.Errorf("the %s %.64q is not one that Kubernetes allows", field.name, field.value)
		}
	}
	return nil
}

// saveMeta replaces a file in meta.
func (s *Store) saveMeta(name string, content []byte) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	folder, err := s.makeFolder(metaFolder)
	if err != nil {
		return err
	}
	return s.replaceFile(folder, name, content)
}

// loadMeta decodes a file in meta, if there is one, and sets it aside if that fails.
func (s *Store) loadMeta(name string, decode func(content []byte) error) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.setAside(s.readMeta(name, decode))
}

// readMeta returns a *defect for what cannot be trusted.
func (s *Store) readMeta(name string, decode func(content []byte) error) error {
	folder, err := s.reach(metaFolder)
	var content []byte
	if err == nil {
		content, err = s.disk.read(filepath.Join(folder, name), fileLimit)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if reason := decode(content); reason != nil {
		return &defect{filepath.Join(folder, name), reason}
	}
	return nil
}
