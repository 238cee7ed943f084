package plugin

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
)

func (o *pushOptions) laysOver() bool { return o.overlay || len(o.set) > 0 || len(o.layers) > 0 }

// Validate requires exactly one of fields, a file or a node.
func (o *pushOptions) Validate() error {
	switch {
	case o.edit != "" && (len(o.files) > 0 || o.laysOver() || o.against != ""),
		o.edit == "" && len(o.files) == 0 && !o.laysOver():
		return errors.New("give fields with --set, a file with -f or --layer, or a node with --edit")
	case o.overlay && len(o.files) == 0:
		return errors.New("--overlay wants a file with -f")
	case o.laysOver() && !o.overlay && len(o.files) > 0:
		return errors.New("with --set and --layer a file of -f needs --overlay: without it, it is a whole configuration")
	case o.against != "" && (o.laysOver() || len(o.files) == 0):
		return errors.New("--against wants a file with -f alone: what the node runs with, edited")
	}
	return nil
}

// layerFiles makes the configuration from the layers of the command line, and adds the other files.
func layerFiles(f *cmdutil.Factory, o pushOptions) ([]document.File, error) {
	var layers []kubeletconfig.Layer
	add := func(name, from string, patch map[string]any) {
		layers = append(layers, kubeletconfig.Layer{Name: name, From: from, Patch: patch})
	}
	for _, argument := range o.layers {
		name, file, is := strings.Cut(argument, "=")
		if !is || name == "" || file == "" {
			return nil, fmt.Errorf("--layer %s: write NAME=FILE", argument)
		}
		patch, err := readPatch(f, file)
		if err != nil {
			return nil, err
		}
		add(name, fromFile(file), patch)
	}
	files := []document.File{{Key: document.DefaultKey, Name: "the configuration of layers"}}
	for i, argument := range o.files {
		key, name, named := strings.Cut(argument, "=")
		if !named {
			name, key = argument, filepath.Base(argument)
		}
		if i > 0 {
			content, err := readInput(f, name)
			if err != nil {
				return nil, err
			}
			files = append(files, document.File{Key: key, Name: name, Content: content})
			continue
		}
		if named {
			files[0].Key = key
		}
		patch, err := readPatch(f, name)
		if err != nil {
			return nil, err
		}
		add(document.FreeName(o.name, layers), fromFile(name), patch)
	}
	if len(o.set) > 0 {
		patch, err := document.ParseSets(o.set)
		if err != nil {
			return nil, err
		}
		add(document.FreeName(o.name, layers), "push --set", patch)
	}
	var err error
	files[0].Content, err = document.EncodeLayers(layers)
	return files, err
}

func fromFile(name string) string {
	if name == "-" {
		return ""
	}
	return filepath.Base(name)
}

// readPatch reads a part of a KubeletConfiguration.
func readPatch(f *cmdutil.Factory, name string) (map[string]any, error) {
	content, err := readInput(f, name)
	if err != nil {
		return nil, err
	}
	patch, err := kubeletconfig.Decode(content)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s does not decode as YAML or JSON: %w", name, err)
	case kubeletconfig.AreLayers(patch):
		return nil, fmt.Errorf("%s is a configuration of layers already; push it with -f alone", name)
	}
	for field, only := range map[string]string{"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1"} {
		if value, is := patch[field]; is && value != only {
			return nil, fmt.Errorf("%s has another %s than %s", name, field, only)
		}
		delete(patch, field)
	}
	if len(patch) == 0 {
		return nil, fmt.Errorf("%s sets nothing", name)
	}
	return patch, nil
}

// reviewLayers prints what layers set, and where that may surprise users.
func reviewLayers(f *cmdutil.Factory, over *document.Layered) {
	f.Note("Laid over each node's own file, the rest of which stays (assign shows what really changes, and what that does):")
	root := false
	for _, layer := range over.List() {
		of := ""
		if len(over.List()) > 1 {
			of = ", layer " + layer.Name
		}
		values := document.KeyedLeaves(layer.Patch)
		for _, path := range document.SortedKeys(values) {
			mark, class := " ", kubeletconfig.Class("unknown")
			if found, known := kubeletconfig.NearestField(path); known {
				class = found.Class
			}
			if document.GivesRoot(path) {
				root, mark = true, "!"
			}
			value := document.Show(path, values[path].Value)
			if values[path].Value == nil {
				value = "null"
			}
			f.Note("%s %s: %s (%s%s)", mark, document.FieldName(path), value, class, of)
		}
	}
	if root {
		f.Note("A field with ! can give users root on the node: check it carefully.")
	}
	for _, trap := range over.Traps(nil) {
		f.Note("warning: %s", bounded.Line(trap))
	}
}
