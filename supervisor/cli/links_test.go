//go:build linux

package cli

import (
	"os/exec"
	"strings"
	"testing"
)

// What runs on every node stays small: it links neither the kubelet's types, which cost 2 MiB of memory, nor what only people's machines have.
func TestLinksNoMoreThanItNeeds(t *testing.T) {
	output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, linked := range strings.Fields(string(output)) {
		for _, not := range []string{
			"k8s.io/kubelet", "k8s.io/component-base", "k8s.io/kubernetes", "k8s.io/client-go/kubernetes", "k8s.io/cli-runtime", "k8s.io/kubectl", "go.opentelemetry.io",
			"sigs.k8s.io/controller-runtime", "github.com/prometheus/client_golang", "github.com/kubelet-supervisor/kubelet-supervisor/fleet",
		} {
			if linked == not || strings.HasPrefix(linked, not+"/") {
				t.Errorf("it links %s", linked)
			}
		}
	}
}
