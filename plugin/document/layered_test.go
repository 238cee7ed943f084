package document

import (
	"maps"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/internal/plugintest"
)

func TestLayeredChanges(t *testing.T) {
	defaults, _, _, err := Defaults("v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name           string
		wanted, active string // "" for local
		running        map[string]any
		want           string
	}{
		{"a field", "- {name: a, patch: {maxPods: 42}}", "", nil, "maxPods: 110 → 42"},
		{"the rest stays", "- {name: a, patch: {maxPods: 42}}", "", map[string]any{"resolvConf": "/x"}, "maxPods: 110 → 42"},
		{"the same", "- {name: a, patch: {maxPods: 110, syncFrequency: 60s}}", "", nil, ""},
		{"the later wins", "- {name: a, patch: {maxPods: 42}}\n- {name: b, patch: {maxPods: 43}}", "", nil, "maxPods: 110 → 43"},
		{"a null", "- {name: a, patch: {maxPods: null}}", "", map[string]any{"maxPods": int64(20)}, "maxPods: 20 → 110 default unlaid"},
		{"a null of a default", "- {name: a, patch: {maxPods: null}}", "", nil, ""},
		{"a key of a map", "- {name: a, patch: {kubeReserved: {cpu: \"1\"}}}", "", map[string]any{"kubeReserved": map[string]any{"memory": "1Gi"}}, `kubeReserved.cpu: <unset> → "1"`},
		{"a null of a key", "- {name: a, patch: {kubeReserved: {memory: null}}}", "", map[string]any{"kubeReserved": map[string]any{"memory": "1Gi"}}, `kubeReserved.memory: "1Gi" → <unset>`},
		{"evictionHard over the defaults", "- {name: a, patch: {evictionHard: {memory.available: 1Gi, nodefs.available: 10%}}}", "", nil,
			"evictionHard.imagefs.available: \"15%\" → <unset>\nevictionHard.imagefs.inodesFree: \"5%\" → <unset>\n" +
				"evictionHard.memory.available: \"100Mi\" → \"1Gi\"\nevictionHard.nodefs.inodesFree: \"5%\" → <unset>"},
		{"evictionHard with the defaults", "- {name: a, patch: {evictionHard: {memory.available: 1Gi}, mergeDefaultEvictionSettings: true}}", "", nil,
			"evictionHard.memory.available: \"100Mi\" → \"1Gi\"\nmergeDefaultEvictionSettings: false → true"},
		{"evictionHard over the node's own", "- {name: a, patch: {evictionHard: {memory.available: 1Gi}}}", "", map[string]any{"evictionHard": map[string]any{"pid.available": "1%"}},
			`evictionHard.memory.available: <unset> → "1Gi"`},
		{"other fields of evictionHard", "- {name: a, patch: {maxPods: 42, mergeDefaultEvictionSettings: true}}", "", nil, "maxPods: 110 → 42\nmergeDefaultEvictionSettings: false → true"},
		{"a gate", "- {name: a, patch: {featureGates: {A: true, B: null}}}", "", map[string]any{"featureGates": map[string]any{"B": true, "C": true}}, "featureGates.A: <unset> → true\nfeatureGates.B: true → <unset>"},
		{"back to the node's own", "- {name: a, patch: {maxPods: 42}}", "- {name: a, patch: {podsPerCore: 7, maxPods: 30}}", map[string]any{"maxPods": int64(30), "podsPerCore": int64(7)},
			"maxPods: 30 → 42\npodsPerCore: 7 → own"},
		{"back, by a key", "- {name: a, patch: {kubeReserved: {cpu: \"1\"}}}", "- {name: a, patch: {kubeReserved: {cpu: \"1\", memory: 1Gi}}}", map[string]any{"kubeReserved": map[string]any{"cpu": "1", "memory": "1Gi"}},
			`kubeReserved.memory: "1Gi" → own`},
		{"back from a null", "- {name: a, patch: {maxPods: 110}}", "- {name: a, patch: {registerWithTaints: null}}", nil, "registerWithTaints: <unset> → own"},
		{"nothing goes back below a null", "- {name: a, patch: {kubeReserved: null}}", "- {name: a, patch: {kubeReserved: {cpu: \"1\"}}}", map[string]any{"kubeReserved": map[string]any{"cpu": "1"}},
			`kubeReserved.cpu: "1" → <unset>`},
		{"a flag wins over the layers that run", "- {name: a, patch: {maxPods: 42}}", "- {name: a, patch: {maxPods: 30}}", map[string]any{"maxPods": int64(20)}, "maxPods: 20 → 42 kept"},
		{"of what they do not set nobody knows", "- {name: a, patch: {maxPods: 42}}", "- {name: a, patch: {podsPerCore: 0}}", map[string]any{"maxPods": int64(20)}, "maxPods: 20 → 42\npodsPerCore: <unset> → own"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := Comparison{Running: maps.Clone(defaults), Defaults: defaults}
			maps.Copy(c.Running, test.running)
			wanted, err := Read(map[string]string{"kubelet": plugintest.LayersText(test.wanted)}, "kubelet")
			if err != nil {
				t.Fatal(err)
			}
			c.Wanted, c.Over = wanted.Tree, wanted.Over
			if test.active != "" {
				active, err := Read(map[string]string{"kubelet": plugintest.LayersText(test.active)}, "kubelet")
				if err != nil {
					t.Fatal(err)
				}
				c.Active, c.ActiveOver = active.Tree, active.Over
			}
			var lines []string
			for _, one := range c.Changes() {
				line := one.Path + ": " + Show(one.Path, one.From) + " → " + Show(one.Path, one.to)
				if one.toOwn {
					line = one.Path + ": " + Show(one.Path, one.From) + " → own"
				}
				for word, is := range map[string]bool{" default unlaid": one.byDefault && one.unlaid && !one.toOwn, " kept": one.Kept} {
					if is {
						line += word
					}
				}
				lines = append(lines, line)
			}
			if got := strings.Join(lines, "\n"); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}
