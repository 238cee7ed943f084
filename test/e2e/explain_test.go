//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// said is what explain says of one field, for machines.
type said struct {
	Field    string
	Value    any
	NotShown bool
	SetBy    origin
	Runs     any `json:"kubeletMakesIt"`
	Over     []struct {
		Value    any
		SetBy    origin
		Shadowed bool
	}
}

type origin struct{ Kind, Name string }

func explained(t *testing.T, text string) map[string]said {
	t.Helper()
	var all struct{ Fields []said }
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	found := map[string]said{}
	for _, one := range all.Fields {
		found[one.Field] = one
	}
	return found
}

// What explain says of a node with a file, two layers, a drop-in file and a flag is what its kubelet tells of itself, field by field, and
// it says of each who set it.
func TestExplain(t *testing.T) {
	n := sharedNode(t)
	dropIns := filepath.Join(n.Folder, uniqueName("drop-ins"))
	writeFile(t, filepath.Join(dropIns, "50-files.conf"), "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncontainerLogMaxFiles: 9\nevictionMinimumReclaim: {nodefs.available: 1Mi}\n")
	s := n.startedLocal(t, options{
		KubeletFlags: []string{"--max-pods=33", "--feature-gates=EventedPLEG=false", "--config-dir=" + dropIns},
		Local:        n.kubeletConfig(with("maxPods", 90), with("podPidsLimit", 3000), with("registryPullQPS", 8), with("containerLogMaxFiles", 3), with("eventRecordQPS", 7)),
	})
	config := n.putConfigMap(t, "explained", map[string]string{"kubelet": layered(
		layerOf("fleet", with("maxPods", 120), with("podPidsLimit", 2000), with("containerLogMaxFiles", 4), with("featureGates", object{"EventedPLEG": true})),
		layerOf("gpu", with("podPidsLimit", 2500), func(patch object) { patch["eventRecordQPS"] = nil }))})
	n.assign(t, config.assignment("kubelet"))
	n.awaitReason(t, config.assignment("kubelet"), "Active")
	words := func(more ...string) []string {
		return append([]string{"explain", "--run-dir=" + s.RunDir, "--state-dir=" + s.StateDir}, more...)
	}
	stdout, stderr, code := s.run(t, words("--defaults", "-o", "json")...)
	if code != 0 {
		t.Fatalf("code %d: %s", code, stderr)
	}
	says, compared := explained(t, stdout), 0
	for path, value := range everyLeaf(s.configz(t), "") {
		one, is := says[path]
		empty, isMapping := value.(object)
		switch {
		case !is && isMapping && len(empty) == 0: // a kubelet that is asked leaves out what has nothing in it
		case !is:
			t.Errorf("%s is %v, and explain does not name it", path, value)
		case one.NotShown || path == "logging.verbosity": // the one is a secret, and the pre-flight has its own of the other
		case !sameToKubelet(one.Value, value) && !sameToKubelet(one.Runs, value):
			t.Errorf("%s is %v, and explain says %v (%v) by %s %s", path, value, one.Value, one.Runs, one.SetBy.Kind, one.SetBy.Name)
		default:
			compared++
		}
	}
	if compared < 80 {
		t.Errorf("only %d fields were compared", compared)
	}
	for field, want := range map[string]string{
		"maxPods":                  "flag --max-pods over layer fleet* over local *",
		"podPidsLimit":             "layer gpu over layer fleet over local ",
		"containerLogMaxFiles":     "drop-in 50-files.conf over layer fleet* over local *",
		"registryPullQPS":          "local ",
		"eventRecordQPS":           "default  over layer gpu over local ",
		"registryBurst":            "default ",
		"featureGates.EventedPLEG": "flag --feature-gates over layer fleet*",
		"evictionMinimumReclaim.nodefs.available": "drop-in 50-files.conf",
	} {
		one := says[field]
		got := one.SetBy.Kind + " " + one.SetBy.Name
		for _, over := range one.Over {
			got += " over " + over.SetBy.Kind + " " + over.SetBy.Name
			if over.Shadowed {
				got += "*"
			}
		}
		if got != want {
			t.Errorf("%s is by %q, want %q", field, got, want)
		}
	}
	if stdout, _, _ = s.run(t, words("podPidsLimit")...); !strings.Contains(stdout, " runs now:\npodPidsLimit: 2500 ← layer gpu; new-pods-only\n    over 2000 ← layer fleet\n    over 3000 ← local file\n") {
		t.Errorf("it says\n%s", stdout)
	}

	// The same from outside, where the node's own is not seen.
	outside, _ := n.plugin(t, "explain", cluster.NodeName, "--all", "-o", "json")
	seen := explained(t, outside)
	for path, want := range map[string]origin{"podPidsLimit": {"layer", "gpu"}, "maxPods": {"node", "a flag or a drop-in file of the node, or the kubelet itself"}, "registryPullQPS": {"node", "the node's own file, a drop-in file, a flag or a default"}} {
		if got := seen[path]; got.SetBy != want || !sameToKubelet(got.Value, field(s.configz(t), path)) {
			t.Errorf("from outside %s is %v by %v, want %v", path, got.Value, got.SetBy, want)
		}
	}
}

// everyLeaf gives the values of a tree by path. An empty mapping is one.
func everyLeaf(tree object, above string) map[string]any {
	found := map[string]any{}
	for name, value := range tree {
		path := above + name
		if below, is := value.(object); is && len(below) > 0 {
			for path, value := range everyLeaf(below, path+".") {
				found[path] = value
			}
		} else if path != "kind" && path != "apiVersion" && value != nil {
			found[path] = value
		}
	}
	return found
}

// sameToKubelet: durations have many forms.
func sameToKubelet(a, b any) bool {
	x, errX := time.ParseDuration(fmt.Sprint(a))
	y, errY := time.ParseDuration(fmt.Sprint(b))
	return errX == nil && errY == nil && x == y || reflect.DeepEqual(a, b)
}
