//go:build linux

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
)

// A Reader looks into a STATE_DIR that another process may have open. It takes no lock and changes nothing: what cannot be trusted is an
// error and stays where it is, for its owner to meet. What it reads may be collected a moment later.
type Reader struct{ store *Store }

// Look gives a Reader of the folder dir, an absolute path. Without such a folder the error wraps [fs.ErrNotExist].
func Look(dir string) (*Reader, error) {
	dir = filepath.Clean(dir)
	opened, err := os.Lstat(dir)
	if err != nil {
		return nil, fmt.Errorf("looking into the state folder: %w", err)
	}
	disk := &osDisk{dir: dir, opened: opened}
	if err := disk.checkFolder(dir); err != nil {
		return nil, fmt.Errorf("looking into the state folder: %w", err)
	}
	return &Reader{&Store{folders: folders{dir: dir, disk: disk}}}, nil
}

// Source returns the source that the pointer names; nil means local.
func (r *Reader) Source(p Pointer) (source *corev1.ConfigMapNodeConfigSource, err error) {
	err = r.store.readMeta(string(p), func(content []byte) (err error) {
		source, err = decodeSource(content)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", p, err)
	}
	return source, nil
}

// Checkpoint returns the payload of the source after comparing it with its checksums, and the folder that it lies in.
func (r *Reader) Checkpoint(source corev1.ConfigMapNodeConfigSource) (payload map[string]string, folder string, err error) {
	if err = checkSource(source); err == nil {
		payload, err = r.store.findCheckpoint(source)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("no checkpoint for source %s", apiPath(source))
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading the checkpoint of %s: %w", apiPath(source), err)
	}
	return payload, r.store.CheckpointFolder(source), nil
}

// Base returns the copy of the node's own configuration file that layers lie over ([Store.SaveBase]).
func (r *Reader) Base(source corev1.ConfigMapNodeConfigSource, digest string) ([]byte, error) {
	_, document, err := r.store.readBase(source, digest)
	if err != nil {
		return nil, fmt.Errorf("reading the copy of the node's own configuration file: %w", err)
	}
	return document, nil
}

// Document reads the document meta/NAME into v, a pointer, as [Store.LoadDocument] does.
func (r *Reader) Document(name, kind string, v any) error {
	if err := checkDocumentName(name); err != nil {
		return err
	}
	if err := r.store.readMeta(name, func(content []byte) error { return decodeDocument(content, kind, v) }); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}
