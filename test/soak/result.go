//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// A result is what one soak found, a line of JSON. Those of one commit can be added up.
type result struct {
	Commit      string    `json:"commit"`
	Begin       time.Time `json:"begin"`
	Seed        uint64    `json:"seed"`
	Clock       bool      `json:"clock"` // was jumped
	Interrupted bool      `json:"interrupted"`
	Broken      string    `json:"broken"` // the rule that was; "": none
	Cgroups     string    `json:"cgroups"`
	Seconds     int       `json:"seconds"`

	Steps       map[string]int      `json:"steps"` // by kind
	Faults      int                 `json:"faults"`
	Rounds      int                 `json:"rounds"`
	Counted     int                 `json:"counted"` // rounds whose starts were foretold
	Retries     int                 `json:"retries"` // of what was rejected for what was done to it
	Supervisors int                 `json:"supervisors"`
	Kubelets    int                 `json:"kubelets"` // started
	Looks       int                 `json:"looks"`    // at the process table
	Without     int                 `json:"withoutMs"`
	Pods        int                 `json:"pods"`     // at most
	Compared    int                 `json:"compared"` // pods found untouched, over all rounds
	Worst       recovery            `json:"worst"`
	Recovery    map[string]recovery `json:"recovery"`   // by fault in the round
	Goroutines  []int               `json:"goroutines"` // of each supervisor that was ended by SIGQUIT
	Samples     []sample            `json:"samples"`    // one for each round
}

// A sample is what was measured at the end of a round.
type sample struct {
	Round   int `json:"round"` // 0 for the beginning; the last comes twice, for the end is measured as well
	Second  int `json:"second"`
	Healthy int `json:"healthyMs"` // from the last fault's end
	True    int `json:"trueMs"`
	Starts  int `json:"starts"` // of kubelets
	Pods    int `json:"pods"`   // untouched
	size
}

func milliseconds(d time.Duration) int { return int(d.Milliseconds()) }

// result gathers what was found until now.
func (s *soaker) result() *result {
	f := s.figures
	_ = s.service.log.follow()
	return &result{
		Commit: s.Commit, Begin: f.begin.UTC().Truncate(time.Second), Seed: s.Seed, Clock: s.Clock, Cgroups: s.cluster.Cgroups,
		Seconds: int(time.Since(f.begin).Seconds()), Steps: f.steps, Faults: f.faults, Rounds: s.plan.rounds, Counted: f.counted, Retries: f.retries,
		Supervisors: s.service.life(), Kubelets: s.service.log.starts, Looks: s.observer.looks, Without: milliseconds(s.observer.without),
		Pods: len(workloads), Compared: s.pods.compared, Worst: f.worst, Recovery: f.recovery, Goroutines: s.service.log.goroutines, Samples: f.samples,
	}
}

// Outcome is a word on how it ended.
func (r *result) Outcome() string {
	switch {
	case r.Broken != "":
		return "BROKEN: " + r.Broken
	case r.Interrupted:
		return "interrupted; every rule held until then"
	}
	return "every rule held"
}

// add writes the result to the end of a file.
func (r *result) add(file string) error {
	if file == "" {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	to, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = to.Write(append(line, '\n'))
	return errors.Join(err, to.Close())
}

// readResults reads files of results, which are of one commit.
func readResults(files []string) ([]*result, error) {
	var results []*result
	for _, file := range files {
		from, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(from)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			r := &result{}
			if err := json.Unmarshal(lines.Bytes(), r); err != nil {
				return nil, errors.Join(fmt.Errorf("reading %s: %w", file, err), from.Close())
			}
			results = append(results, r)
		}
		if err := errors.Join(lines.Err(), from.Close()); err != nil {
			return nil, err
		}
	}
	for _, r := range results {
		if r.Commit != results[0].Commit {
			return nil, fmt.Errorf("results of two commits, %s and %s, cannot be added up", results[0].Commit, r.Commit)
		}
	}
	return results, nil
}

// text is for the person who waits for it.
func (r *result) text() string {
	var b strings.Builder
	line := func(format string, arguments ...any) { fmt.Fprintf(&b, format+"\n", arguments...) }
	line("seed %d: %d rounds in %s, %s", r.Seed, r.Rounds, time.Duration(r.Seconds)*time.Second, r.Outcome())
	line("actions    %s", counts(r.Steps))
	line("faults     %d; supervisors %d, kubelets started %d", r.Faults, r.Supervisors, r.Kubelets)
	line("kubelets   looked for %d times; longest without one beside a supervisor %s", r.Looks, seconds(r.Without))
	line("pods       %d times one of %d was found untouched", r.Compared, r.Pods)
	line("restarts   as foretold in %d rounds of one step; %d times a struck configuration was asked for again", r.Counted, r.Retries)
	line("recovery   after the last fault's end, at worst: healthy in %s, the Node true in %s; by fault in the round:", seconds(r.Worst.Healthy), seconds(r.Worst.True))
	for _, kind := range slices.Sorted(maps.Keys(r.Recovery)) {
		line("             %-24s healthy in %s, true in %s", kind, seconds(r.Recovery[kind].Healthy), seconds(r.Recovery[kind].True))
	}
	for _, g := range growthOf(r.Samples) {
		line("growth     %s %d to %d", g.Name, g.Least, g.Most)
	}
	line("growth     goroutines %v", r.Goroutines)
	return b.String()
}

// A growth is the range of something that was measured.
type growth struct {
	Name        string
	Least, Most int
}

func growthOf(samples []sample) []growth {
	all := []growth{{Name: "descriptors"}, {Name: "threads"}, {Name: "memory, KiB"}, {Name: "anonymous memory, KiB"},
		{Name: "entries of STATE_DIR"}, {Name: "KiB of STATE_DIR"}, {Name: "entries of RUN_DIR"}, {Name: "KiB of RUN_DIR"}}
	for i, s := range samples {
		for j, now := range []int{s.Files, s.Threads, s.Resident, s.Anonymous, s.StateDir.Files, s.StateDir.KiB, s.RunDir.Files, s.RunDir.KiB} {
			if i == 0 {
				all[j].Least = now
			}
			all[j].Least, all[j].Most = min(all[j].Least, now), max(all[j].Most, now)
		}
	}
	return all
}

func seconds(milliseconds int) string { return fmt.Sprintf("%.2f s", float64(milliseconds)/1000) }

func counts(of map[string]int) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		words = append(words, fmt.Sprintf("%s %d", name, of[name]))
	}
	return strings.Join(words, " · ")
}
