package plugin

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// becomes lets nodes answer each ConfigMap with a reason.
func (b *bench) becomes(t *testing.T, reasons map[*corev1.ConfigMap]string) {
	good := map[string]*corev1.ConfigMap{} // by node
	b.answers(t, func(node *corev1.Node, assignment string) {
		for config, reason := range reasons {
			if assignment != "kubelet-config/"+config.Name+"/kubelet" {
				continue
			}
			if reason == "Active" {
				good[node.Name] = config
				saying(node, assignment, reason, corev1.ConditionTrue, "using current", config, config)
			} else {
				saying(node, assignment, reason, corev1.ConditionFalse, "using last-known-good; it is bad", good[node.Name], good[node.Name])
			}
			return
		}
		saying(node, assignment, "Local", corev1.ConditionTrue, "using current (default)", nil, nil)
	})
}

// From a bad configuration after a bad one the way back is to the last good one.
func TestRollbackToTheLastGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, bad, worse := configMapOf("good", document.Header+"maxPods: 1\n"), configMapOf("bad", document.Header+"maxPods: 2\n"), configMapOf("worse", document.Header+"maxPods: 3\n")
		b := newBench(t, localNode("n1"), good, bad, worse)
		b.becomes(t, map[*corev1.ConfigMap]string{good: "Active", bad: "Refused", worse: "Rejected"})
		b.do(t, "assign", "n1", "--config=good", "-y")
		b.run(t, "assign", "n1", "--config=bad", "-y")
		b.run(t, "assign", "n1", "--config=worse", "-y")
		_, stderr := b.do(t, "rollback", "n1", "-y")
		contains(t, stderr, "n1: back to revision 2, of 2026-11-21T12:00:00Z: kubelet-config/good/kubelet")
		if got := b.assigned(t, "n1"); got != "kubelet-config/good/kubelet" {
			t.Errorf("assigned %q", got)
		}
		stdout, _ := b.do(t, "history", "n1")
		golden(t, "history.txt", stdout)

		// Once more: what was local before is all that is left, for the others are known to be bad.
		b.do(t, "rollback", "n1", "-y")
		if got := b.assigned(t, "n1"); got != "" {
			t.Errorf("assigned %q, want nothing", got)
		}
		b.run(t, "rollback", "n1", "-y", "--to=3") // asked for by its number: done, and refused again
		if got := b.assigned(t, "n1"); got != "kubelet-config/bad/kubelet" {
			t.Errorf("--to=3 assigned %q", got)
		}
	})
}

// What the command itself saw fail is known to be bad, whatever was assigned by hand after it.
func TestRollbackOverAnAssignmentByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, bad, byHand := configMapOf("good", document.Header+"maxPods: 1\n"), configMapOf("bad", document.Header+"maxPods: 2\n"), configMapOf("by-hand", document.Header+"maxPods: 3\n")
		b := newBench(t, localNode("n1"), good, bad, byHand)
		b.becomes(t, map[*corev1.ConfigMap]string{good: "Active", bad: "Refused"})
		b.do(t, "assign", "n1", "--config=good", "-y")
		b.run(t, "assign", "n1", "--config=bad", "-y")
		node := b.node(t, "n1")
		node.Annotations[nodev1.ConfigSourceAnnotation] = "kubelet-config/by-hand/kubelet"
		saying(node, "kubelet-config/by-hand/kubelet", "Rejected", corev1.ConditionFalse, "", good, good)
		if _, err := b.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		b.do(t, "rollback", "n1", "-y")
		if got := b.assigned(t, "n1"); got != "kubelet-config/good/kubelet" {
			t.Errorf("assigned %q", got)
		}
	})
}

