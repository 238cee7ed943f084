//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// From a cluster in which nothing is prepared to a changed kubelet are three commands, as docs/reference/plugin.md has them, with y for
// each question.
func TestPluginThreeCommands(t *testing.T) {
	n := pluginNode(t)
	for _, file := range []string{"nodes", "operator", "viewer", "admission-policy"} { // all that install makes but the namespace, whose end nobody would wait for here
		if _, err := n.Kubectl(t.Context(), "delete", "-f", "../../deploy/manifests/"+file+".yaml"); err != nil {
			t.Fatal(err)
		}
	}
	s := n.startedLocal(t, options{})
	desk := n.deskFor(t)
	may := func() bool {
		return n.allowed(t, "system:node:n1", []string{"system:nodes"}, "get", "configmaps", "kubelet-config", "any")
	}
	await(t, "nodes may read nothing", func() error {
		if may() {
			return fmt.Errorf("they may")
		}
		return nil
	})

	wantIn(t, n.shell(t, desk, "kubectl kubelet install"), "Install these? [y/N] y", "validatingadmissionpolicy.admissionregistration.k8s.io/kubelet-supervisor-assignment installed")
	pushed := n.shell(t, desk, `KUBE_EDITOR="sed -i 's/^maxPods: .*/maxPods: 37/'" kubectl kubelet push workers --edit n1`)
	next := regexp.MustCompile(`Assign it: kubectl kubelet assign NODE (--config \S+)`).FindStringSubmatch(pushed)
	if next == nil {
		t.Fatal("push does not say how to go on")
	}
	wantIn(t, n.shell(t, desk, "kubectl kubelet assign n1 "+next[1]), "maxPods: 20 → 37", "[y/N] y", "node/n1 assigned", "n1: runs kubelet-config/workers-")
	if got := s.configz(t)["maxPods"]; got != 37.0 {
		t.Errorf("the kubelet runs with maxPods %v, want 37", got)
	}
	if !may() {
		t.Error("install does not let nodes read configurations")
	}
	awaitPolicy(t, n)

	// kubectl completes what belongs to the plugin.
	wantIn(t, n.shell(t, desk, `kubectl __complete kubelet ""`), "assign\t", "status\t")
	wantIn(t, n.shell(t, desk, `kubectl __complete kubelet describe ""`), cluster.NodeName+"\n")
}

// describe tells what is left of a trial, from the words of the real supervisor.
func TestPluginTrial(t *testing.T) {
	n := pluginNode(t)
	n.startedLocal(t, options{Flags: []string{"--trial-period=10m"}})
	config := n.putConfigMap(t, "tried", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 38))})
	n.assign(t, config.assignment("kubelet"))
	n.awaitReason(t, config.assignment("kubelet"), "InTrial")
	text := first(n.plugin(t, "describe", "n1"))
	if !regexp.MustCompile(`(?m)^Trial: +at most (9m|10m)\S* of health are left, of 10m0s$`).MatchString(text) {
		t.Errorf("describe says\n%s", text)
	}
}

// Whatever --dry-run is given to, the real API server keeps none of it.
func TestPluginDryRun(t *testing.T) {
	n := pluginNode(t)
	n.startedLocal(t, options{})
	file := filepath.Join(t.TempDir(), "kubelet.yaml")
	if err := os.WriteFile(file, []byte(n.kubeletConfig(with("maxPods", 39))), 0o600); err != nil {
		t.Fatal(err)
	}
	one := pushedName(t, first(n.plugin(t, "push", "dry", "-f", file, "-n", "kube-system")))
	n.plugin(t, "assign", "n1", "--config", "kube-system/"+one, "--yes", "--until=good")
	unused := pushedName(t, first(n.plugin(t, "push", "unused", "-f", file)))
	all := func() string {
		text, err := n.Kubectl(t.Context(), "get", "configmaps,roles,rolebindings", "-A", "-o", `jsonpath={range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`)
		if err != nil {
			t.Fatal(err)
		}
		v, err := n.view()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(text, v.Node.Annotations)
	}
	before := all()
	for _, mode := range []string{"client", "server"} {
		for _, line := range []string{
			"push another -f " + file, "assign n1 --config kubelet-config/" + unused, "assign n1 --config kube-system/" + one, "reset n1", "retry n1", "rollback n1 --to local",
			"prune --min-age=0", "install",
		} {
			stdout, _ := n.plugin(t, append(strings.Fields(line), "--dry-run="+mode)...)
			wantIn(t, stdout, map[string]string{"client": "(dry run)", "server": "(server dry run)"}[mode])
		}
	}
	if after := all(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
