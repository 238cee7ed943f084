package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/scale"
)

// figuresOf are those of a fleet in which everything takes as long as it has nodes.
func figuresOf(nodes int) *scale.Figures {
	requests := func(each int) scale.Requests {
		return scale.Requests{Kinds: map[string]int{"patch nodes/status": (each - 3) * nodes, "get leases": 3 * nodes}, Failed: map[int]int{429: 1}, Peak: 7}
	}
	idle := scale.Load{Took: 10 * time.Second, APIServer: time.Second, Etcd: time.Second, Memory: 200 + float64(nodes)}
	wave := scale.Wave{Load: scale.Load{Took: 20 * time.Second, APIServer: 2*time.Second + time.Duration(nodes)*3*time.Millisecond, Etcd: 2 * time.Second, Requests: requests(8)}, Busy: 0.5}
	for i := range nodes {
		wave.Reached = append(wave.Reached, time.Duration(i+1)*10*time.Millisecond)
	}
	return &scale.Figures{Nodes: nodes, Processes: nodes <= processesUpTo, Alone: idle, Steady: idle, Leases: idle, OnTrial: idle,
		Assigned: wave, Edited: wave, Spread: wave, Outage: wave, Node: scale.Footprint{Resident: 20, Anonymous: 6, Files: 18, Goroutines: 40}}
}

func resultOf(t *testing.T, nodes int) *Result {
	t.Helper()
	r := &Result{Commit: "c", Machine: []string{"a machine"}, Window: "1m0s"}
	r.nodes(figuresOf(nodes))
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFleetRowsAreForEachNode(t *testing.T) {
	r := resultOf(t, 100)
	for name, expected := range map[string]float64{
		"nodes": 100, "supervisors that are processes of their own": 100, waveEdited + ": requests": 8, waveEdited + ": requests in the busiest second": 7,
		waveEdited + ": requests that failed": 1, waveEdited + ": share of this machine in use": 50, waveEdited + ": until a node runs it": 0.505,
		waveEdited + ": processor time of the API server": 3, waveEdited + ": processor time of etcd": 0, // beyond what the Leases take
	} {
		if row := r.find(sectionNodes + "/" + name); row == nil || row.median() != expected {
			t.Errorf("%s is %+v, expected was %g", name, row, expected)
		}
	}
	if at := share(r.find(sectionNodes+"/"+waveEdited+": until a node runs it"), 0.95); at != 0.96 {
		t.Errorf("95 %% of 100 nodes have it after %g s", at)
	}
}

func TestScalePageIsExtrapolated(t *testing.T) {
	s := &scalePage{Fleets: []*Result{resultOf(t, 1), resultOf(t, 100), resultOf(t, 1000)}}
	text, err := s.page()
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{
		"\n- 100 nodes: processes of the shipped program; commit c", "\n- 1000 nodes: in one process; commit c",
		"| one ConfigMap assigned to all | 1000 | 0.0100 s | 5.00 s | 9.51 s | 10 s |",
		" 0 + 3 × nodes ms ", "| 15000 ms | 45000 ms |", // the API server's time for an edit
		"| 30000 + 75000 |", "assigned to all: 3000 get leases, 5000 patch nodes/status; of these failed: 1 × 429\n", "looks at Leases | 5000 | 25000 | 75000 |", "No kubelet was started more often", "- One node for a longer time",
	} {
		if !strings.Contains(squeezed(text), words) {
			t.Errorf("the page has no %q:\n%s", words, text)
		}
	}
	s.Note = "Read this first."
	s.Long = &Result{Commit: "l", Steady: "10m0s"}
	s.Long.row(sectionProgram, "section .text", "kB").add(1)
	if text, err = s.page(); err != nil || !strings.Contains(squeezed(text), "| section .text | 1 kB") || !strings.Contains(text, "\n\nRead this first.\n\n**API") || strings.Contains(text, "- One node for a longer time") {
		t.Errorf("the page with a long run: %v\n%s", err, text)
	}
	s.Fleets = s.Fleets[:1]
	if _, err := s.page(); err == nil {
		t.Error("one fleet is extrapolated")
	}
	s.Fleets = []*Result{resultOf(t, 1), resultOf(t, 2)}
	s.Fleets[0].Rows = slices.DeleteFunc(s.Fleets[0].Rows, func(r *Row) bool { return strings.HasPrefix(r.Name, waveSpread) })
	if _, err := s.page(); err == nil || !strings.Contains(err.Error(), "measure it again") {
		t.Errorf("a fleet without some rows: %v", err)
	}
}

func TestSymbolsBelongToModules(t *testing.T) {
	sizes := sumSymbols(`  4a0 100 T k8s.io/api/core/v1.(*Node).Marshal
  4a1 10 T k8s.io/apimachinery/pkg/types.x
  4a2 20 R type:*k8s.io/api/core/v1.Node
  4a3 30 T github.com/x/y/sub.Do[go.shape.int]
  4a4 5 T main.run
  4a5 7 T runtime.mallocgc
  900 9 D k8s.io/api/core/v1.zeroes
  4a7 11 D gopkg.in/yaml%2ev3.table
      3 U nothing
`, []string{"github.com/x/y", "k8s.io/api", "k8s.io/apimachinery", "gopkg.in/yaml.v3"}, func(address uint64) bool { return address < 0x900 })
	for name, expected := range map[string]float64{"k8s.io/api": 120, "k8s.io/apimachinery": 10, "github.com/x/y": 35, standard: 7, "gopkg.in/yaml.v3": 11} {
		if sizes[name] != expected {
			t.Errorf("%s is %g, expected was %g: %v", name, sizes[name], expected, sizes)
		}
	}
}

func TestGoroutinesAreCountedInADump(t *testing.T) {
	dump := "goroutine 9 is somebody's word\nSIGQUIT: quit\nPC=0x1 m=0\n\ngoroutine 0 gp=0x1 m=0 [idle]:\nx\n\ngoroutine 1 gp=0x2 [select]:\nmain.main()\n\ngoroutine 7 [IO wait]:\n"
	if n := goroutinesIn(dump); n != 2 {
		t.Errorf("%g goroutines, expected were 2", n)
	}
	if n := goroutinesIn("ended without a dump\ngoroutine 1 [x]:\n"); n != 0 {
		t.Errorf("%g goroutines without a dump", n)
	}
}
