//go:build e2e

package pools

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// A measurement with a few nodes shows that everything can be measured, and that a pool at rest is left alone. What the figures are is for
// make bench-pools.
func TestFewNodes(t *testing.T) {
	o := Options{Controller: os.Getenv("KUBELET_SUPERVISOR_TEST_CONTROLLER"), Nodes: 120, Steady: 5 * time.Second, News: 5, Stops: 2, Log: t.Output()}
	if o.Controller == "" {
		o.Controller = filepath.Join(t.TempDir(), "kubelet-supervisor-controller")
		command := exec.Command("go", "build", "-o", o.Controller, "../../../cmd/kubelet-supervisor-controller")
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("building the controller: %v\n%s", err, output)
		}
	}
	f, err := Measure(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", *f)
	if f.Steady.Writes != 0 || f.Steady.Heartbeats == 0 || f.Steady.Renewals == 0 {
		t.Errorf("while nothing happened there were %s", f.Steady.Requests)
	}
	if f.Stops != 2 || f.Failures < 2 || f.Status < 1000 || f.Status > 64<<10 {
		t.Errorf("the status has %d bytes, %d stops and %d failures", f.Status, f.Stops, f.Failures)
	}
	if f.Decide.Decisions == 0 || f.Decide.Mean <= 0 || f.Leader.Resident <= 0 || f.Most < f.Leader.Resident || f.Standby.Resident <= 0 {
		t.Errorf("the figures are %+v", *f)
	}
}
