package plugin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// The newest ten are kept, and fewer where they are long.
func TestRecordIsBounded(t *testing.T) {
	for _, test := range []struct {
		name, source string
		most         int
	}{
		{"short", "kubelet-config/c%d/kubelet", view.RecordEntries},
		{"long", "kubelet-config/c%d" + strings.Repeat("x", 240) + "/" + strings.Repeat("k", 250) + "@" + strings.Repeat("u", 250), 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			node := newNode("n1")
			node.Annotations = map[string]string{}
			var source string
			for i := range 25 {
				source = fmt.Sprintf(test.source, i)
				record, err := view.NodeOf(node).RecordWith(view.Entry{Source: source, Time: noon, By: strings.Repeat("<\x1bé", 500)})
				if err != nil {
					t.Fatal(err)
				}
				node.Annotations[nodev1.ConfigSourceAnnotation], node.Annotations[view.RecordAnnotation] = source, record
			}
			text := node.Annotations[view.RecordAnnotation]
			entries, err := view.NodeOf(node).Record()
			if err != nil || len(text) > view.RecordBytes || len(entries) > test.most || len(entries) < 2 {
				t.Errorf("%d entries in %d bytes, %v", len(entries), len(text), err)
			}
			if last := entries[len(entries)-1]; last.Source != source || last.Outcome != "" || strings.ContainsRune(last.By, '\x1b') {
				t.Errorf("the last is %+v", last)
			}
			if entries[0].Outcome != view.OutcomeUnknown {
				t.Errorf("what nobody answered became %q", entries[0].Outcome)
			}
		})
	}
}

// What became of an assignment is told by the node alone, and by what it said of this one.
func TestOutcome(t *testing.T) {
	config, other := configMapOf("workers", someConfig), configMapOf("other", someConfig)
	assigned := func(node *corev1.Node, text string) *corev1.Node {
		node.Annotations[nodev1.ConfigSourceAnnotation] = text
		return node
	}
	says := func(observed, reason string, active, good *corev1.ConfigMap) *corev1.Node {
		return assigned(saying(newNode("n1"), observed, reason, corev1.ConditionUnknown, "", active, good), workersText)
	}
	pinned := workersText + "@" + string(config.UID)
	for _, test := range []struct {
		name string
		node *corev1.Node
		want string
	}{
		{"it is good", says(workersText, "Active", config, config), "Active"},
		{"it is tried", says(workersText, "InTrial", config, other), "InTrial"},
		{"an edit of a good one is tried", says(workersText, "InTrial", config, config), "InTrial"},
		{"it is refused", says(workersText, "Refused", other, other), "Refused"},
		{"it is rolled back", says(workersText, "RolledBack", other, other), "RolledBack"},
		{"it is rejected", says(workersText, "Rejected", other, other), "Rejected"},
		{"good, and stopped", says(workersText, "Stopped", config, config), "Active"},
		{"tried, and stopped", says(workersText, "Stopped", config, nil), "InTrial"},
		{"held", says(workersText, "WouldDisrupt", other, other), "Unknown"},
		{"not got", says(workersText, "SyncFailed", nil, nil), "Unknown"},
		{"it spoke of another", says("kubelet-config/other/kubelet", "Active", other, other), "Unknown"},
		{"pinned, and it runs", assigned(saying(newNode("n1"), pinned, "Stopped", corev1.ConditionUnknown, "", config, nil), pinned), "InTrial"},
		{"pinned, and another of the name runs", assigned(saying(newNode("n1"), workersText+"@x", "Stopped", corev1.ConditionUnknown, "", config, nil), workersText+"@x"), "Unknown"},
		{"local", localNode("n1"), "Local"},
		{"no supervisor", newNode("n1"), "Unknown"},
		{"malformed", assigned(localNode("n1"), "nonsense"), "Unknown"},
	} {
		if got := view.NodeOf(test.node).Outcome(); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// Whatever stands in the annotation: reading it ends, and what was read can be shown, and written, and is then read as it is.
func FuzzRecord(f *testing.F) {
	for _, text := range []string{
		"", "null", "[]", "{}", "[null]", `[{"source":"local"}]`, `[{"source":"kubelet-config/a/kubelet@u","time":"2026-11-21T12:00:00Z","by":"alice","outcome":"Active"}]`,
		`[{"source":"local","time":"9999-12-31T23:59:59-23:59"}]`, `[{"source":"local","time":"0000-01-01T00:00:00+23:59"}]`, `[{"source":"local","by":"\u001b[31m\nforged\u202e"}]`,
		`[{"source":1}]`, `[{"source":"nonsense"}]`, strings.Repeat("[", 70000), `[` + strings.Repeat(`{"source":"local"},`, 3000) + `{"source":"local"}]`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := view.DecodeRecord(text)
		if err != nil {
			return
		}
		for _, e := range entries {
			if _, err := nodev1.ParseAssignment(e.Source); err != nil || bounded.Line(e.By) != e.By || bounded.Line(e.Outcome) != e.Outcome || utf8.RuneCountInString(e.By) > view.ByLimit {
				t.Errorf("%+v is not fit to be shown", e)
			}
		}
		if len(entries) > view.RecordEntries {
			t.Errorf("%d entries", len(entries))
		}
		written, err := view.EncodeRecord(entries)
		if err != nil {
			t.Fatalf("%+v cannot be written: %v", entries, err)
		}
		if len(written) > view.RecordBytes && len(entries) > 1 && strings.Count(written, `"source"`) > 1 {
			t.Errorf("%d bytes", len(written))
		}
		if !json.Valid([]byte(written)) {
			t.Fatalf("%s is no JSON", written)
		}
		again, err := view.DecodeRecord(written)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(entries[len(entries)-len(again):], again); diff != "" {
			t.Errorf("read again it is another (-before +after):\n%s", diff)
		}
		node := newNode("n1")
		node.Annotations = map[string]string{view.RecordAnnotation: text}
		if _, err := view.NodeOf(node).RecordWith(view.Entry{Source: nodev1.Local, Time: noon}); err != nil {
			t.Error(err)
		}
	})
}
