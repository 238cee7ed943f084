package plugin

import (
	"os"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
)

// What belongs to one node is neither pushed nor assigned to several.
func TestOwnValuesStayOnTheirNode(t *testing.T) {
	b := newBench(t, localNode("n1"), localNode("n2"), configMapOf("mine", someConfig+"providerID: aws:///i-1\n"))
	b.answers(t, nil)
	b.input.WriteString(someConfig + "providerID: aws:///i-1\n")
	code, _, stderr := b.run(t, "push", "workers", "-f", "-")
	if made := b.pushed(t, cmdutil.ConfigNamespace); code != 1 || len(made) != 1 { // the one that is there
		t.Errorf("push: exit code %d, %d ConfigMaps", code, len(made))
	}
	contains(t, stderr, `- is not pushed: providerID: "aws:///i-1" belongs to one node`, "leave it out")
	code, _, stderr = b.run(t, "assign", "-l", "pool=workers", "--config=mine", "--yes", "--wait=false")
	if code != 1 || b.assigned(t, "n1") != "" || b.assigned(t, "n2") != "" {
		t.Errorf("assign to two nodes: exit code %d", code)
	}
	contains(t, stderr, "ConfigMap kubelet-config/mine is not assigned to 2 nodes: providerID")
	b.do(t, "assign", "n1", "--config=mine", "--yes", "--wait=false")
}

// A hostile node's word becomes nobody's configuration: what is edited has no defaults and nothing of the node's own, only what a person
// changed goes in, and it is shown and asked.
func TestPushEditOfAHostileNode(t *testing.T) {
	for answer, pushed := range map[string]int{"y\n": 1, "n\n": 0, "": 0} {
		b := newBench(t, knowing(localNode("n1")))
		b.configz["maxPods"] = int64(20)
		b.configz["providerID"] = "aws:///i-1"
		b.configz["address"] = "10.0.0.7"
		b.configz["staticPodURL"] = "http://evil/\x1b[2J"
		b.configz["staticPodURLHeader"] = map[string]any{"X": []any{"<masked>"}}
		b.configz["authorization"] = map[string]any{"mode": "AlwaysAllow"}
		b.configz["authentication"] = map[string]any{"anonymous": map[string]any{"enabled": true}}
		b.factory.Edit = func(file string) error {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			for _, path := range []string{"providerID", "address", "staticPodURLHeader", "syncFrequency", "kubeAPIBurst"} {
				if strings.Contains(string(text), path) {
					t.Errorf("%s is there to edit:\n%s", path, text)
				}
			}
			return os.WriteFile(file, []byte(strings.Replace(string(text), "maxPods: 20", "maxPods: 42", 1)), 0o600)
		}
		b.input.WriteString(answer)
		code, _, stderr := b.run(t, "push", "workers", "--edit", "n1")
		if made := b.pushed(t, cmdutil.ConfigNamespace); len(made) != pushed || (code == 0) != (pushed == 1) {
			t.Errorf("answer %q: exit code %d, %d ConfigMaps", answer, code, len(made))
		}
		contains(t, stderr, "Left out, for it belongs to node n1 alone, or may be a secret: providerID, address, staticPodURL, staticPodURLHeader",
			"\n  maxPods: 42 (disrupts-pods)\n", "Push this as ConfigMap kubelet-config/workers-")
		if strings.Contains(stderr, "evil") || strings.Contains(stderr, "AlwaysAllow") {
			t.Errorf("what the node says goes in:\n%s", stderr)
		}
	}
}
