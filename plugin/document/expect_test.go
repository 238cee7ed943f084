package document

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
)

// What the kubelet would run with, where flags and drop-in files may be in the way: every way that may be, and why there are several.
func TestExpect(t *testing.T) {
	defaults, _, _, err := Defaults("v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	hard := map[string]any{"memory.available": "1Gi"}
	both := map[string]any{"memory.available": "1Gi", "nodefs.available": "10%"}
	const none, pods = "maxPods 110 evictionHard -", "evictionHard -"
	for _, test := range []struct {
		name                    string
		wanted, running, active map[string]any
		kubelet                 int
		then                    string // by newline
		keepers                 string
	}{
		{name: "a field", wanted: map[string]any{"maxPods": int64(3), "evictionHard": nil}, active: map[string]any{}, then: "maxPods 3 evictionHard -"},
		{name: "of a local one", wanted: map[string]any{"maxPods": int64(3)}, then: "maxPods 3 " + pods + "\nmaxPods 110 " + pods, keepers: "maxPods"},
		{name: "a flag's", wanted: map[string]any{"maxPods": int64(3)}, running: map[string]any{"maxPods": int64(20)}, active: map[string]any{}, then: "maxPods 20 " + pods},
		{name: "a flag's, that nobody names", wanted: map[string]any{}, running: map[string]any{"maxPods": int64(20)}, active: map[string]any{}, then: "maxPods 20 " + pods},
		{name: "back to the default", wanted: map[string]any{}, running: map[string]any{"maxPods": int64(20)}, active: map[string]any{"maxPods": int64(20)}, then: none},
		{name: "a map", wanted: map[string]any{"evictionHard": map[string]any{"memory.available": "2Gi"}}, running: map[string]any{"evictionHard": hard}, active: map[string]any{"evictionHard": hard},
			then: "maxPods 110 evictionHard memory.available=2Gi"},
		{name: "a map with a key of a drop-in file, or all of a flag", wanted: map[string]any{"evictionHard": map[string]any{"memory.available": "2Gi", "nodefs.available": "20%"}},
			running: map[string]any{"evictionHard": both}, active: map[string]any{"evictionHard": hard},
			then: "maxPods 110 evictionHard memory.available=2Gi nodefs.available=10%\nmaxPods 110 evictionHard memory.available=1Gi nodefs.available=10%", keepers: "evictionHard.memory.available"},
		{name: "a new key of such a map", wanted: map[string]any{"evictionHard": map[string]any{"memory.available": "1Gi", "pid.available": "10"}},
			running: map[string]any{"evictionHard": both}, active: map[string]any{"evictionHard": hard},
			then:    "maxPods 110 evictionHard memory.available=1Gi nodefs.available=10% pid.available=10\nmaxPods 110 evictionHard memory.available=1Gi nodefs.available=10%",
			keepers: "evictionHard.pid.available"},
		{name: "what does not matter is no doubt", wanted: map[string]any{"syncFrequency": "2m0s"}, then: none},
		{name: "what the kubelet does not know", wanted: map[string]any{"podLogsDir": "/x"}, kubelet: 29, active: map[string]any{}, then: none},
	} {
		t.Run(test.name, func(t *testing.T) {
			running := maps.Clone(defaults)
			delete(running, "evictionHard")
			maps.Copy(running, test.running)
			bare := maps.Clone(defaults)
			delete(bare, "evictionHard")
			e, err := Comparison{Wanted: test.wanted, Running: running, Active: test.active, Defaults: bare, Kubelet: test.kubelet}.Expect(nil)
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, then := range e.then {
				lines = append(lines, described(then))
			}
			if got := strings.Join(lines, "\n"); got != test.then || strings.Join(e.keepers, " ") != test.keepers || e.untried {
				t.Errorf("got\n%s\nby %v, want\n%s\nby %s", got, e.keepers, test.then, test.keepers)
			}
		})
	}
}

func described(c *forecast.Configuration) string {
	text := "maxPods " + Show("maxPods", *c.MaxPods) + " evictionHard"
	for _, signal := range slices.Sorted(maps.Keys(c.EvictionHard)) {
		text += " " + signal + "=" + c.EvictionHard[signal]
	}
	if len(c.EvictionHard) == 0 {
		text += " -"
	}
	return text
}

// Of more fields than can be tried nothing is said for certain.
func TestExpectOfManyFields(t *testing.T) {
	running := map[string]any{"maxPods": int64(110)}
	wanted := map[string]any{"maxPods": int64(3), "podsPerCore": int64(3), "cgroupRoot": "/x", "cgroupDriver": "cgroupfs", "staticPodPath": "/s", "staticPodURL": "http://x", "reservedSystemCPUs": "0"}
	e, err := Comparison{Wanted: wanted, Running: running}.Expect(nil)
	if err != nil || !e.untried || len(e.then) != 1 || e.SameForPods() {
		t.Fatalf("%+v, %v", e, err)
	}
	if found := e.Forecast(forecast.Facts{}); found.Known || found.Lost != 0 {
		t.Errorf("%+v", found)
	}
}

func TestLikelyDefaults(t *testing.T) {
	for _, test := range []struct {
		kubelet       string
		known, differ bool
	}{{"v1.36.3", true, false}, {"v1.24.0", true, false}, {"v1.30.2", true, true}, {"v1.23.9", false, false}, {"v1.99.0", false, false}, {"", false, false}} {
		tree, differ, known, err := LikelyDefaults(test.kubelet)
		if err != nil || known != test.known || differ["evictionHard"] != test.differ || differ["maxPods"] {
			t.Errorf("%q: %v, %v, %v", test.kubelet, differ, known, err)
		}
		if known && tree["containerRuntimeEndpoint"] == nil && test.kubelet != "v1.24.0" {
			t.Errorf("%q: what only the newer table has is missing", test.kubelet)
		}
	}
	// A default that nobody knows is tried both ways.
	running := map[string]any{"evictionHard": map[string]any{"memory.available": "100Mi", "imagefs.inodesFree": "5%"}}
	tree, differ, _, _ := LikelyDefaults("v1.30.2")
	e, err := Comparison{Wanted: map[string]any{}, Running: running, Active: map[string]any{}, Defaults: tree}.Expect(differ)
	if err != nil || len(e.then) < 2 || len(e.keepers) > 0 || !slices.Contains(e.Unsure, "evictionHard.imagefs.inodesFree") {
		t.Errorf("%+v, %v", e, err)
	}
}
