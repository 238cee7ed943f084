//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// figures are what the report tells.
type figures struct {
	begin   time.Time
	steps   map[string]int
	faults  int
	counted int // rounds whose starts could be foretold
	retries int // of good configurations that were rejected for what was done to them

	recovery map[string]recovery // by fault
	worst    recovery
	samples  []sample
}

// A recovery is the longest time from the last fault's end.
type recovery struct {
	Healthy int `json:"healthyMs"`
	True    int `json:"trueMs"`
}

func (r recovery) or(other recovery) recovery {
	return recovery{max(r.Healthy, other.Healthy), max(r.True, other.True)}
}

func newFigures() figures { return figures{steps: map[string]int{}, recovery: map[string]recovery{}} }

// kind is what a step counts as.
func (s step) kind() string {
	switch {
	case s.part == answers && s.harm != mended:
		return s.name + " " + string(s.harm)
	case s.approve != "":
		return s.name + " " + string(s.approve)
	case s.part != "" && s.part != network:
		return s.name + " " + s.part
	case s.put != "" && s.name != "re-create":
		return s.name + " " + s.payload.quality.String()
	}
	return s.name
}

func (f *figures) count(s step) {
	f.steps[s.kind()]++
	if s.isFault() {
		f.faults++
	}
}

// settled notes how long the node took after the steps of a round, under every fault among them.
func (f *figures) settled(steps []step, healthy, truth time.Duration) {
	r := recovery{milliseconds(healthy), milliseconds(truth)}
	f.worst = f.worst.or(r)
	for _, s := range steps {
		if s.isFault() {
			f.recovery[s.kind()] = f.recovery[s.kind()].or(r)
		}
	}
}

// compareGoroutines looks at what the supervisors had that were ended by SIGQUIT, wherever that met them: one may have lived for an hour,
// and another for a moment.
func compareGoroutines(counts []int) error {
	if len(counts) > 0 && slices.Max(counts) > mostGoroutines {
		return fmt.Errorf("growth: supervisors that were ended by SIGQUIT had %v goroutines", counts)
	}
	return nil
}

// evidence is what helps to see why a rule was broken.
func (s *soaker) evidence(ctx context.Context) string {
	_ = s.service.log.follow()
	v, err := s.node.view(ctx)
	if err != nil {
		s.observer.mutex.Lock()
		v = s.observer.last
		s.observer.mutex.Unlock()
	}
	record, _ := os.ReadFile(filepath.Join(s.service.runDir(), "state.json"))
	return fmt.Sprintf("seed %d; at the last quiescent moment: %+v\nthe last steps:\n%s\nthe Node: %s\n%s\nstate.json: %s\nthe supervisor's last words:\n%s",
		s.Seed, s.truth, strings.Join(s.done, "\n"), v.text, errorLine(err), record, strings.Join(s.service.log.last, ""))
}

func errorLine(err error) string {
	if err == nil {
		return ""
	}
	return "(as last seen; now: " + err.Error() + ")"
}
