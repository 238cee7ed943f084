package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRestartLoopStartsAgainUntilItIsStopped(t *testing.T) {
	fifth := make(chan struct{})
	begun := 0
	l := startLoop(t.Context(), time.Millisecond, func() (*process, error) {
		begun++
		program := "false" // ends at once
		if begun == 5 {
			program = "sleep 1000"
			defer close(fifth)
		}
		words := strings.Fields(program)
		p := &process{command: exec.Command(words[0], words[1:]...), done: make(chan struct{})}
		err := p.command.Start()
		go func() {
			_ = p.command.Wait()
			close(p.done)
		}()
		return p, err
	})
	<-fifth
	if err := l.stop(); err != nil {
		t.Error(err)
	}
	if count, err := l.starts(); count != 5 || err != nil {
		t.Errorf("%d starts, %v; expected were 5", count, err)
	}
	failing := startLoop(t.Context(), 0, func() (*process, error) { return nil, errors.New("no such program") })
	<-failing.done
	if err := failing.stop(); err == nil {
		t.Error("a program that could not be started is not told")
	}
}

// upstreamResult has 2 s for what is restarted at once, 12 s for what is restarted later, and 0.5 s for ours.
func upstreamResult(t *testing.T) *Result {
	t.Helper()
	r := &Result{Commit: "v2", Settle: "1s", Window: "1m0s", Rounds: 2}
	for _, bare := range []string{untilHealthy, notHealthy} {
		r.row(sectionUpstream, "bare restart: "+bare, "ms").Samples = []float64{400}
	}
	subjects := []*subject{{name: atOnceName, rows: map[string]*Row{}}, {name: withDelayName, rows: map[string]*Row{}}, {name: oursName, rows: map[string]*Row{}}}
	(&bench{result: r}).upstreamRows(subjects)
	for i, s := range subjects {
		for name, row := range s.rows {
			row.Samples = [][]float64{{2000, 1000, 3000}, {12000}, {500}}[i]
			row.AtLeast = i < 2 && (name == deadlyName+": "+untilBack || name == deadlyName+": "+notHealthy)
		}
	}
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestUpstreamTableHasAColumnForEachSubject(t *testing.T) {
	table := squeezed(upstreamResult(t).UpstreamTable())
	for _, line := range []string{
		"| good configuration: until the Node says so | 2 s (1 s – 3 s) | 12 s | 500 ms | 0.250 | 0.0417 |",
		"| removal: kubelet starts | 2000 (1000 – 3000) | 12000 | 500 | | |",
		"| deadly payload: until the kubelet is healthy again | never, in 3 s | never, in 12 s | 500 ms | < 0.250 | < 0.0417 |",
		"| deadly payload: kubelet not healthy | > 3 s | > 12 s | 500 ms | < 0.250 | < 0.0417 |",
	} {
		if !strings.Contains(table, line+"\n") {
			t.Errorf("the table has no line %q:\n%s", line, table)
		}
	}
	if empty := (&Result{}).UpstreamTable(); strings.Count(empty, "\n") != strings.Count(table, "\n") {
		t.Errorf("a result without rows: %s", empty)
	}
}

func TestDocumentHasTheRemovedFeatureOfTheRunThatMeasuredIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "upstream.json")
	if err := upstreamResult(t).save(path); err != nil {
		t.Fatal(err)
	}
	whole := &Result{Commit: "v1"}
	without, err := whole.document()
	if err != nil || !strings.Contains(without, "make bench-upstream") || strings.Contains(without, "## Beside the removed feature") {
		t.Errorf("without a run: %v\n%s", err, without)
	}
	if whole.Upstream, err = load(path); err != nil {
		t.Fatal(err)
	}
	with, err := whole.document()
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"Commit v1, ", "commit v2, ", "\n## Beside the removed feature\n", "takes 400 ms by itself", "watched for 1m0s;", "never, in 3 s", "\n\n## Not measured\n\n- Ten minutes"} {
		if !strings.Contains(with, words) {
			t.Errorf("the document has no %q:\n%s", words, with)
		}
	}
}

// squeezed is a table without what aligns it.
func squeezed(table string) string {
	for strings.Contains(table, "  ") {
		table = strings.ReplaceAll(table, "  ", " ")
	}
	return table
}
