package plugin

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/status"
)

// changedNode is a node that says of itself that it has changed.
func changedNode(text string) *corev1.Node {
	config := configMapOf("workers", someConfig)
	node := saying(assignedNode("n1", config), workersText, "Active", corev1.ConditionTrue, "using current (UID: \"u\")", config, config)
	node.Annotations[status.LastChangeAnnotation] = text
	return node
}

func aChange() status.LastChange {
	return status.LastChange{From: "local", To: workersText, ResourceVersion: "7", Began: noon.Add(-5 * time.Minute), Ended: noon.Add(-5*time.Minute + 700*time.Millisecond), Outcome: "Active",
		Phases: []status.ChangePhase{{Name: "download", Took: "40ms"}, {Name: "preflight", Took: "320ms"}, {Name: "stop", Took: "50ms"}, {Name: "start", Took: "280ms"}, {Name: "report", Took: "10ms"}}}
}

func TestDescribeDrawsTheLastChange(t *testing.T) {
	b := newBench(t, changedNode(aChange().Encode()))
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
		text string
		want []string
	}{
		"a clock that is a year ahead": {ahead.Encode(), []string{"Last change:", "began 20", "by a clock of the node that is ahead of this one", "download 40ms"}},
		"a clock that is a bit ahead":  {soon.Encode(), []string{"Last change:", ", 0s ago", "download 40ms"}},
		"one that waits":               {waits.Encode(), []string{": WouldDisrupt", "5m ago", "wait ..."}},
		"no times":                     {`{"from":"local","to":"x","phases":[{"name":"stop","took":"-3s"}]}`, []string{"local -> x", "it does not say when", "stop ?"}},
		"nothing":                      {`{}`, []string{"Last change:", "it does not say when"}},
		"huge":                         {strings.Repeat("{", 1<<20), []string{"annotation kubelet-supervisor.io/last-change cannot be read: it has 1048576 bytes"}},
		"of other types":               {`{"phases":{"stop":1}}`, []string{"annotation kubelet-supervisor.io/last-change cannot be read: it does not decode"}},
		"not even an object":           {`7`, []string{"cannot be read"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, changedNode(row.text))
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
	f.Add(aChange().Encode())
	f.Add(`{"from":"\u001b[31m","began":"9999-12-31T23:59:59Z","phases":[{"name":"a\tb","took":"9999999h"}],"phase":"x"}`)
	f.Add(`{"began":"0001-01-01T00:00:00.1Z"}`)
	f.Fuzz(func(t *testing.T, text string) {
		v := viewOf(changedNode(text))
		for _, line := range (&session{now: func() time.Time { return noon }}).changeText(v) {
			if len(line) > 4000 || strings.ContainsAny(line, "\n\t\x1b") {
				t.Errorf("%q is told as %q", text, line)
			}
		}
		object, err := v.machine()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(object); err != nil {
			t.Errorf("%q cannot be written: %v", text, err)
		}
	})
}
