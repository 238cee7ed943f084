//go:build linux

package main

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/scale"
)

// A wrong word is a failure, and only a signal is an interruption.
func TestEndsAreTold(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	for _, words := range [][]string{nil, {"nothing"}, {"page", "-document=benchmarks.md"}, {"run", "-binary=/nonexistent"}} {
		if err := run(ctx, words); err == nil || failure(ctx, err) != 1 {
			t.Errorf("bench %q: %v", words, err)
		}
	}
	stop()
	if code := failure(ctx, errors.New("x")); code != 130 {
		t.Errorf("an interruption ends with %d", code)
	}
}

func TestMedianRatioAndBudget(t *testing.T) {
	r := &Result{}
	row := func(name, unit string, samples ...float64) *Row {
		row := r.row("change", name, unit)
		row.Samples = samples
		return row
	}
	bare := row("bare", "ms", 500, 300, 400)
	twice := row("twice", "ms", 700, 900).withinTimes(2, bare)
	more := row("more", "ms", 800).withinTimes(1.9, bare)
	small := row("small", "MiB", 24).within(24, "24 MiB")
	large := row("large", "MiB", 24.1).within(24, "24 MiB")
	none := row("none", "", 1).within(0, "0")
	givenUp := row("given up", "ms", 2).within(15_000, "15 s")
	givenUp.AtLeast = true
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	for row, expected := range map[*Row]struct {
		value  string
		ratio  float64
		missed bool
	}{bare: {"400 ms", 0, false}, twice: {"800 ms", 2, false}, more: {"800 ms", 2, true}, small: {"24 MiB", 0, false}, large: {"24.1 MiB", 0, true},
		none: {"1", 0, true}, givenUp: {"> 2 ms", 0, true}} {
		if row.Value() != expected.value || row.Ratio != expected.ratio || row.Missed != expected.missed {
			t.Errorf("%s: %s, ratio %g, missed %t; expected was %+v", row.Name, row.Value(), row.Ratio, row.Missed, expected)
		}
	}
	if missed := r.Missed(); len(missed) != 4 {
		t.Errorf("%d budgets are missed", len(missed))
	}
	r.row("change", "forgotten", "ms")
	if err := r.finish(); err == nil || !strings.Contains(err.Error(), "change/forgotten") {
		t.Errorf("a row without samples: %v", err)
	}
}

func TestResultFileIsReadAsItWasWritten(t *testing.T) {
	written := &Result{Commit: "c", Date: time.Unix(0, 0).UTC(), Machine: []string{"m"}, OOMScore: cluster.OOMScore{Given: 7},
		Trace: []Phase{{"p", 1, 2}}}
	written.row("change", "row", "ms").addTime(1500 * time.Microsecond)
	path := filepath.Join(t.TempDir(), "result.json")
	if err := written.save(path); err != nil {
		t.Fatal(err)
	}
	read, err := load(path)
	if err != nil || !reflect.DeepEqual(read, written) {
		t.Errorf("read %+v, %v; written was %+v", read, err, written)
	}
}

// What is measured with many nodes is told for each node.
func TestRowsOfManyNodesAreForEachNode(t *testing.T) {
	const nodes = 100
	idle := scale.Load{Took: 10 * time.Second, APIServer: time.Second, Etcd: time.Second, Memory: 200}
	wave := scale.Wave{Busy: 0.5, Load: scale.Load{Took: 20 * time.Second, APIServer: 2*time.Second + nodes*3*time.Millisecond, Etcd: 2 * time.Second,
		Requests: cluster.Requests{Kinds: map[string]int{"patch nodes/status": 5 * nodes, "get leases": 3 * nodes}, Failed: map[int]int{429: 1}, Peak: 7}}}
	for i := range nodes {
		wave.Reached = append(wave.Reached, time.Duration(i+1)*10*time.Millisecond)
	}
	r := &Result{}
	r.nodes(&scale.Figures{Nodes: nodes, Processes: true, Alone: idle, Steady: idle, Leases: idle, OnTrial: idle,
		Assigned: wave, Edited: wave, Spread: wave, Outage: wave})
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	for name, expected := range map[string]float64{
		"nodes": 100, "supervisors that are processes of their own": 100, waveEdited + ": requests": 8, waveEdited + ": requests in the busiest second": 7,
		waveEdited + ": requests but for looks at Leases": 5, waveEdited + ": requests that failed": 1, waveEdited + ": share of this machine in use": 50,
		waveEdited + ": until a node runs it": 0.505, waveEdited + ": processor time of the API server": 3,
		waveEdited + ": processor time of etcd": 0, // beyond what the Leases take
	} {
		if row, err := r.Row(sectionNodes, name); err != nil || row.Median() != expected {
			t.Errorf("%s is %+v, %v; expected was %g", name, row, err, expected)
		}
	}
	row, err := r.Row(sectionNodes, waveEdited+": until a node runs it")
	if err != nil || row.Share(0) != 0.01 || row.Share(0.95) != 0.96 || row.Share(1) != 1 {
		t.Errorf("of 100 nodes the first has it after %g s, 95 after %g s, the last after %g s: %v", row.Share(0), row.Share(0.95), row.Share(1), err)
	}
	if words := r.Asked[0]; words != waveAssigned+": 300 get leases, 500 patch nodes/status; of these failed: 1 × 429" {
		t.Errorf("what was asked for is %q", words)
	}
}
