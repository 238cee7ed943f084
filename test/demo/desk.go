//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// commandPatience is far more than any command takes here. The longest waits for a pool, node by node.
const commandPatience = 4 * time.Minute

// prepare writes what the commands need: kubectl for this cluster, with the plugin; and the files that they name.
func (d *demo) prepare(ctx context.Context) error {
	if err := os.Mkdir(d.folder, 0o700); err != nil {
		return err
	}
	if err := errors.Join(d.writeKubectl(), d.writeConfigurations(), os.WriteFile(d.path("pool.yaml"), []byte(poolYAML+shortSettle), 0o600)); err != nil {
		return err
	}
	d.row("    ", "in another terminal, meanwhile: "+d.path("kubectl")+" get node n1 -o yaml")
	d.heading("Letting the nodes read these ConfigMaps, and starting kubelet-supervisor with a real kubelet")
	return d.run(ctx, permissions...)
}

func (d *demo) path(name string) string { return filepath.Join(d.folder, name) }

// beside is the path of a program that was built beside this one.
func beside(name string) (string, error) {
	own, err := os.Executable()
	return filepath.Join(filepath.Dir(own), name), err
}

// writeKubectl writes a kubectl for this cluster. Flags before a plugin's name kubectl does not take, so it has variables.
func (d *demo) writeKubectl() error {
	plugin, err := beside("kubectl-kubelet")
	if err != nil {
		return err
	}
	words := slices.DeleteFunc(d.cluster.KubectlArguments(), func(word string) bool {
		return strings.HasPrefix(word, "--kubeconfig=") || strings.HasPrefix(word, "--cache-dir=")
	})
	text := fmt.Sprintf("#!/bin/sh\nexport KUBECONFIG='%s' KUBECACHEDIR='%s' PATH='%s':\"$PATH\"\nexec '%s' \"$@\"\n",
		filepath.Join(d.cluster.Folder, "admin.kubeconfig"), filepath.Join(d.cluster.Folder, "kubectl-cache"), d.folder, strings.Join(words, "' '"))
	return errors.Join(os.Symlink(plugin, d.path("kubectl-kubelet")), os.WriteFile(d.path("kubectl"), []byte(text), 0o700))
}

// writeConfigurations writes the configurations of the story, each the node's own with a few other values.
func (d *demo) writeConfigurations() (err error) {
	for name, lines := range configurations {
		content := strings.Replace(d.cluster.KubeletConfig(), localLines, lines, 1)
		if !strings.Contains(content, lines) {
			err = errors.Join(err, fmt.Errorf("writing %s.yaml: the node's own configuration has no %q to replace", name, localLines))
		}
		err = errors.Join(err, os.WriteFile(d.path(name+".yaml"), []byte(content), 0o600))
	}
	return err
}

// run shows shell commands, runs them just as they are shown, and shows what they print.
func (d *demo) run(ctx context.Context, lines ...string) error {
	for _, line := range lines {
		if _, err := d.hear(ctx, line); err != nil {
			return err
		}
		d.changed = time.Now()
	}
	return nil
}

// hear is run, and gives what the command has printed.
func (d *demo) hear(ctx context.Context, line string) (string, error) {
	var heard bytes.Buffer
	shown := output{to: d.printer}
	both := io.MultiWriter(&shown, &heard)
	err := d.shell(ctx, line, both, both)
	shown.end()
	return heard.String(), err
}

// ask shows and runs a command, and gives what it answers instead of showing it.
func (d *demo) ask(ctx context.Context, line string) ([]byte, error) {
	var answer, failure bytes.Buffer
	if err := d.shell(ctx, line, &answer, &failure); err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(failure.String()))
	}
	return answer.Bytes(), nil
}

func (d *demo) shell(ctx context.Context, line string, stdout, stderr io.Writer) error {
	d.command(line)
	ctx, cancel := context.WithTimeout(ctx, commandPatience)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", line)
	command.Dir, command.Env = d.folder, append(os.Environ(), "PATH="+d.folder+":"+os.Getenv("PATH"))
	command.Stdout, command.Stderr = stdout, stderr
	// What bash has started ends with it: it may wait for a pool, for ever.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = time.Second
	if err := command.Run(); err != nil {
		return fmt.Errorf("running %s: %w", line, errors.Join(err, ctx.Err()))
	}
	return nil
}
