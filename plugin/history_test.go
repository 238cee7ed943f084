package plugin

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
)

// What was assigned with the plugin is gone back to, step by step; what a Node says of itself is not asked.
func TestRollback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := configMapOf("one", header+"maxPods: 1\n"), configMapOf("two", header+"maxPods: 2\n")
		b := newBench(t, localNode("n1"), one, two, configMapOf("forged", someConfig))
		b.answers(t, func(node *corev1.Node, assignment string) {
			config := map[string]*corev1.ConfigMap{"kubelet-config/one/kubelet": one, "kubelet-config/two/kubelet": two}[assignment]
			runsIt(config)(node, assignment)
		})
		b.do(t, "assign", "n1", "--config=one", "-y")
		b.do(t, "assign", "n1", "--config=two", "-y")
		b.do(t, "assign", "n1", "--config=two", "-y") // changes nothing, and is no entry

		// The node forges all that it can.
		node := b.node(t, "n1")
		saying(node, "kubelet-config/two/kubelet", "InTrial", corev1.ConditionTrue, "", two, configMapOf("forged", someConfig))
		node.Annotations["kubelet-supervisor.io/history"] = "kubelet-config/forged/kubelet"
		if _, err := b.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"kubelet-config/one/kubelet", "kubelet-config/two/kubelet", "kubelet-config/one/kubelet"} {
			b.do(t, "rollback", "n1", "-y")
			if got := b.assigned(t, "n1"); got != want {
				t.Errorf("assigned %q, want %q", got, want)
			}
		}
		b.do(t, "rollback", "n1", "-y", "--to=1")
		if got := b.assigned(t, "n1"); got != "" {
			t.Errorf("--to=1 assigned %q, want nothing: what was assigned at first", got)
		}
		stdout, _ := b.do(t, "history", "n1")
		golden(t, "history.txt", stdout)
	})
}

func TestRollbackRefuses(t *testing.T) {
	record := func(text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: configNamespace, Name: recordName("n1")}, Data: map[string]string{recordKey: text}}
	}
	for _, test := range []struct {
		name, record, to, want string
	}{
		{"nothing recorded", "", "", "nothing was assigned to node n1 with this plugin"},
		{"nothing older", "- {revision: 1, assignment: kubelet-config/workers/kubelet}", "", "nothing older than what is assigned is recorded"},
		{"a revision that is none", "- {revision: 1, assignment: local}", "7", "node n1 has no revision 7"},
		{"a ConfigMap that is gone", "- {revision: 1, assignment: kubelet-config/gone/kubelet}", "", "ConfigMap kubelet-config/gone does not exist"},
		{"a ConfigMap that was made anew", "- {revision: 1, assignment: kubelet-config/other/kubelet, uid: old}", "1", "made anew since revision 1"},
		{"what is no record", "a: [", "", "is no record of assignments"},
		{"a malformed entry", "- {revision: 1, assignment: nonsense}", "1", "revision 1 is malformed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := configMapOf("workers", someConfig)
			b := newBench(t, assignedNode("n1", config), config, configMapOf("other", someConfig))
			if test.record != "" {
				if _, err := b.CoreV1().ConfigMaps(configNamespace).Create(t.Context(), record(test.record), metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			code, _, stderr := b.run(t, "rollback", "n1", "--yes", "--to="+test.to)
			if code != 1 || b.assigned(t, "n1") != workersText {
				t.Errorf("exit code %d, assigned %q", code, b.assigned(t, "n1"))
			}
			contains(t, stderr, test.want)
		})
	}
}

// An assignment that somebody made otherwise is told of, and is no entry.
func TestHistoryOfOthers(t *testing.T) {
	config := configMapOf("workers", someConfig)
	node := assignedNode("n1", config)
	node.Annotations[configsync.ConfigSourceAnnotation] = "kubelet-config/by-hand/kubelet"
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: configNamespace, Name: recordName("n1")},
		Data: map[string]string{recordKey: "- {revision: 1, assignment: kubelet-config/workers/kubelet}"}}
	_, stderr := newBench(t, node, config, record).do(t, "history", "n1")
	contains(t, stderr, "is assigned kubelet-config/by-hand/kubelet now, and not by this plugin")
}
