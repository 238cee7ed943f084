//go:build e2e && long

package fleet

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/scale/pools"
)

// A pool over 100 puppets and 20 real supervisors with fake kubelets, with the API server killed in the middle of a wave: all nodes end with
// the revision, none is assigned to twice, no wave begins too early, and no more are unavailable than may be. What a node refuses in the middle
// of all stops within a second. make bench-fleet measures the same with a thousand nodes.
func TestLongManyNodes(t *testing.T) {
	o := pools.RolloutOptions{Nodes: 120, Machines: 20, Trial: 3 * time.Second, Settle: time.Second, Refusals: 1, News: 5, Log: t.Output(),
		Controller: os.Getenv("KUBELET_SUPERVISOR_TEST_CONTROLLER")}
	for program, path := range map[string]*string{"test/scale/scalehost": &o.Host, "test/fakekubelet": &o.FakeKubelet, "cmd/kubelet-supervisor-controller": &o.Controller} {
		if *path != "" {
			continue
		}
		*path = filepath.Join(t.TempDir(), filepath.Base(program))
		build := exec.Command("go", "build", "-o", *path, "../../"+program)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building %s: %v\n%s", program, err, output)
		}
	}
	f, err := pools.MeasureRollout(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", *f)
	for name, s := range map[string]pools.Stage{"by waves": f.Waves, "together": f.Together, "the way back": f.Back} {
		for what, wrong := range map[string][]string{"lost": s.Behind, "assigned to twice": s.Twice, "too early": s.Exceeded, "too many unavailable": s.OverLimit} {
			if len(wrong) > 0 {
				t.Errorf("%s: %s: %q", name, what, wrong)
			}
		}
		if s.Assigned != o.Nodes || s.Words < 2*o.Nodes || s.Pool == 0 {
			t.Errorf("%s: %d of %d nodes were assigned to, which wrote %d times, and the pool %d times", name, s.Assigned, o.Nodes, s.Words, s.Pool)
		}
		if name != "by waves" && s.Unnoted > 0 {
			t.Errorf("%s: of %d assignments there is no note", name, s.Unnoted)
		}
	}
	if f.Away <= 0 || f.Waves.Unnoted > 8 {
		t.Errorf("the API server was killed, and noted the next assignment %v later; of %d there is no note", f.Away, f.Waves.Unnoted)
	}
	if r := f.Refusals[0]; r.Last > time.Second || r.After > 8 || r.Assigned < 50 || r.Assigned == o.Nodes {
		t.Errorf("a refusal: %+v", r)
	}
}
