//go:build e2e

package e2e

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// status --watch tells every change in a line, until it is interrupted.
func TestPluginWatch(t *testing.T) {
	n := pluginNode(t)
	n.startedLocal(t, options{})
	command := n.pluginCommand(t, "status", "n1", "--watch")
	output, err := os.Create(t.TempDir() + "/output")
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	shows := func(what string) {
		t.Helper()
		await(t, "the watch shows "+what, func() error {
			text, err := os.ReadFile(output.Name())
			if err == nil && !strings.Contains(string(text), what) {
				err = errors.New(string(text))
			}
			return err
		})
	}
	shows("Local")
	config := n.putConfigMap(t, "watched", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 36))})
	n.assign(t, config.assignment("kubelet"))
	shows(config.Name)
	shows("InTrial")
	shows("Active")
	if err := command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("interrupted, it ends with %v", err)
	}
	text, _ := os.ReadFile(output.Name())
	t.Logf("\n%s", text)
}
