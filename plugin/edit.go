package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/cmd/util/editor"
)

// editConfig lets a person edit what a kubelet runs with and is not its default: a default of today is nothing to keep for years. Nil when it
// was left as it is. What was written is kept in a file when it cannot be used.
func (s *session) editConfig(ctx context.Context, client kubernetes.Interface, node string) (content []byte, err error) {
	before, err := s.editable(ctx, client, node)
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
	if content, err = os.ReadFile(file.Name()); err != nil {
		return nil, fmt.Errorf("reading what was edited: %w", err)
	}
	if bytes.Equal(bytes.TrimSpace(before), bytes.TrimSpace(content)) {
		s.note("Nothing was changed, so nothing is pushed.")
		return nil, nil
	}
	if _, err := readDocument(map[string]string{defaultKey: string(content)}, defaultKey); err != nil {
		return nil, fmt.Errorf("what was edited is not pushed: %w; it is kept in %s: correct it and push with -f", err, file.Name())
	}
	return content, nil
}

// editable is what a kubelet runs with, without its defaults and without what belongs to this node.
func (s *session) editable(ctx context.Context, client kubernetes.Interface, name string) ([]byte, error) {
	node, tree, err := s.runningConfig(ctx, client, name)
	if err != nil {
		return nil, err
	}
	if tree, err = s.onlyChanged(node, tree); err != nil {
		return nil, err
	}
	if left := withoutOwn(tree); len(left) > 0 {
		s.note("Left out, for it belongs to node %s alone, or is masked: %s", node.Name, strings.Join(left, ", "))
	}
	return configYAML(node.Name, tree)
}

// runEditor opens a file in $KUBE_EDITOR, $EDITOR, or what the system has, as kubectl edit does.
func (s *session) runEditor(file string) error {
	if err := editor.NewDefaultEditor([]string{"KUBE_EDITOR", "EDITOR"}).Launch(file); err != nil {
		return fmt.Errorf("%w; name another editor with KUBE_EDITOR", err)
	}
	return nil
}
