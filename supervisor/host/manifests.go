//go:build linux

package host

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

const (
	mostManifest  = 1 << 20 // bytes; the largest are some kilobytes
	mostManifests = 500
)

// Manifests are the files that a kubelet reads static pods from, in its order: all of a folder that are not hidden,
// whatever their names end with, and no folders; or a file alone. What is not there has none. It never returns nil
// without an error.
func Manifests(path string) ([]forecast.Manifest, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return []forecast.Manifest{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for static pods: %w", err)
	}
	paths := []string{path}
	if info.IsDir() {
		entries, err := os.ReadDir(path) // sorted
		if err != nil {
			return nil, fmt.Errorf("looking for static pods: %w", err)
		}
		paths = nil
		for _, entry := range entries {
			if !strings.HasPrefix(entry.Name(), ".") {
				paths = append(paths, filepath.Join(path, entry.Name()))
			}
		}
	}
	list := []forecast.Manifest{}
	for _, file := range paths {
		if m, is := manifest(file); is {
			list = append(list, m)
		}
		if len(list) > mostManifests {
			return nil, fmt.Errorf("looking for static pods: %s has more than %d files", path, mostManifests)
		}
	}
	return list, nil
}

// manifest reads a file. It is none where it is not a regular file, or not a pod: the kubelet passes it over, too.
func manifest(path string) (m forecast.Manifest, is bool) {
	m.File = path
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would hold the look up
	if err != nil {
		return m, !errors.Is(err, fs.ErrNotExist)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return m, false
	}
	content, err := bounded.Read(file, mostManifest)
	if err != nil {
		return m, true
	}
	sum := sha256.Sum256(content)
	m.Digest = hex.EncodeToString(sum[:])
	tree, err := kubeletconfig.Decode(content)
	if err != nil {
		return m, false
	}
	text, err := json.Marshal(tree)
	if err == nil {
		m.Pod, err = forecast.DecodeManifest(text)
	}
	return m, err == nil
}
