package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/cmd/util/editor"
	"sigs.k8s.io/yaml"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/config"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// editConfig lets a person edit what a kubelet runs with and is not its default, and takes what he changed: a default of today is nothing to
// keep for years, nor is what one node has in its own file. Nil when it was left as it was. What was written is kept in a file when it
// cannot be used.
func (s *session) editConfig(ctx context.Context, client kubernetes.Interface, o pushOptions) (files []pushedFile, err error) {
	node, err := s.runningNode(ctx, client, o.edit)
	if err != nil {
		return nil, err
	}
	if len(node.left) > 0 {
		s.note("Left out, for it belongs to node %s alone, or may be a secret: %s", node.Name, strings.Join(node.left, ", "))
	}
	before, err := configYAML(node.Name, config.Masked(node.shown))
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp("", "kubelet-*.yaml")
	if err != nil {
		return nil, fmt.Errorf("making a file to edit: %w", err)
	}
	defer func() {
		if err == nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.Write(before)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("writing %s: %w", file.Name(), err)
	}
	if err := s.edit(file.Name()); err != nil {
		return nil, err
	}
	content, err := os.ReadFile(file.Name())
	if err != nil {
		return nil, fmt.Errorf("reading what was edited: %w", err)
	}
	if bytes.Equal(bytes.TrimSpace(before), bytes.TrimSpace(content)) {
		s.note("Nothing was changed, so nothing is pushed.")
		return nil, nil
	}
	files, err = s.changed(o.name, node, content)
	if err != nil {
		return nil, fmt.Errorf("what was edited is not pushed: %w; it is kept in %s: correct it and push with -f %s --against %s", err, file.Name(), file.Name(), node.Name)
	}
	return files, nil
}

// differences takes from a file what it has otherwise than a node runs with.
func (s *session) differences(ctx context.Context, client kubernetes.Interface, o pushOptions, files []pushedFile) ([]pushedFile, error) {
	node, err := s.runningNode(ctx, client, o.against)
	if err != nil {
		return nil, err
	}
	changed, err := s.changed(o.name, node, files[0].content)
	if err != nil || changed == nil {
		return nil, err
	}
	changed[0].name = files[0].name
	return append(changed, files[1:]...), nil
}

// A runningNode is one whose kubelet has told what it runs with.
type runningNode struct {
	nodeView
	runs  map[string]any
	shown map[string]any // without defaults and what belongs to the node
	left  []string       // the latter

	active  *pushedFile // what it was assigned; nil: its own file
	over    *layered    // where that is layers
	written []config.Layer
	beside  []pushedFile
}

// runningNode asks about a node to whose configuration a change is to be made.
func (s *session) runningNode(ctx context.Context, client kubernetes.Interface, name string) (*runningNode, error) {
	view, tree, err := s.runningConfig(ctx, client, name)
	if err != nil {
		return nil, err
	}
	n := &runningNode{nodeView: view, runs: tree}
	if n.shown, err = s.onlyChanged(view, tree); err != nil {
		return nil, err
	}
	n.left = withoutOwn(n.shown)
	if err := n.readActive(ctx, client); err != nil {
		return nil, fmt.Errorf("node %s runs %s, and what that says is not known: %w; push a file with -f, or fields with --set", view.Name, bounded.Line(nodev1.AssignmentOf(view.says.Config.Active).String()), err)
	}
	if n.active == nil || n.over != nil {
		return n, view.mayLayer()
	}
	return n, nil
}

func (n *runningNode) readActive(ctx context.Context, client kubernetes.Interface) error {
	active := nodev1.AssignmentOf(n.says.Config.Active)
	if active.IsLocal() {
		return nil
	}
	found, active, err := getConfigMap(ctx, client, active)
	if err != nil {
		return err
	}
	if !isVersion(found, n.says.Config.Active) {
		return errors.New("it was changed since")
	}
	payload := payloadOf(found)
	read, err := readDocument(payload, active.Key)
	if err != nil {
		return err
	}
	n.over = read.over
	if n.over != nil {
		layers, err := config.ReadLayers([]byte(payload[active.Key]))
		if err != nil {
			return err
		}
		n.written = layers.Layers
	}
	if payload, err = withoutBase(payload, active.Key); err != nil {
		return err
	}
	n.active = &pushedFile{active.Key, active.String(), []byte(payload[active.Key])}
	delete(payload, active.Key)
	for _, key := range sortedKeys(payload) {
		n.beside = append(n.beside, pushedFile{key, key, []byte(payload[key])})
	}
	return nil
}

