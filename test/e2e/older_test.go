//go:build e2e

package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// withoutLayers is a commit of this project that knows nothing of layers.
const withoutLayers = "de8319d"

// olderSupervisor builds the program of a commit.
func olderSupervisor(t *testing.T, commit string) string {
	t.Helper()
	folder := t.TempDir()
	script := `git archive "$1" | tar -x -C "$2" && cd "$2" && CGO_ENABLED=0 go build -trimpath -o kubelet-supervisor ./cmd/kubelet-supervisor`
	build := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", "cd ../.. && "+script, "bash", commit, folder)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building commit %s, which takes the project's history: %v\n%s", commit, err, out)
	}
	return filepath.Join(folder, "kubelet-supervisor")
}

// A supervisor that is too old for layers refuses them and runs on; one that finds them as its last known good configuration runs local.
func TestLongLayersAndAnOlderSupervisor(t *testing.T) {
	n := sharedNode(t)
	older := olderSupervisor(t, withoutLayers)
	s := n.startedLocal(t, options{Binary: older})
	kubelet := s.kubelet(t)
	config := n.putConfigMap(t, "layers", map[string]string{"kubelet": layered(layerOf("fleet", with("maxPods", 66)))})
	assignment := config.assignment("kubelet")
	n.assign(t, assignment)
	v := n.awaitReason(t, assignment, "Refused")
	wantStatus(t, v, config.source("kubelet"), nil, nil, loadError)
	if !strings.Contains(v.Condition.Message, "is of another kind than KubeletConfiguration") {
		t.Errorf("the message is %s", v.Condition.Message)
	}
	if now := s.kubelet(t); now.ID != kubelet.ID {
		t.Errorf("the kubelet was restarted: pid %d, then %d", kubelet.ID, now.ID)
	}
	if said := nodev1.Read(v.Node); said.Knows(nodev1.LayersFeature) {
		t.Errorf("its features are %q", said.Status.Features)
	}

	s.stop(t)
	s = n.startSupervisor(t, options{After: s})
	n.awaitReason(t, assignment, "Active")
	s.wantFields(t, object{"maxPods": 66})
	s.stop(t)
	s = n.startSupervisor(t, options{After: s, Binary: older})
	n.awaitReason(t, assignment, "LastKnownGoodFailed")
	s.kubelet(t)
	if got := s.configz(t)["maxPods"]; got == 66.0 {
		t.Error("the older supervisor runs layers")
	}
	s.stop(t)
	s = n.startSupervisor(t, options{After: s})
	n.awaitReason(t, assignment, "Active")
	s.wantFields(t, object{"maxPods": 66})
}
