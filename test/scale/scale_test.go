//go:build e2e

package scale

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// A measurement of a few nodes shows that everything can be measured, and that nothing is lost. What the figures are is for make bench-scale.
func TestFewNodes(t *testing.T) {
	o := Options{
		Binary: os.Getenv("KUBELET_SUPERVISOR_TEST_BINARY"), FakeKubelet: build(t, "fakekubelet", "./test/fakekubelet"), Host: build(t, "scalehost", "./test/scale/scalehost"),
		Steady: time.Second, Spread: 4 * time.Second, Trial: 5 * time.Second, Outage: time.Second, Log: t.Output(),
	}
	if o.Binary == "" {
		o.Binary = build(t, "kubelet-supervisor", "./cmd/kubelet-supervisor")
	}
	for name, processes := range map[string]bool{"processes": true, "one process": false} {
		t.Run(name, func(t *testing.T) {
			o := o
			if o.Nodes, o.Processes = 2, processes; !processes {
				o.Nodes = 3
			}
			figures, err := Measure(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", *figures)
			expectFigures(t, o, figures)
		})
	}
}

func expectFigures(t *testing.T, o Options, f *Figures) {
	t.Helper()
	for name, w := range map[string]Wave{"assigned": f.Assigned, "edited": f.Edited, "spread": f.Spread, "outage": f.Outage} {
		if len(w.Reached) != o.Nodes {
			t.Errorf("%s: %d nodes followed, not %d", name, len(w.Reached), o.Nodes)
		}
	}
	if f.Starts != 0 {
		t.Errorf("%d kubelets more were started than asked for", f.Starts)
	}
	// Watches may be begun anew, but nothing is written. Nobody renews the Leases yet, so they are looked at for 80 s after the start.
	for kind := range f.Steady.Requests.Kinds {
		if verb, _, _ := strings.Cut(kind, " "); verb != "list" && verb != "watch" && kind != "get leases" {
			t.Errorf("requests while nothing happened: %s", f.Steady.Requests)
		}
	}
	for kind, least := range map[string]int{"list configmaps": 1, "watch configmaps": 1, "patch nodes/status": 1} {
		if n := f.Assigned.Requests.Kinds[kind]; n < least*o.Nodes {
			t.Errorf("an assignment made %d requests %q of %d nodes: %s", n, kind, o.Nodes, f.Assigned.Requests)
		}
	}
	if f.Assigned.Requests.Peak == 0 || f.Assigned.APIServer == 0 || f.Assigned.Memory == 0 || f.Node.Resident == 0 || f.Node.Files == 0 {
		t.Errorf("something was not measured: %+v", *f)
	}
}

// A storm is measured of another commit, too, from which everything but the supervisors has gone since.
func TestStormOfFewNodes(t *testing.T) {
	before := filepath.Join(t.TempDir(), "scalehost-before")
	for name, host := range map[string]func() string{
		"now": func() string { return build(t, "scalehost", "./test/scale/scalehost") },
		"before": func() string {
			if err := exec.Command("git", "cat-file", "-e", "de8319d^{commit}").Run(); err != nil {
				t.Skip("this is not the whole history:", err)
			}
			if output, err := exec.Command("./before.sh", "de8319d", before).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			return before
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Nodes: 3, Host: host(), FakeKubelet: build(t, "fakekubelet", "./test/fakekubelet"), Log: t.Output(),
				Steady: time.Second, Spread: 4 * time.Second, Trial: 5 * time.Second, Edits: 20 * time.Second, Quiet: 5 * time.Second}
			storm, err := MeasureStorm(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", *storm)
			for what, seen := range map[string]int{"edits": storm.Edited - 5, "pre-flights": storm.Preflights, "kubelet starts": storm.Starts,
				"writes of Nodes": storm.Edits.Requests.Kinds["patch nodes/status"], "requests at the return": storm.Return.First.Total()} {
				if seen <= 0 {
					t.Errorf("%d %s", seen, what)
				}
			}
			if n := storm.Return.All.Kinds["watch nodes"]; n < o.Nodes {
				t.Errorf("%d watches of %d Nodes were begun anew", n, o.Nodes)
			}
			if storm.Edits.APIServer == 0 || storm.Return.Away == 0 {
				t.Errorf("something was not measured: %+v", *storm)
			}
		})
	}
}

func build(t *testing.T, name, program string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), name)
	command := exec.Command("go", "build", "-o", binary, program)
	command.Dir, command.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v: %s", name, err, output)
	}
	return binary
}
