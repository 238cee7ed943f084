package plugin

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// dryBench has something for each command to do.
func dryBench(t *testing.T) (*bench, map[string][]string) {
	t.Helper()
	config, old := configMapOf("workers", someConfig), configMapOf("old", someConfig)
	elsewhere := config.DeepCopy()
	elsewhere.Namespace = "kube-system"
	refused := saying(assignedNode("n1", old), "kubelet-config/old/kubelet", "Refused", corev1.ConditionFalse, "", nil, nil)
	refused.Annotations["kubelet-supervisor.io/config-source"] = "kubelet-config/old/kubelet"
	refused.Annotations[view.RecordAnnotation] = `[{"source": "kubelet-config/workers/kubelet", "by": "alice", "outcome": "Active", "time": "2026-11-20T12:00:00Z"}, {"source": "kubelet-config/old/kubelet"}]`
	objects := append([]runtime.Object{refused, config, old, elsewhere, pushedOf("unused", someConfig)}, grantFor("gone", "n1")...)
	b := newBench(t, objects...)
	b.answers(t, nil)
	b.answersReview(func(string, string) bool { return false })
	return b, map[string][]string{
		"assign":   {"assign", "n1", "--config=kube-system/workers"},
		"push":     {"push", "pushed", "-f", inFile(t, "kubelet.yaml", someConfig)},
		"reset":    {"reset", "n1"},
		"retry":    {"retry", "n1"},
		"rollback": {"rollback", "n1"},
		"prune":    {"prune"},
	}
}

// A dry run asks nobody, and writes nothing: the client's sends nothing, the server's only what the API server does not keep.
func TestDryRuns(t *testing.T) {
	_, commands := dryBench(t)
	for _, name := range document.SortedKeys(commands) {
		for _, mode := range []string{"client", "server"} {
			t.Run(name+" "+mode, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b, commands := dryBench(t)
					stdout, stderr := b.do(t, append(commands[name], "--dry-run="+mode)...)
					if want := map[string]string{"client": " (dry run)\n", "server": " (server dry run)\n"}[mode]; !strings.Contains(stdout, want) || strings.Contains(stderr, "[y/N]") {
						t.Errorf("stdout has no %q, or something is asked:\n%s%s", want, stdout, stderr)
					}
					for _, action := range b.Actions() {
						if write, options := writes(action); write && (mode == "client" || !slices.Equal(options, []string{"All"})) {
							t.Errorf("it sends %s %s with dryRun %v", action.GetVerb(), action.GetResource().Resource, options)
						}
					}
				})
			})
		}
	}
}

// writes tells whether an action changes something, and its dryRun.
func writes(action clienttesting.Action) (bool, []string) {
	if strings.HasSuffix(action.GetResource().Resource, "reviews") {
		return false, nil
	}
	for _, field := range []string{"CreateOptions", "UpdateOptions", "PatchOptions", "DeleteOptions"} {
		if options := reflect.ValueOf(action).FieldByName(field); options.IsValid() {
			return true, options.FieldByName("DryRun").Interface().([]string)
		}
	}
	return false, nil
}

// What a dry run of the client prints with -o is the object as it would be.
func TestDryRunOutput(t *testing.T) {
	for name, want := range map[string][]string{
		"assign":   {"apiVersion: v1", "kind: Node", "kubelet-supervisor.io/config-source: kube-system/workers/kubelet", "name: n1"},
		"push":     {"apiVersion: v1", "immutable: true", "kind: ConfigMap", "name: pushed-"},
		"retry":    {"apiVersion: v1", "kind: Node", "kubelet-supervisor.io/retry: "},
		"rollback": {"kind: Node", "kubelet-supervisor.io/config-source: kubelet-config/workers/kubelet"},
		"reset":    {"apiVersion: v1", "kind: Node", "name: n1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, commands := dryBench(t)
				stdout, _ := b.do(t, append(commands[name], "--dry-run=client", "-o", "yaml")...)
				contains(t, stdout, want...)
				if name == "reset" && strings.Contains(stdout, "config-source") {
					t.Errorf("the assignment is there:\n%s", stdout)
				}
				object := map[string]string{"push": "configmap/pushed-"}[name]
				if stdout, _ = b.do(t, append(commands[name], "--dry-run=client", "-o", "name")...); !strings.HasPrefix(stdout, cmp.Or(object, "node/n1\n")) {
					t.Errorf("-o name gives %q", stdout)
				}
				kind := map[string]string{"push": "ConfigMap"}[name]
				if stdout, _ = b.do(t, append(commands[name], "--dry-run=client", "-o", "jsonpath={.kind}")...); stdout != cmp.Or(kind, "Node") {
					t.Errorf("-o jsonpath gives %q", stdout)
				}
			})
		})
	}
}

// What assign shows before it asks, of nodes that are not alike.
func TestPreviewTable(t *testing.T) {
	old, config := configMapOf("old", document.Header+"maxPods: 30\n"), configMapOf("workers", someConfig+"maxPodz: 1\nevictionHard: {memory.available: 1Gi}\n")
	b := newBench(t, saying(newNode("n1"), "kubelet-config/old/kubelet", "Active", corev1.ConditionTrue, "", old, old), localNode("n2"), localNode("n3"), newNode("n4"), old, config)
	b.configz["maxPods"] = int64(20)
	_, stderr := b.do(t, "assign", "n1", "n2", "n3", "n4", "--config=workers", "--dry-run=client")
	golden(t, "preview.txt", stderr)
}

func TestPruneTable(t *testing.T) {
	b := newBench(t, pruneObjects()...)
	b.input.WriteString("n\n")
	_, stdout, stderr := b.run(t, "prune")
	golden(t, "prune.txt", stdout+stderr)
	stdout, _ = b.do(t, "prune", "--dry-run=client")
	golden(t, "prune-dry-run.txt", stdout)
}

func TestHistoryForMachines(t *testing.T) {
	b, _ := dryBench(t)
	stdout, _ := b.do(t, "history", "n1", "-o", "yaml")
	golden(t, "history.yaml", stdout)
	if stdout, _ = b.do(t, "history", "n1", "-o", "jsonpath={.assignments[-1:].source}"); stdout != "kubelet-config/old/kubelet" {
		t.Errorf("jsonpath gives %q", stdout)
	}
}
