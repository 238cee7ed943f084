package document

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/internal/plugintest"
)

func TestChanges(t *testing.T) {
	defaults, _, _, err := Defaults("v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	running := func(changes map[string]any) map[string]any {
		tree := maps.Clone(defaults)
		maps.Copy(tree, changes)
		return tree
	}
	for _, test := range []struct {
		name, config string
		running      map[string]any
		active       map[string]any
		want         string
	}{
		{"nothing", "", running(nil), nil, ""},
		{"a field", "maxPods: 42", running(nil), nil, "maxPods: 110 → 42"},
		{"the same in other words", "syncFrequency: 60s\nmaxPods: 110", running(nil), nil, ""},
		{"what is zero is as what is absent", "podsPerCore: 0\nstaticPodPath: ''", running(nil), nil, ""},
		{"a field within", "authentication: {anonymous: {enabled: true}}", running(nil), nil, "authentication.anonymous.enabled: false → true"},
		{"back to the default", "", running(map[string]any{"maxPods": int64(42)}), nil, "maxPods: 42 → 110 default"},
		{"a map is set as a whole", "evictionHard: {memory.available: 1Gi}", running(map[string]any{"evictionHard": map[string]any{"memory.available": "1Gi", "nodefs.available": "10%"}}), nil,
			`evictionHard.nodefs.available: "10%" → <unset>`},
		{"a map that is merged with the defaults", "evictionHard: {memory.available: 1Gi}\nmergeDefaultEvictionSettings: true", running(nil), nil,
			"evictionHard.memory.available: \"100Mi\" → \"1Gi\"\nmergeDefaultEvictionSettings: false → true"},
		{"a default that follows another field", "nodeStatusUpdateFrequency: 2s", running(map[string]any{"nodeStatusUpdateFrequency": "2s", "nodeStatusReportFrequency": "2s"}), nil, ""},
		{"another such", "maxParallelImagePulls: 3", running(nil), nil, "maxParallelImagePulls: <unset> → 3\nserializeImagePulls: true → false default"},
		{"only gates that are named", "featureGates: {A: true, B: false}", running(map[string]any{"featureGates": map[string]any{"B": false, "C": true}}), nil, "featureGates.A: <unset> → true"},
		{"unknown", "maxPodz: 4", running(nil), nil, "maxPodz: <unset> → 4"},
		{"a flag wins", "maxPods: 42", running(map[string]any{"maxPods": int64(20)}), map[string]any{"maxPods": int64(30)}, "maxPods: 20 → 42 kept"},
		{"a flag wins over what the active one does not name", "maxPods: 42", running(map[string]any{"maxPods": int64(20)}), map[string]any{}, "maxPods: 20 → 42 kept"},
		{"a flag stays where neither names the field", "", running(map[string]any{"maxPods": int64(20)}), map[string]any{}, ""},
		{"what the active one set is no flag's", "maxPods: 42", running(map[string]any{"maxPods": int64(20)}), map[string]any{"maxPods": int64(20)}, "maxPods: 20 → 42"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := Read(map[string]string{"kubelet": Header + test.config}, "kubelet")
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, c := range (Comparison{Wanted: d.Tree, Running: test.running, Active: test.active, Defaults: defaults}).Changes() {
				line := c.Path + ": " + Show(c.Path, c.From) + " → " + Show(c.Path, c.to)
				if c.byDefault {
					line += " default"
				}
				if c.Kept {
					line += " kept"
				}
				lines = append(lines, line)
			}
			if got := strings.Join(lines, "\n"); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// A field that the node's kubelet does not know yet, or no more, is told as ignored.
func TestChangesThatTheKubeletIgnores(t *testing.T) {
	wanted := map[string]any{"podLogsDir": "/logs", "logging": map[string]any{"sanitization": true}, "maxPods": int64(42)}
	for kubelet, want := range map[int][]string{29: {"logging.sanitization", "podLogsDir"}, 30: {"logging.sanitization"}, 23: {"podLogsDir"}, 0: {"logging.sanitization"}} {
		var ignored []string
		for _, c := range (Comparison{Wanted: wanted, Running: map[string]any{}, Kubelet: kubelet}).Changes() {
			if strings.HasPrefix(c.Consequence(), "ignored: the field is ") {
				ignored = append(ignored, c.Path)
			}
		}
		if !slices.Equal(ignored, want) {
			t.Errorf("1.%d ignores %v, want %v", kubelet, ignored, want)
		}
	}
}

func TestChangesForPeople(t *testing.T) {
	var text bytes.Buffer
	WriteChanges(&text, []Change{
		{Path: "maxPods", From: int64(110), to: int64(42)},
		{Path: "syncFrequency", From: "1m0s", to: "2m0s", Kept: true},
		{Path: "evictionHard.memory.available", From: "100Mi", byDefault: true},
		{Path: "authentication.anonymous.enabled", From: false, to: true},
		{Path: "podLogsDir", to: "/logs", ignored: "is newer than kubelet 1.29: it came with 1.30"},
		{Path: "cgroupRoot", to: "/pods"},
		{Path: "kubeletz\x1b[2J", to: "a\nb"},
	})
	plugintest.Golden(t, "changes.txt", text.String())
}

func TestDefaultsOf(t *testing.T) {
	for _, test := range []struct {
		kubelet, version string
		exact            bool
	}{
		{"v1.36.3", "1.36", true}, {"v1.36.0-eks-1", "1.36", true}, {"1.37+", "1.36", false}, {"v1.40.1", "1.36", false},
		{"v1.30.2", "1.24", false}, {"v1.24.17", "1.24", true}, {"v1.18.0", "1.24", false}, {"", "1.24", false}, {"x", "1.24", false},
	} {
		tree, version, exact, err := Defaults(test.kubelet)
		if err != nil || version != test.version || exact != test.exact || tree["maxPods"] != int64(110) {
			t.Errorf("%q: got %s, %v, maxPods %v, %v; want %s, %v", test.kubelet, version, exact, tree["maxPods"], err, test.version, test.exact)
		}
	}
}

func TestReadDocument(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"empty", "", `key "kubelet" is empty`},
		{"no YAML", "a: [", "does not decode"},
		{"no kind", "apiVersion: kubelet.config.k8s.io/v1beta1", "has no kind"},
		{"a value of another type", Header + "maxPods: many", "maxPods"},
		{"a duration that is none", Header + "syncFrequency: often", "syncFrequency"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Read(map[string]string{"kubelet": test.text}, "kubelet")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
