//go:build machine

package machine

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/store"
)

// An assigned is one step of a test's: a configuration that was assigned, and what it is worth.
type assigned struct {
	source  *corev1.ConfigMapNodeConfigSource // nil: local
	payload string
	good    bool // may become last known good
}

func (a assigned) names(source *corev1.ConfigMapNodeConfigSource) bool {
	if a.source == nil || source == nil {
		return a.source == nil && source == nil
	}
	return a.source.UID == source.UID && a.source.ResourceVersion == source.ResourceVersion
}

// history is what was assigned to a node, the oldest first, and what of it the Node has spoken of: that is durable.
type history struct {
	steps []assigned
	told  int // index of the newest that the Node has named as assigned
}

// find gives the newest step that names a source, -1 for none.
func (h *history) find(source *corev1.ConfigMapNodeConfigSource) int {
	for i := len(h.steps) - 1; i >= 0; i-- {
		if h.steps[i].names(source) {
			return i
		}
	}
	return -1
}

// pointers are what the store has after a cut.
type pointers struct {
	assigned, lastKnownGood *corev1.ConfigMapNodeConfigSource
}

// check says what of the store's contract a state folder breaks, which is given as the machine's init found it after the file system's own
// recovery: that nothing is torn, that what is named is there, that nothing older is assigned than what the Node was told of, and that
// nothing is last known good that cannot have passed a trial.
func (h *history) check(archive []byte) (p pointers, err error) {
	folder, err := os.MkdirTemp("", "state-")
	if err != nil {
		return p, err
	}
	defer os.RemoveAll(folder)
	if err := unpack(archive, folder); err != nil {
		return p, fmt.Errorf("unpacking the state: %w", err)
	}
	s, err := store.Open(folder)
	if err != nil {
		return p, err
	}
	defer s.Close()
	var problems []error
	read := map[store.Pointer]**corev1.ConfigMapNodeConfigSource{store.Assigned: &p.assigned, store.LastKnownGood: &p.lastKnownGood}
	for pointer, to := range read {
		source, err := s.LoadSource(pointer)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", pointer, err))
			continue
		}
		*to = source
		i := h.find(source)
		switch {
		case i < 0:
			problems = append(problems, fmt.Errorf("%s is %v, which nobody assigned", pointer, source))
			continue
		case pointer == store.Assigned && i < h.told:
			problems = append(problems, fmt.Errorf("assigned is step %d, %v; the Node has already told of step %d", i, source, h.told))
		case pointer == store.LastKnownGood && !h.steps[i].good:
			problems = append(problems, fmt.Errorf("last known good is step %d, %v, which runs nowhere", i, source))
		}
		if source == nil {
			continue
		}
		if payload, err := s.LoadCheckpoint(*source); err != nil || !maps.Equal(payload, map[string]string{"kubelet": h.steps[i].payload}) {
			problems = append(problems, fmt.Errorf("the checkpoint of %s, %v, is %q: %w", pointer, source, payload, err))
		}
	}
	err = filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if strings.Contains(path, ".corrupt-") {
			problems = append(problems, errors.New(path+" was set aside"))
		}
		return err
	})
	return p, errors.Join(append(problems, err)...)
}

func unpack(archive []byte, folder string) error {
	for reader := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		path := filepath.Join(folder, header.Name)
		switch header.Typeflag {
		case tar.TypeDir:
			if err := errors.Join(os.MkdirAll(path, 0o700), os.Chmod(path, header.FileInfo().Mode().Perm())); err != nil {
				return err
			}
		case tar.TypeReg:
			content, err := io.ReadAll(reader)
			if err != nil {
				return err
			}
			if err := os.WriteFile(path, content, header.FileInfo().Mode().Perm()); err != nil {
				return err
			}
		}
	}
}

// may tells whether a kubelet may run with this after a boot without an API server: assigned, last known good, or local.
func (p pointers) may(runs *corev1.ConfigMapNodeConfigSource) bool {
	named := func(one *corev1.ConfigMapNodeConfigSource) bool {
		return one != nil && assigned{source: one}.names(runs)
	}
	return runs == nil || named(p.assigned) || named(p.lastKnownGood)
}
