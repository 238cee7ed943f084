//go:build linux

package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// same is what page and demo call by names of their own: nodes, and how much memory is too much.
var same = []struct {
	from *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`\b(workers-\d+|n\d)( n\d)*\b`), "NODE"},
	{regexp.MustCompile(`"\d+Ti"`), `"LOTS"`},
}

func named(text string) string {
	for _, each := range same {
		text = each.from.ReplaceAllString(text, each.to)
	}
	return text
}

// Somebody who has seen the demo can type it from the page, and who has read the page has seen all that the demo shows.
func TestTheCommandsAreThoseOfThePage(t *testing.T) {
	text, err := os.ReadFile("../../docs/howto/pools.md")
	if err != nil {
		t.Fatal(err)
	}
	page := named(string(text))
	lines := append([]string{installCommand, labelCommand, statusCommand, deadlyCommand(1), statusCommand + " || true", controllerCommand}, credentialsCommands...)
	lines = append(append(lines, applyCommands...), undoCommands...)
	for _, line := range lines {
		if !strings.Contains(page, "\n$ "+named(line)+"\n") {
			t.Errorf("the page has no command\n$ %s", line)
		}
	}
	if !strings.Contains(page, "\n# pool.yaml\n"+poolYAML+"```\n") {
		t.Errorf("the page has another pool than\n%s", poolYAML)
	}
}

func threeNodes() (nodes []corev1.Node) {
	for i := range 3 {
		nodes = append(nodes, corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i+1), UID: types.UID(fmt.Sprintf("%08d-0000", i)), Labels: map[string]string{"kubelet-supervisor.io/pool-of": "workers"},
				Annotations: map[string]string{nodev1.ConfigStatusAnnotation: "{}", nodev1.StatusAnnotation: `{"features":["layers"]}`, nodev1.ConfigSourceAnnotation: "kubelet-config/pool-workers-0123456789/kubelet",
					rollout.MarkAnnotation: `{"pool":"workers","assignment":"kubelet-config/pool-workers-0123456789/kubelet","attempt":1}`, nodev1.RetryAnnotation: "workers/0123456789/1"}},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
	}
	return nodes
}

// Each node can be made the canary.
func TestTheCanaryIsChosen(t *testing.T) {
	nodes := threeNodes()
	for _, n := range nodes {
		tebibytes, err := tebibytesFor(n.Name, nodes)
		if err != nil {
			t.Errorf("%s: %v", n.Name, err)
			continue
		}
		if first, err := canaryOf(deadlyLayer(tebibytes), nodes); err != nil || first != n.Name {
			t.Errorf("with %dTi the canary is %q, want %s (%v)", tebibytes, first, n.Name, err)
		}
	}
	if _, err := tebibytesFor("n4", nodes); err == nil {
		t.Error("n4 is the canary, and is not there")
	}
	if _, err := tebibytesFor("n1", nil); err == nil {
		t.Error("n1 is the canary of no nodes")
	}
}

// Whatever is not as the story wants it keeps its "ok" away.
func TestOnlyWhatIsWishedForIsSeen(t *testing.T) {
	const first, second = "kubelet-config/pool-workers-0123456789/kubelet", "kubelet-config/pool-workers-abcdefabcd/kubelet"
	good := rollout.Node{Name: "n2", Source: first, Mark: rollout.Mark{Pool: "workers", Assignment: first, Attempt: 1}, Observed: first, Active: first, Good: first, Reason: "Active"}
	canary := rollout.Node{Name: "n1", Source: second, Mark: rollout.Mark{Pool: "workers", Assignment: second, Attempt: 1}, Observed: second, Active: first, Good: first, Reason: "Rejected"}
	with := func(n rollout.Node, change func(*rollout.Node)) rollout.Node { change(&n); return n }
	spared := sparedBut("n1", first)
	for _, row := range []struct {
		name string
		is   wish
		node rollout.Node
		seen bool
	}{
		{"proven", proven, good, true},
		{"on trial", proven, with(good, func(n *rollout.Node) { n.Reason, n.Good = "InTrial", "" }), false},
		{"not observed", proven, with(good, func(n *rollout.Node) { n.Observed = second }), false},
		{"assigned by a person", proven, with(good, func(n *rollout.Node) { n.Mark = rollout.Mark{} }), false},
		{"spared", spared, good, true},
		{"reached", spared, with(good, func(n *rollout.Node) { n.Source, n.Mark.Assignment = second, second }), false},
		{"canary", spared, canary, true},
		{"canary that was not tried", spared, with(good, func(n *rollout.Node) { n.Name = "n1" }), false},
		{"canary without a verdict", spared, with(canary, func(n *rollout.Node) { n.Reason = "RolledBack" }), false},
		{"canary that still runs it", spared, with(canary, func(n *rollout.Node) { n.Active = second }), false},
		{"local", local, rollout.Node{Layered: true, Reason: "Local"}, true},
		{"too old", local, rollout.Node{Reason: "Local"}, false},
		{"silent", local, rollout.Node{}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			if wrong := row.is(row.node); (wrong == nil) != row.seen {
				t.Errorf("seen: %v (%v), want %v", wrong == nil, wrong, row.seen)
			}
		})
	}
}