// The node writes its own status while the command writes what became of the assignment.
func TestAFailureIsRecordedInSpiteOfAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := configMapOf("bad", document.Header+"maxPods: 2\n")
		b := newBench(t, localNode("n1"), bad)
		b.becomes(t, map[*corev1.ConfigMap]string{bad: "Refused"})
		conflicts := 0
		b.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
			patch := string(action.(clienttesting.PatchAction).GetPatch())
			if conflicts == 2 || !strings.Contains(patch, `"outcome\":\"Refused`) {
				return false, nil, nil
			}
			conflicts++
			return true, nil, apierrors.NewConflict(corev1.Resource("nodes"), "n1", errors.New("the object has been modified"))
		})
		b.run(t, "assign", "n1", "--config=bad", "-y")
		if record := b.node(t, "n1").Annotations[view.RecordAnnotation]; conflicts != 2 || !strings.Contains(record, `"outcome":"Refused"`) {
			t.Errorf("%d conflicts, recorded %s", conflicts, record)
		}
	})
}

// What is known to be good is gone back to, not what was replaced before its node spoke of it.
func TestPreviousIsGood(t *testing.T) {
	entries := func(pairs ...string) (entries []view.Entry) {
		for i := 0; i < len(pairs); i += 2 {
			entries = append(entries, view.Entry{Source: "kubelet-config/" + pairs[i] + "/kubelet", Outcome: pairs[i+1]})
		}
		return entries
	}
	for _, row := range []struct {
		name     string
		assigned string
		good     *corev1.ConfigMap // the node's last known good
		entries  []view.Entry
		want     int
	}{
		{"the newest good one", "c", nil, entries("a", "Active", "b", "Active", "c", ""), 2},
		{"not the one that is unproven", "c", nil, entries("a", "Active", "b", "Unknown", "c", ""), 1},
		{"one that ran on trial", "c", nil, entries("a", "Active", "b", "InTrial", "c", ""), 2},
		{"what the node says is good", "c", configMapOf("b", ""), entries("a", "Active", "b", "Unknown", "c", ""), 2},
		{"unproven, for want of a good one", "c", nil, entries("a", "Refused", "b", "Unknown", "c", ""), 2},
		{"not what was found bad later", "c", nil, entries("a", "Unknown", "b", "Active", "b", "Rejected", "c", ""), 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			node := localNode("n1")
			node.Annotations[nodev1.ConfigSourceAnnotation] = "kubelet-config/" + row.assigned + "/kubelet"
			saying(node, "kubelet-config/"+row.assigned+"/kubelet", "Rejected", corev1.ConditionFalse, "", row.good, row.good)
			if got, err := previous(view.NodeOf(node), row.entries); got != row.want || err != nil {
				t.Errorf("revision %d, %v, want %d", got, err, row.want)
			}
		})
	}
}

// Many nodes go back, each to its own.
func TestRollbackOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, bad := configMapOf("one", document.Header+"maxPods: 1\n"), configMapOf("two", document.Header+"maxPods: 2\n"), configMapOf("bad", document.Header+"maxPods: 3\n")
		b := newBench(t, localNode("n1"), localNode("n2"), localNode("n3"), localNode("n4"), one, two, bad)
		b.becomes(t, map[*corev1.ConfigMap]string{one: "Active", two: "Active", bad: "Rejected"})
		b.do(t, "assign", "n1", "n2", "--config=one", "-y")
		b.do(t, "assign", "n3", "--config=two", "-y")
		for _, node := range []string{"n1", "n2", "n3"} {
			b.run(t, "assign", node, "--config=bad", "-y")
		}
		b.input.WriteString("y\n")
		code, _, stderr := b.run(t, "rollback", "-l", "pool=workers")
		if code != 1 { // n4 has nothing to go back to
			t.Errorf("exit code %d", code)
		}
		contains(t, stderr, "left as it is: nothing was assigned to node n4", "n1, n2, with kubelet-config/one/kubelet:", "n3, with kubelet-config/two/kubelet:", "Roll back 3 nodes? [y/N]",
			"error: nothing was assigned to node n4")
		for node, want := range map[string]string{"n1": "kubelet-config/one/kubelet", "n2": "kubelet-config/one/kubelet", "n3": "kubelet-config/two/kubelet", "n4": ""} {
			if got := b.assigned(t, node); got != want {
				t.Errorf("%s is assigned %q, want %q", node, got, want)
			}
		}
		if code, _, stderr = b.run(t, "rollback", "n1", "n2", "--to=1", "-y"); code != 1 || !strings.Contains(stderr, "is a revision of one node's history") {
			t.Errorf("a revision of two nodes: exit code %d, %s", code, stderr)
		}
	})
}

