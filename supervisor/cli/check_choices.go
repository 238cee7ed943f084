//go:build linux

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/store"
)

// choice is a configuration that the kubelet may be started with.
type choice struct {
	names    []string // what it is to the supervisor
	source   string
	rendered []byte
	file     string // "" for local: the command line as it is
	words    string // why there is nothing to ask
	refused  bool   // whatever the kubelet
}

func (c choice) String() string {
	name := strings.Join(c.names, " and ")
	if c.source != "" {
		name += ", " + c.source
	}
	return name
}

// choices are those of a node, with files of theirs in the folder.
func (l startLine) choices(folder string) (list []choice, err error) {
	reader, err := store.Look(l.stateDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, exitError{code: checkUnknown, err: err}
	}
	for _, pointer := range []struct {
		store.Pointer
		name string
	}{{store.Assigned, "assigned"}, {store.LastKnownGood, "last known good"}} {
		if reader == nil { // nothing was ever assigned
			break
		}
		c, is := l.read(reader, pointer.Pointer)
		if !is {
			continue
		}
		if i := slices.IndexFunc(list, c.equals); i >= 0 {
			list[i].names = append(list[i].names, pointer.name)
			continue
		}
		c.names = []string{pointer.name}
		if c.rendered != nil {
			c.file = filepath.Join(folder, string(pointer.Pointer)+".yaml")
			if err := os.WriteFile(c.file, c.rendered, 0o600); err != nil {
				return nil, fmt.Errorf("writing the configuration to check: %w", err)
			}
		}
		list = append(list, c)
	}
	return append(list, choice{names: []string{"local"}}), nil
}

func (c choice) equals(other choice) bool {
	return c.rendered != nil && bytes.Equal(c.rendered, other.rendered) || c.source == other.source && c.words == other.words
}

// read returns what the pointer names, rendered as the supervisor would. is: it names something.
func (l startLine) read(reader *store.Reader, pointer store.Pointer) (c choice, is bool) {
	source, payload, folder, err := readPointer(reader, pointer)
	if source == nil && err == nil {
		return c, false
	}
	if source != nil {
		c.source = nodev1.FieldText(source)
	}
	if err == nil {
		c.rendered, err = l.render(reader, pointer, *source, payload, folder)
	}
	if err != nil {
		var load *kubeletconfig.LoadError
		c.words, c.refused = kubeletconfig.Quote(err.Error()), errors.As(err, &load)
	}
	return c, true
}

func (l startLine) render(reader *store.Reader, pointer store.Pointer, source corev1.ConfigMapNodeConfigSource,
	payload map[string]string, folder string,
) ([]byte, error) {
	base := ""
	if pointer == store.LastKnownGood {
		base = goodBase(reader)
	}
	composed, err := kubeletconfig.Compose(payload, source.KubeletConfigKey, baseOf(reader, source, base, l.arguments))
	if err != nil {
		return nil, err
	}
	return composed.Render(folder, l.arguments)
}

// readPointer looks again where a checkpoint is not there: a supervisor at work may just have assigned another, and collected this one.
func readPointer(reader *store.Reader, pointer store.Pointer) (
	source *corev1.ConfigMapNodeConfigSource, payload map[string]string, folder string, err error,
) {
	for range 3 {
		if source, err = reader.Source(pointer); err != nil || source == nil {
			return nil, nil, "", err
		}
		if payload, folder, err = reader.Checkpoint(*source); err == nil {
			break
		}
	}
	return source, payload, folder, err
}
