package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/kubernetes"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// editConfig opens an editor with the fields of a kubelet's configuration that differ from their defaults, and
// returns what the user changed: a default may change later, and a value of the node's own file belongs to that
// node. It returns nil if nothing was changed. If the text cannot be used, it is saved in a file.
func editConfig(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, o pushOptions) (files []document.File, err error) {
	node, err := readRunningNode(ctx, f, client, o.edit)
	if err != nil {
		return nil, err
	}
	if len(node.left) > 0 {
		f.Note("Left out, for it belongs to node %s alone, or may be a secret: %s", node.Name, strings.Join(node.left, ", "))
	}
	before, err := document.Encode(node.Name, kubeletconfig.Masked(node.shown))
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
	if err := f.Edit(file.Name()); err != nil {
		return nil, err
	}
	content, err := os.ReadFile(file.Name())
	if err != nil {
		return nil, fmt.Errorf("reading what was edited: %w", err)
	}
	if bytes.Equal(bytes.TrimSpace(before), bytes.TrimSpace(content)) {
		f.Note("Nothing was changed, so nothing is pushed.")
		return nil, nil
	}
	files, err = changedFiles(f, o.name, node, content)
	if err != nil {
		return nil, fmt.Errorf("what was edited is not pushed: %w; it is kept in %s: correct it and push with -f %s --against %s", err, file.Name(), file.Name(), node.Name)
	}
	return files, nil
}

// differences returns the fields of a file that differ from what a node runs with.
func differences(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, o pushOptions, files []document.File) ([]document.File, error) {
	node, err := readRunningNode(ctx, f, client, o.against)
	if err != nil {
		return nil, err
	}
	changed, err := changedFiles(f, o.name, node, files[0].Content)
	if err != nil || changed == nil {
		return nil, err
	}
	changed[0].Name = files[0].Name
	return append(changed, files[1:]...), nil
}

// A runningNode is a node with the running configuration of its kubelet.
type runningNode struct {
	view.Node
	runs  map[string]any
	shown map[string]any // without defaults and node-specific fields
	left  []string       // the node-specific fields

	active  *document.File    // the assigned configuration; nil for the node's own file
	over    *document.Layered // set if that consists of layers
	written []kubeletconfig.Layer
	others  []document.File
}

// readRunningNode reads a node whose configuration will be changed.
func readRunningNode(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, name string) (*runningNode, error) {
	view, tree, err := runningConfig(ctx, f, client, name)
	if err != nil {
		return nil, err
	}
	n := &runningNode{Node: view, runs: tree}
	if n.shown, err = onlyChanged(f, view, tree); err != nil {
		return nil, err
	}
	n.left = document.RemoveNodeSpecific(n.shown)
	if err := n.readActive(ctx, client); err != nil {
		return nil, fmt.Errorf("node %s runs %s, and what that says is not known: %w; push a file with -f, or fields with --set", view.Name, bounded.Line(nodev1.AssignmentOf(view.Says.Config.Active).String()), err)
	}
	if n.active == nil || n.over != nil {
		return n, view.MayLayer()
	}
	return n, nil
}

func (n *runningNode) readActive(ctx context.Context, client kubernetes.Interface) error {
	active := nodev1.AssignmentOf(n.Says.Config.Active)
	if active.IsLocal() {
		return nil
	}
	found, active, err := view.GetConfigMap(ctx, client, active)
	if err != nil {
		return err
	}
	if !view.IsVersion(found, n.Says.Config.Active) {
		return errors.New("it was changed since")
	}
	payload := document.Payload(found)
	read, err := document.Read(payload, active.Key)
	if err != nil {
		return err
	}
	n.over = read.Over
	if n.over != nil {
		layers, err := kubeletconfig.ReadLayers([]byte(payload[active.Key]))
		if err != nil {
			return err
		}
		n.written = layers.Layers
	}
	if payload, err = document.WithoutBase(payload, active.Key); err != nil {
		return err
	}
	n.active = &document.File{Key: active.Key, Name: active.String(), Content: []byte(payload[active.Key])}
	delete(payload, active.Key)
	for _, key := range document.SortedKeys(payload) {
		n.others = append(n.others, document.File{Key: key, Name: key, Content: []byte(payload[key])})
	}
	return nil
}

// changedFiles returns the configuration with the user's change. For a node that runs its own file or layers, the
// change becomes a layer over them; in a whole file the change is made in place. It returns nil if nothing was
// changed.
func changedFiles(f *cmdutil.Factory, name string, n *runningNode, content []byte) ([]document.File, error) {
	after, err := document.Read(map[string]string{document.DefaultKey: string(content)}, document.DefaultKey)
	if err != nil {
		return nil, err
	}
	if after.Over != nil {
		return nil, errors.New("it is a configuration of layers, and was to be a KubeletConfiguration")
	}
	patch := document.Difference(kubeletconfig.Masked(n.runs), kubeletconfig.Masked(n.shown), after.Tree)
	if len(patch) == 0 {
		f.Note("Nothing is changed of what %s runs with, so nothing is pushed.", n.Name)
		return nil, nil
	}
	file := document.File{Key: document.DefaultKey, Name: "the edited configuration"}
	switch {
	case n.active == nil:
		file.Content, err = document.EncodeLayers([]kubeletconfig.Layer{{Name: document.FreeName(name, nil), From: "edit of " + n.Name, Patch: patch}})
	case n.over != nil:
		f.Note("Node %s runs layers; they stay, and what was changed is laid over them.", n.Name)
		file.Key = n.active.Key
		file.Content, err = document.EncodeLayers(document.AddPatch(n.written, name, n.Name, patch))
	default:
		f.Note("Node %s runs a whole file, %s; what was changed is changed in it. For a layer instead, go back to the node's own file first, or push --set.", n.Name, n.active.Name)
		file.Key = n.active.Key
		file.Content, err = document.Patch(n.active.Content, patch)
	}
	return append([]document.File{file}, n.others...), err
}
