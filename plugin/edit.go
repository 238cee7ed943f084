package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"k8s.io/client-go/kubernetes"
)

// editConfig lets a person edit what a kubelet runs with. Nil when it was left as it is. What was written is kept in a file when
// it cannot be used.
func (s *session) editConfig(ctx context.Context, client kubernetes.Interface, node string) (content []byte, err error) {
	before, err := s.config(ctx, client, node, false, "yaml")
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
	if err := s.edit(ctx, file.Name()); err != nil {
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

// runEditor opens a file in $KUBE_EDITOR, $EDITOR or vi. The variable may hold arguments, as kubectl has it.
func (s *session) runEditor(ctx context.Context, file string) error {
	editor := firstOf(os.Getenv("KUBE_EDITOR"), os.Getenv("EDITOR"), "vi")
	command := exec.CommandContext(ctx, "/bin/sh", "-c", editor+` "$1"`, "sh", file)
	command.Stdin, command.Stdout, command.Stderr = s.In, s.ErrOut, s.ErrOut
	if command.Stderr == os.Stderr {
		command.Stdout = os.Stdout // a terminal, for an editor
	}
	if err := command.Run(); err != nil {
		return fmt.Errorf("running the editor %q: %w; name another with KUBE_EDITOR", editor, err)
	}
	return nil
}
