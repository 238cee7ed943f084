package plugin

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

func statusNodes() []runtime.Object {
	config, old := configMapOf("workers-d5bf27f224", someConfig), configMapOf("workers-2842d6th54", someConfig)
	assigned := func(node *corev1.Node, assignment string) *corev1.Node {
		node.Annotations[nodev1.ConfigSourceAnnotation] = assignment
		return node
	}
	const text = "kubelet-config/workers-d5bf27f224/kubelet"
	refused := "using last-known-good (UID: \"u\"); kubelet-config/workers-d5bf27f224/kubelet is refused: maxPods (--max-pods) -1 must not be a negative number; correct the configuration"
	away := localNode("n6-away")
	away.Status.Conditions[0].Status = corev1.ConditionUnknown
	field := localNode("n7-field")
	field.Spec.ConfigSource = &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: "old-way", KubeletConfigKey: "kubelet"}}
	return []runtime.Object{
		localNode("n1-local"),
		assigned(saying(newNode("n2-good"), text, "Active", corev1.ConditionTrue, "using current", config, config), text),
		assigned(resaying(saying(newNode("n3-refused"), text, "Refused", corev1.ConditionFalse, refused, old, old), func(s *nodev1.Status) {
			s.Failure = &nodev1.Failure{Kind: nodev1.FailureRefused, Message: "maxPods (--max-pods) -1 must not be a negative number"}
		}), text),
		assigned(saying(newNode("n4-waits"), "", "Local", corev1.ConditionTrue, "using current (default)", nil, nil), text),
		newNode("n5-alone"),
		away,
		field,
		assigned(saying(newNode("n8-forger"), "no\x1b[2J/such", "Bad\x1b[31m", corev1.ConditionFalse, "a\nn9-fine  local  local", nil, nil), "no\x1b[2J/such"),
	}
}

func TestStatusTable(t *testing.T) {
	for file, arguments := range map[string][]string{
		"status.txt":      {"status"},
		"status-wide.txt": {"status", "-o", "wide"},
		"status-some.txt": {"status", "n3-refused", "node/n1-local"},
		"status-name.txt": {"status", "-o", "name", "-l", "pool=workers"},
	} {
		t.Run(file, func(t *testing.T) {
			stdout, _ := newBench(t, statusNodes()...).do(t, arguments...)
			golden(t, file, stdout)
		})
	}
}

// A field that a flag goes before has no effect, and nothing else says so.
func TestStatusTellsWhatIsShadowed(t *testing.T) {
	const text, shadowed = "kubelet-config/workers-d5bf27f224/kubelet", "Shadowed: maxPods (60) by --max-pods (20)"
	config := configMapOf("workers-d5bf27f224", someConfig)
	node := saying(newNode("n1"), text, "Active", corev1.ConditionTrue, `using current (UID: "u"); passed its trial; `+shadowed+"; LocalChangePending: x", config, config)
	node.Annotations[nodev1.ConfigSourceAnnotation] = text
	resaying(node, func(s *nodev1.Status) {
		s.Shadowed = []nodev1.ShadowedField{{Field: "maxPods", Value: "60", By: "--max-pods", Effective: "20"}}
	})
	for _, command := range []string{"status", "describe"} {
		stdout, _ := newBench(t, node).do(t, command, "n1")
		contains(t, stdout, shadowed)
		if command == "status" {
			contains(t, stdout, "Active; "+shadowed+"\n")
		}
	}
}

// Whoever may patch nodes/status can forge a condition; what a node says to programs it says itself.
func TestAForgedConditionCountsForNothing(t *testing.T) {
	config := configMapOf("workers", someConfig)
	good, bad := assignedNode("n1", config), assignedNode("n2", config)
	good.Status.Conditions[1].Status, good.Status.Conditions[1].Reason = corev1.ConditionFalse, nodev1.ReasonRejected
	resaying(bad, func(s *nodev1.Status) { s.Reason = nodev1.ReasonRejected })
	if v := view.NodeOf(good); !v.OK() || v.Outcome() != nodev1.ReasonActive {
		t.Errorf("all is well, and it counts as %v, %s", v.OK(), v.Outcome())
	}
	if v := view.NodeOf(bad); v.OK() || v.Outcome() != nodev1.ReasonRejected {
		t.Errorf("it is rejected, and counts as %v, %s", v.OK(), v.Outcome())
	}
}

// Why a node does not run what it is assigned, in a few words.
func TestWhy(t *testing.T) {
	for want, said := range map[string]nodev1.Status{
		"":             {Reason: nodev1.ReasonActive},
		"maxPods is X": {Reason: nodev1.ReasonRefused, Failure: &nodev1.Failure{Message: "maxPods is X"}},
		"waits for default/web (OutOfcpu), and 2 more": {Reason: nodev1.ReasonWouldDisrupt,
			Hold: &nodev1.Hold{Losses: []nodev1.Loss{{Pod: "default/web", Reason: "OutOfcpu"}}, More: 2, Known: true}},
		"waits for its turn until 2026-11-21T12:00:00Z": {Reason: nodev1.ReasonApplying, Change: &nodev1.Change{Due: noon}},
	} {
		v := view.NodeOf(resaying(localNode("n1"), func(s *nodev1.Status) { *s = said }))
		if got := v.Why(); got != want {
			t.Errorf("%s: %q, want %q", said.Reason, got, want)
		}
	}
}

func TestStatusForMachines(t *testing.T) {
	b := newBench(t, statusNodes()...)
	stdout, _ := b.do(t, "status", "n2-good", "-o", "json")
	var item struct {
		Assignment, Observed string
		Config               corev1.NodeConfigStatus
		Condition            corev1.NodeCondition
	}
	if err := json.Unmarshal([]byte(stdout), &item); err != nil {
		t.Fatalf("%v:\n%s", err, stdout)
	}
	if item.Assignment != item.Observed || item.Config.Active.ConfigMap.Name != "workers-d5bf27f224" || item.Condition.Reason != "Active" {
		t.Errorf("got %+v", item)
	}
	if stdout, _ = b.do(t, "status", "n2-good", "-o", "jsonpath={.status.reason}"); stdout != "Active" {
		t.Errorf("jsonpath gives %q", stdout)
	}
	if stdout, _ = b.do(t, "status", "n2-good", "-o", "jsonpath={.condition.reason}"); stdout != "Active" {
		t.Errorf("jsonpath gives %q", stdout)
	}
}

func TestStatusRefuses(t *testing.T) {
	for _, test := range []struct {
		name      string
		arguments []string
		want      string
	}{
		{"a node that is not there", []string{"status", "nobody"}, `there is no node "nobody"; see kubectl get nodes`},
		{"names and labels", []string{"status", "n1-local", "-l", "a=b"}, "not both"},
		{"labels that are none", []string{"status", "-l", "a=b=c"}, "-l a=b=c"},
		{"labels that no node has", []string{"status", "-l", "a=b"}, "no node matches -l a=b"},
		{"a format that is none", []string{"status", "-o", "table"}, `output format "table"`},
		{"to watch for a code", []string{"status", "-w", "--not-ok"}, "--watch has no end"},
		{"to watch in JSON", []string{"status", "-w", "-o", "json"}, "--watch prints lines"},
		{"a command that is none", []string{"stauts"}, "unknown command"},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, _, stderr := newBench(t, statusNodes()...).run(t, test.arguments...)
			if code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			contains(t, stderr, test.want)
		})
	}
}
