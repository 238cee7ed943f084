package plugin

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// changedNode is a node that says of itself that it has changed.
func changedNode(change nodev1.Change) *corev1.Node {
	config := configMapOf("workers", someConfig)
	node := saying(assignedNode("n1", config), workersText, "Active", corev1.ConditionTrue, "using current (UID: \"u\")", config, config)
	return resaying(node, func(s *nodev1.Status) { s.Change = &change })
}

func aChange() nodev1.Change {
	return nodev1.Change{From: "local", To: workersText, ResourceVersion: "7", Began: noon.Add(-5 * time.Minute), Ended: noon.Add(-5*time.Minute + 700*time.Millisecond), Outcome: "Active",
		Phases: []nodev1.ChangePhase{{Name: "download", Took: "40ms"}, {Name: "preflight", Took: "320ms"}, {Name: "stop", Took: "50ms"}, {Name: "start", Took: "280ms"}, {Name: "report", Took: "10ms"}}}
}

func encoded(c nodev1.Change) string { return nodev1.Status{Change: &c}.Encode() }

func TestDescribeDrawsTheLastChange(t *testing.T) {
	b := newBench(t, changedNode(aChange()))
	stdout, _ := b.do(t, "describe", "n1")
	golden(t, "describe-changed.txt", stdout)
	stdout, _ = b.do(t, "describe", "n1", "-o", "json")
	golden(t, "describe-changed.json", stdout)
}

func TestALastChangeThatIsNotToBeTrusted(t *testing.T) {
	ahead, soon, waits := aChange(), aChange(), aChange()
	ahead.Began = noon.Add(365 * 24 * time.Hour)
	ahead.Ended = ahead.Began
	soon.Began = noon.Add(30 * time.Second)
	waits.Ended, waits.Outcome, waits.Phases, waits.Phase = time.Time{}, "WouldDisrupt", nil, "wait"
	for name, row := range map[string]struct {
		change nodev1.Change
		want   []string
	}{
		"a clock that is a year ahead": {ahead, []string{"Last change:", "began 20", "by a clock of the node that is ahead of this one", "download 40ms"}},
		"a clock that is a bit ahead":  {soon, []string{"Last change:", ", 0s ago", "download 40ms"}},
		"one that waits":               {waits, []string{": WouldDisrupt", "5m ago", "wait ..."}},
		"no times":                     {nodev1.Change{From: "local", To: "x", Phases: []nodev1.ChangePhase{{Name: "stop", Took: "-3s"}}}, []string{"local -> x", "it does not say when", "stop ?"}},
		"nothing":                      {nodev1.Change{}, []string{"Last change:", "it does not say when"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, changedNode(row.change))
			stdout, _ := b.do(t, "describe", "n1")
			contains(t, stdout, append([]string{"KubeletConfigOk:   True Active"}, row.want...)...)
			stdout, _ = b.do(t, "describe", "n1", "-o", "json")
			if !json.Valid([]byte(stdout)) || len(stdout) > 10_000 {
				t.Errorf("-o json says %.2000s", stdout)
			}
		})
	}
}

func FuzzLastChangeOfANode(f *testing.F) {
	f.Add(encoded(aChange()))
	f.Add(`{"change":{"from":"\u001b[31m","began":"9999-12-31T23:59:59Z","phases":[{"name":"a\tb","took":"9999999h"}],"phase":"x"}}`)
	f.Add(`{"change":{"began":"0001-01-01T00:00:00.1Z"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		node := changedNode(aChange())
		node.Annotations[nodev1.StatusAnnotation] = text
		v := view.NodeOf(node)
		for _, line := range v.ChangeText(noon) {
			if len(line) > 4000 || strings.ContainsAny(line, "\n\t\x1b") {
				t.Errorf("%q is told as %q", text, line)
			}
		}
		object, err := v.Unstructured()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(object); err != nil {
			t.Errorf("%q cannot be written: %v", text, err)
		}
	})
}
