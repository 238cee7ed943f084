//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// What a change would cost is told before it is made: on the node by the kubelet itself, and by the plugin from what the API tells.
func TestImpact(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{})
	k := n.bareKubelet(t) // for its pods alone
	for _, name := range []string{"be1", "be2", "be3", "be4"} {
		k.putYounger(t, name)
	}
	t.Cleanup(func() { k.removePods(t) })
	k.allRun(t, 4)
	const none = "none of 4 running pods would be killed at the restart"
	const lost = "2 of 4 running pods would be killed at the restart: default/be3 (OutOfpods), default/be4 (OutOfpods)"
	files := map[int]string{}
	for _, pods := range []int{2, 30, 40} {
		files[pods] = filepath.Join(s.Folder, fmt.Sprintf("pods-%d.yaml", pods))
		writeFile(t, files[pods], n.kubeletConfig(with("maxPods", pods)))
	}
	onNode := func(pods int, flags ...string) func() (string, int) {
		return func() (string, int) {
			words := append(append([]string{"check", "--impact", "--state-dir=" + s.StateDir, "--run-dir=" + s.RunDir}, flags...), files[pods], "--")
			stdout, stderr, code := s.run(t, append(words, n.kubeletCommandLine(s)...)...)
			return stdout + stderr, code
		}
	}
	byPlugin := func(words ...string) func() (string, int) {
		return func() (string, int) {
			stdout, stderr, code := n.runPlugin(t, pluginRun{}, words...)
			return stdout + stderr, code
		}
	}
	check := func(pods int) func() (string, int) { return byPlugin("check", cluster.NodeName, "-f", files[pods]) }

	awaitAnswer(t, onNode(30), 0, "the local configuration runs now; "+none)
	awaitAnswer(t, onNode(2), 4, "the local configuration runs now; "+lost)
	awaitAnswer(t, onNode(2, "--node-name=absent"), 3, "what would happen to running pods is not known", "reading Node absent")
	awaitAnswer(t, check(30), 0, cluster.NodeName+": "+none)
	awaitAnswer(t, check(2), 3, cluster.NodeName+": "+lost+"; unless a kubelet flag or a drop-in file of the node sets maxPods")

	thirty := n.putConfigMap(t, "thirty-pods", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 30))})
	n.assign(t, thirty.assignment("kubelet"))
	n.awaitReason(t, thirty.assignment("kubelet"), "Active")
	awaitAnswer(t, onNode(2), 4, "/kubelet (UID ", " runs now; "+lost)
	awaitAnswer(t, onNode(40), 0, " runs now; "+none)
	awaitAnswer(t, check(2), 4, cluster.NodeName+": "+lost)
	awaitAnswer(t, check(40), 0, cluster.NodeName+": "+none)
	two := n.putConfigMap(t, "two-pods", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 2))})
	config := "--config=" + two.assignment("kubelet")
	awaitAnswer(t, byPlugin("check", cluster.NodeName, config), 4, cluster.NodeName+": "+lost)
	awaitAnswer(t, byPlugin("diff", cluster.NodeName, config), 1, "maxPods: 30 → 2", "\n  "+lost+"\n")
	awaitAnswer(t, byPlugin("assign", cluster.NodeName, config, "--dry-run=client"), 0, "maxPods: 30 → 2", "\n  "+lost+"\n")
	if now := k.allRun(t, 4); len(now) != 4 {
		t.Errorf("pods were touched: %v", now)
	}
	n.unassign(t)
	n.awaitReason(t, "", "Local")
}

// awaitAnswer asks until the Node shows what its kubelet runs with: before that, what would happen is not known.
func awaitAnswer(t *testing.T, ask func() (string, int), code int, parts ...string) {
	t.Helper()
	await(t, fmt.Sprintf("code %d", code), func() error {
		text, got := ask()
		rest := text
		for _, part := range parts {
			_, after, is := strings.Cut(rest, part)
			if got != code || !is {
				return fmt.Errorf("code %d, want %d with %q in\n%s", got, code, part, text)
			}
			rest = after
		}
		return nil
	})
}
