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

// Before Kubernetes 1.30 each policy that is missing is named once, with what it would have limited.
func TestInstallNamesWhatItLeavesOut(t *testing.T) {
	objects, err := installOptions{controller: true, image: noImage}.objects()
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for _, object := range objects {
		why := notInstalled(object)
		switch object.GetKind() {
		case "ValidatingAdmissionPolicy":
			contains(t, why, "Kubernetes 1.30 and later have", "so "+object.GetName()+" is not installed: ")
			limits := withoutPolicy[object.GetName()]
			if limits == "" || said[limits] {
				t.Errorf("%s: %s", object.GetName(), why)
			}
			said[limits] = true
		case "ValidatingAdmissionPolicyBinding":
			if why != "" {
				t.Errorf("a binding is named, too: %s", why)
			}
		default:
			contains(t, why, "has no "+object.GetKind()+" of "+object.GetAPIVersion())
		}
	}
	if len(said) != len(withoutPolicy) {
		t.Errorf("%d policies are named, and there are %d", len(said), len(withoutPolicy))
	}
}
