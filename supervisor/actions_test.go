package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

func TestAConfigurationThatCannotBeLoaded(t *testing.T) {
	for name, test := range map[string]struct {
		payload string
		spoil   string // written over the checkpoint
		reason  string
		message string
	}{
		"empty":                     {"", "", "Refused", "is refused: "},
		"of another kind":           {"apiVersion: v1\nkind: Pod\n", "", "Refused", "is refused: "},
		"of a wrong type":           {fakenode.Configuration("mode: ok") + "maxPods: many\n", "", "Refused", "is refused: failed to load kubelet config file"},
		"its checkpoint is corrupt": {fakenode.Configuration("mode: ok"), fakenode.Configuration("mode: hang"), "InternalError", "its checkpoint cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			source := n.seed(store.Assigned, "a", test.payload)
			if test.spoil != "" {
				folder := filepath.Join(n.options.StateDir, "checkpoints", string(source.UID), source.ResourceVersion)
				if err := os.WriteFile(filepath.Join(folder, source.KubeletConfigKey), []byte(test.spoil), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := n.run()
			record := r.await("the verdict", func(record Record) bool { return record.Healthy && record.Condition.Reason == test.reason })
			if record.Runs != nil || record.Config.Error != decide.LoadError || !strings.Contains(record.Condition.Message, test.message) {
				t.Errorf("recorded %+v", record)
			}
			if got := n.entries("start"); len(got) != 1 || got[0].Config != n.local {
				t.Errorf("the kubelets were started with %+v", got)
			}
		})
	}
}

// With lastKnownGood broken as well, local is left.
func TestNothingOnDiskKeepsAKubeletFromStarting(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.seed(store.Assigned, "a", fakenode.Configuration("mode: ok"))
	n.seed(store.LastKnownGood, "b", fakenode.Configuration("mode: ok"))
	for _, file := range []string{"meta/assigned", "meta/last-known-good", "meta/trial", "meta/rejected", "meta/preflight"} {
		written(t, n.options.StateDir, file, "\x00 no YAML: [")
	}
	r := n.run()
	record := r.awaitHealthy()
	if record.Runs != nil || !strings.Contains(record.StateProblems, "assigned") || !strings.Contains(record.Condition.Message, ".corrupt-") {
		t.Errorf("recorded %+v", record)
	}
	aside, err := filepath.Glob(filepath.Join(n.options.StateDir, "meta", "*.corrupt-*"))
	if err != nil || len(aside) != 5 {
		t.Errorf("set aside: %q, %v", aside, err)
	}
}
