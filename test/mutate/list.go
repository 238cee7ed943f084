//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// bar is the share of mutants that may be listed as meaning the same as the original.
const bar = 0.08

// readList reads which mutants mean the same as the original: a line that is a mutant's key, then a reason, indented. A line that
// begins with # is a comment. There may be no such file.
func readList(path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	reasons := map[string]string{}
	key := ""
	for i, line := range strings.Split(string(data), "\n") {
		reason := strings.TrimSpace(line)
		switch {
		case reason == "" || strings.HasPrefix(line, "#"):
		case line != strings.TrimLeft(line, " \t"):
			if key == "" {
				return nil, fmt.Errorf("%s:%d: a reason without a mutant", path, i+1)
			}
			reasons[key] = strings.TrimSpace(reasons[key] + " " + reason)
		default:
			if _, twice := reasons[reason]; twice {
				return nil, fmt.Errorf("%s:%d: %s is there twice", path, i+1, reason)
			}
			key = reason
			reasons[key] = ""
		}
	}
	for key, reason := range reasons {
		if reason == "" {
			return nil, fmt.Errorf("%s: %s has no reason", path, key)
		}
	}
	return reasons, nil
}

var wasAlive = regexp.MustCompile(`(?m)^(\S+\.go):\d+: (.*) \((?:survived|not covered|timed out)\)$`)

// again leaves those mutants that an earlier run has printed as alive, whatever their line is now.
func again(path string, mutants []*mutant) ([]*mutant, error) {
	printed, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	keys := map[string]bool{}
	for _, match := range wasAlive.FindAllStringSubmatch(string(printed), -1) {
		keys[match[1]+" "+match[2]] = true
	}
	return slices.DeleteFunc(mutants, func(m *mutant) bool { return !keys[m.key()] }), nil
}

// account adds up what became of the mutants, and prints what is wrong.
type account struct {
	out     io.Writer
	reasons map[string]string
	results map[result]int
	listed  int // alive, and on the list
	faults  int
}

func (a *account) fault(format string, arguments ...any) {
	a.faults++
	_, _ = fmt.Fprintf(a.out, format+"\n", arguments...)
}

// match looks for what the list has and the package has not.
func (a *account) match(mutants []*mutant) {
	keys := map[string]bool{}
	for _, m := range mutants {
		keys[m.key()] = true
	}
	for _, key := range slices.Sorted(maps.Keys(a.reasons)) {
		if !keys[key] {
			a.fault("the list has what is no mutant, or not any more: %s", key)
		}
	}
}

// take adds one mutant.
func (a *account) take(m *mutant, r result) {
	a.results[r]++
	_, listed := a.reasons[m.key()]
	switch {
	case r == broken:
	case (r == killed || r == hung) && listed:
		a.fault("%s (on the list, but a test fails with it)", m)
	case r == killed || r == hung:
	case listed:
		a.listed++
	default:
		a.fault("%s (%s)", m, r)
	}
}

func (a *account) killed() int { return a.results[killed] + a.results[hung] }

func (a *account) all() int {
	return a.killed() + a.results[survived] + a.results[uncovered] + a.results[timedOut]
}

// judge looks at how long the list is, once all mutants were run.
func (a *account) judge() {
	if share := part(len(a.reasons), a.all()); share > bar {
		a.fault("the list has %.1f %% of the mutants; it may have %.0f %%", 100*share, 100*bar)
	}
}

func (a *account) String() string {
	return fmt.Sprintf("%d mutants: %d killed (%.1f %%), of them %d by the time limit; %d alive, of them %d not covered, %d timed out, "+
		"%d listed as meaning the same (%.1f %%)",
		a.all(), a.killed(), 100*part(a.killed(), a.all()), a.results[hung], a.all()-a.killed(),
		a.results[uncovered], a.results[timedOut], a.listed, 100*part(a.listed, a.all()))
}

func part(of, all int) float64 { return float64(of) / float64(max(all, 1)) }