func TestRollbackRefuses(t *testing.T) {
	for _, test := range []struct {
		name, record, to, want string
	}{
		{"nothing recorded", "", "", "nothing was assigned to node n1 with this plugin"},
		{"nothing older", `[{"source": "kubelet-config/workers/kubelet"}]`, "", "no other assignment is recorded that was not refused or rejected"},
		{"a revision that is none", `[{"source": "local"}]`, "7", "node n1 has no revision 7"},
		{"revision 0", `[{"source": "local"}]`, "0", "node n1 has no revision 0"},
		{"a ConfigMap that is gone", `[{"source": "kubelet-config/gone/kubelet"}]`, "", "ConfigMap kubelet-config/gone does not exist"},
		{"a ConfigMap that was made anew", `[{"source": "kubelet-config/other/kubelet@old"}]`, "1", "it was made again"},
		{"what is no record", "a: [", "", "is no record of assignments"},
		{"a malformed entry is none", `[{"source": "nonsense"}]`, "1", "node n1 has no revision 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := configMapOf("workers", someConfig)
			node := assignedNode("n1", config)
			if test.record != "" {
				node.Annotations[view.RecordAnnotation] = test.record
			}
			b := newBench(t, node, config, configMapOf("other", someConfig))
			code, _, stderr := b.run(t, "rollback", "n1", "--yes", "--to="+test.to)
			if code != 1 || b.assigned(t, "n1") != workersText {
				t.Errorf("exit code %d, assigned %q", code, b.assigned(t, "n1"))
			}
			contains(t, stderr, test.want)
		})
	}
}

// An assignment that somebody made otherwise is told of, and gets its entry with the next.
func TestHistoryOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, byHand := configMapOf("workers", someConfig), configMapOf("by-hand", document.Header+"maxPods: 7\n")
		node := saying(newNode("n1"), "kubelet-config/by-hand/kubelet", "Active", corev1.ConditionTrue, "", byHand, byHand)
		node.Annotations[nodev1.ConfigSourceAnnotation] = "kubelet-config/by-hand/kubelet"
		node.Annotations[view.RecordAnnotation] = `[{"source": "kubelet-config/workers/kubelet"}]`
		b := newBench(t, node, config, byHand)
		b.answers(t, runsIt(config))
		_, stderr := b.do(t, "history", "n1")
		contains(t, stderr, "is assigned kubelet-config/by-hand/kubelet now, and not by this plugin")
		b.do(t, "assign", "n1", "--config=workers", "-y")
		if got, want := b.node(t, "n1").Annotations[view.RecordAnnotation],
			`[{"source":"kubelet-config/workers/kubelet"},{"source":"kubelet-config/by-hand/kubelet","outcome":"Active"},{"source":"kubelet-config/workers/kubelet","time":"2026-11-21T12:00:00Z"}]`; got != want {
			t.Errorf("the record is\n%s, want\n%s", got, want)
		}
	})
}

// Assignment and record are one patch, and it is for the Node as it was read.
func TestAssignmentAndRecordAreOnePatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := configMapOf("workers", someConfig)
		node := localNode("n1")
		node.ResourceVersion = "42"
		b := newBench(t, node, config)
		b.answers(t, runsIt(config))
		b.do(t, "assign", "n1", "--config=workers", "-y")
		var patches []string
		for _, action := range b.Actions() {
			if write, dry := writes(action); write && len(dry) == 0 {
				patch, is := action.(interface{ GetPatch() []byte })
				if !is {
					t.Fatalf("it sends %s %s", action.GetVerb(), action.GetResource().Resource)
				}
				patches = append(patches, string(patch.GetPatch()))
			}
		}
		if len(patches) != 1 {
			t.Fatalf("it sends %d writes: %v", len(patches), patches)
		}
		contains(t, patches[0], `config-source":"kubelet-config/workers/kubelet"`)
		contains(t, patches[0], `"resourceVersion":"42"`)
		contains(t, patches[0], view.RecordAnnotation)
		if found, err := b.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{}); err != nil || len(found.Items) != 1 {
			t.Errorf("%d ConfigMaps, %v", len(found.Items), err)
		}
	})
}
