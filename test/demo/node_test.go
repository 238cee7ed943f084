//go:build linux

package main

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

func source212(pointer string) string { return version(pointer, good, "212") }

func version(pointer, name, resourceVersion string) string {
	return `"` + pointer + `":{"configMap":{"namespace":"kube-system","name":"` + name + `","uid":"u","resourceVersion":"` + resourceVersion + `","kubeletConfigKey":"kubelet"}}`
}

func nodeThatSays(observed, status string, condition corev1.ConditionStatus, reason, message string) view {
	annotations := map[string]string{nodev1.ConfigStatusAnnotation: status}
	if observed != "" {
		annotations[nodev1.ConfigObservedAnnotation] = observed
	}
	return viewOf(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: "Ready"}, {Type: "KubeletConfigOk", Status: condition, Reason: reason, Message: message}}}})
}

// Whatever differs from what a step wants keeps its "ok" away.
func TestOnlyWhatIsWantedIsSeen(t *testing.T) {
	local := want{condition: "True Local"}
	trial := want{condition: "True InTrial", assigned: good, active: good}
	edit := want{condition: "True InTrial", assigned: good, active: good, lastKnownGood: good, edited: true}
	failed := want{condition: "False Refused", assigned: bad, active: good, failure: "failed", message: "-1"}
	failure := "{" + version("assigned", bad, "213") + "," + source212("active") + `,"error":"failed"}`
	both := "{" + source212("assigned") + "," + source212("active") + "}"
	for _, row := range []struct {
		name string
		want want
		node view
		seen bool
	}{
		{"local", local, nodeThatSays("", "{}", "True", "Local", ""), true},
		{"local, no supervisor yet", local, viewOf(&corev1.Node{}), false},
		{"local, the old assignment still observed", local, nodeThatSays(source(good), "{}", "True", "Local", ""), false},
		{"local, a status that is not empty", local, nodeThatSays("", both, "True", "Local", ""), false},
		{"trial", trial, nodeThatSays(source(good), both, "True", "InTrial", ""), true},
		{"trial, other reason", trial, nodeThatSays(source(good), both, "True", "Active", ""), false},
		{"trial, other condition", trial, nodeThatSays(source(good), both, "Unknown", "InTrial", ""), false},
		{"trial, not active yet", trial, nodeThatSays(source(good), "{"+source212("assigned")+"}", "True", "InTrial", ""), false},
		{"trial, other assignment observed", trial, nodeThatSays(source(bad), both, "True", "InTrial", ""), false},
		{"trial, a stale error", trial, nodeThatSays(source(good), both[:len(both)-1]+`,"error":"failed"}`, "True", "InTrial", ""), false},
		{"trial, status cut", trial, nodeThatSays(source(good), both[:len(both)-1], "True", "InTrial", ""), false},
		{"edit", edit, nodeThatSays(source(good), "{"+version("assigned", good, "213")+","+version("active", good, "213")+","+source212("lastKnownGood")+"}", "True", "InTrial", ""), true},
		{"edit, same version", edit, nodeThatSays(source(good), both[:len(both)-1]+","+source212("lastKnownGood")+"}", "True", "InTrial", ""), false},
		{"refused", failed, nodeThatSays(source(bad), failure, "False", "Refused", "maxPods -1"), true},
		{"refused, without the kubelet's words", failed, nodeThatSays(source(bad), failure, "False", "Refused", "see the log"), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			if seen := row.want.seenIn(row.node); seen != row.seen {
				t.Errorf("seen: %v, want %v: %s", seen, row.seen, row.node)
			}
		})
	}
}

func TestStatusIsShownShortened(t *testing.T) {
	v := nodeThatSays(source(good), "{"+source212("assigned")+","+source212("active")+"}", "True", "InTrial", "")
	const want = `{"assigned":{"configMap":{"name":"my-node-config","resourceVersion":"212"}}, "active":{"configMap":{"name":"my-node-config","resourceVersion":"212"}}}`
	if got := v.rows()[1][1]; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestColourOnlyWhereItIsOn(t *testing.T) {
	for _, row := range []struct {
		colour bool
		want   string
	}{{false, "  ok  a\n  b c\n"}, {true, "\x1b[32m  ok  a\x1b[0m\n  b c\n"}} {
		var out bytes.Buffer
		p := &printer{to: &out, colour: row.colour}
		p.ok("a")
		p.row("  ", "b  c\n")
		if out.String() != row.want {
			t.Errorf("colour %v: got %q, want %q", row.colour, out.String(), row.want)
		}
	}
}

func TestPiecesBecomeLines(t *testing.T) {
	var out bytes.Buffer
	shown := output{to: &printer{to: &out}}
	for _, piece := range []string{"NODE", "   ACTIVE\nn1", "   local\n", "no end"} {
		_, _ = shown.Write([]byte(piece))
	}
	shown.end()
	if got, want := out.String(), "    NODE   ACTIVE\n    n1   local\n    no end\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
