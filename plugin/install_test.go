package plugin

import (
	"strings"
	"testing"
)

// What is installed is what packaging has, each after its namespace.
func TestInstallDryRun(t *testing.T) {
	stdout, _ := newBench(t).do(t, "install", "--dry-run=client")
	golden(t, "install.txt", stdout)
}

// With the controller come the kind, the policies and roles, and at the end the program.
func TestInstallController(t *testing.T) {
	b := newBench(t)
	stdout, _ := b.do(t, "install", "--controller", "--image=registry.example/c:v1", "--dry-run=client")
	golden(t, "install-controller.txt", stdout)
	all := stdout
	stdout, _ = b.do(t, "install", "--controller", "--image=none", "--dry-run=client")
	if !strings.HasPrefix(all, stdout) || strings.Contains(stdout, "deployment") || !strings.Contains(stdout, "customresourcedefinition") {
		t.Errorf("without the program it installs\n%s", stdout)
	}
	stdout, _ = b.do(t, "install", "--controller", "--image=registry.example/c:v1", "--dry-run=client", "-o", "yaml")
	if strings.Count(stdout, "image: registry.example/c:v1\n") != 1 || strings.Contains(stdout, "image: kubelet-supervisor-controller") {
		t.Errorf("the image is not in\n%s", stdout)
	}
	for _, arguments := range [][]string{{"--controller"}, {"--image=registry.example/c:v1"}, {"--controller", "--image=a b"}} {
		code, stdout, stderr := b.run(t, append([]string{"install", "--dry-run=client"}, arguments...)...)
		if code != 1 || stdout != "" {
			t.Errorf("%v: exit code %d, %s", arguments, code, stdout)
		}
		contains(t, stderr, "--image")
	}
}