// changed makes the configuration with what a person has changed of what a node runs with: a layer over its own file and over the layers
// that it runs; in a whole file that it runs the change is made. Nil when nothing was.
func (s *session) changed(name string, n *runningNode, content []byte) ([]pushedFile, error) {
	after, err := readDocument(map[string]string{defaultKey: string(content)}, defaultKey)
	if err != nil {
		return nil, err
	}
	if after.over != nil {
		return nil, errors.New("it is a configuration of layers, and was to be a KubeletConfiguration")
	}
	patch := patchFrom(config.Masked(n.runs), config.Masked(n.shown), after.tree)
	if len(patch) == 0 {
		s.note("Nothing is changed of what %s runs with, so nothing is pushed.", n.Name)
		return nil, nil
	}
	file := pushedFile{key: defaultKey, name: "the edited configuration"}
	switch {
	case n.active == nil:
		file.content, err = envelopeOf([]config.Layer{{Name: freeName(name, nil), From: "edit of " + n.Name, Patch: patch}})
	case n.over != nil:
		s.note("Node %s runs layers; they stay, and what was changed is laid over them.", n.Name)
		file.key = n.active.key
		file.content, err = envelopeOf(withPatch(n.written, name, n.Name, patch))
	default:
		s.note("Node %s runs a whole file, %s; what was changed is changed in it. For a layer instead, go back to the node's own file first, or push --set.", n.Name, n.active.name)
		file.key = n.active.key
		file.content, err = patchedWhole(n.active.content, patch)
	}
	return append([]pushedFile{file}, n.beside...), err
}

// withPatch lays a patch over layers. That of an earlier edit under the same name grows instead.
func withPatch(layers []config.Layer, name, node string, patch map[string]any) []config.Layer {
	layers = slices.Clone(layers)
	own := freeName(name, nil)
	if last := len(layers) - 1; layers[last].Name == own {
		layers[last].Patch = joined(layers[last].Patch, patch)
		return layers
	}
	return append(layers, config.Layer{Name: freeName(name, layers), From: "edit of " + node, Patch: patch})
}

// joined is one patch that does what two do. Nulls of both stay.
func joined(first, second map[string]any) map[string]any {
	result := map[string]any{}
	for name, value := range first {
		result[name] = value
	}
	for name, value := range second {
		below, isTree := value.(map[string]any)
		was, wasTree := result[name].(map[string]any)
		if isTree && wasTree {
			value = joined(was, below)
		}
		result[name] = value
	}
	return result
}

func patchedWhole(document []byte, patch map[string]any) ([]byte, error) {
	tree, err := config.Decode(document)
	if err != nil {
		return nil, err
	}
	config.MergePatch(tree, patch)
	text, err := yaml.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	return text, nil
}

// patchFrom is what makes after of what runs. A field that was shown and is gone is null; one that was not shown is as it was.
func patchFrom(runs, shown, after map[string]any) map[string]any {
	patch := map[string]any{}
	for name, value := range after {
		below, isTree := value.(map[string]any)
		running, runsTree := runs[name].(map[string]any)
		was, _ := shown[name].(map[string]any)
		if isTree && runsTree {
			if inner := patchFrom(running, was, below); len(inner) > 0 {
				patch[name] = inner
			}
		} else if !reflect.DeepEqual(value, runs[name]) && !same(value, runs[name]) {
			patch[name] = value
		}
	}
	for name := range shown {
		if _, stays := after[name]; !stays {
			patch[name] = nil
		}
	}
	return patch
}

// runEditor opens a file in $KUBE_EDITOR, $EDITOR, or what the system has, as kubectl edit does.
func (s *session) runEditor(file string) error {
	if err := editor.NewDefaultEditor([]string{"KUBE_EDITOR", "EDITOR"}).Launch(file); err != nil {
		return fmt.Errorf("%w; name another editor with KUBE_EDITOR", err)
	}
	return nil
}
