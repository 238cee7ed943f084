package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// figures are what the report tells.
type figures struct {
	begin   time.Time
	took    time.Duration
	steps   map[string]int
	faults  int
	rounds  int
	counted int // rounds whose starts could be foretold
	retries int // of good configurations that were rejected for what was done to them

	recovery map[string]recovery // by fault
	worst    recovery
	smallest size
	largest  size
	fewest   int // goroutines
	most     int
	dumps    int
}

// A recovery is the longest time from the last fault's end.
type recovery struct{ healthy, truth time.Duration }

func (r recovery) or(other recovery) recovery {
	return recovery{max(r.healthy, other.healthy), max(r.truth, other.truth)}
}

func newFigures() figures { return figures{steps: map[string]int{}, recovery: map[string]recovery{}} }

// kind is what a step counts as.
func (s step) kind() string {
	switch {
	case s.part != "" && s.part != network:
		return s.name + " " + s.part
	case s.put != "" && s.name != "re-create":
		return s.name + " " + [...]string{"", "good", "refused", "deadly"}[s.payload.quality]
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
	f.rounds++
	r := recovery{healthy, truth}
	f.worst = f.worst.or(r)
	for _, s := range steps {
		if s.isFault() {
			f.recovery[s.kind()] = f.recovery[s.kind()].or(r)
		}
	}
}

func (f *figures) measured(z size) {
	if f.smallest.files == 0 {
		f.smallest, f.largest = z, z
	}
	f.smallest, f.largest = combine(f.smallest, z, lesser), combine(f.largest, z, greater)
}

func combine(a, b size, of func(a, b int) int) size {
	return size{
		files: of(a.files, b.files), threads: of(a.threads, b.threads), anonymous: of(a.anonymous, b.anonymous), resident: of(a.resident, b.resident),
		stateDir: disk{of(a.stateDir.files, b.stateDir.files), of(a.stateDir.kib, b.stateDir.kib)},
		runDir:   disk{of(a.runDir.files, b.runDir.files), of(a.runDir.kib, b.runDir.kib)},
	}
}

func lesser(a, b int) int  { return min(a, b) }
func greater(a, b int) int { return max(a, b) }

// goroutines compares what the supervisors had that were ended by SIGQUIT, wherever that met them.
func (f *figures) goroutines(counts []int) error {
	if f.dumps = len(counts); f.dumps == 0 {
		return nil
	}
	f.fewest, f.most = slices.Min(counts), slices.Max(counts)
	if f.most > f.fewest+mostMoreGoroutines {
		return fmt.Errorf("growth: supervisors that were ended by SIGQUIT had %v goroutines", counts)
	}
	return nil
}

func (s *soaker) report(to io.Writer) error {
	f := s.figures
	if err := s.service.log.follow(); err != nil {
		return err
	}
	var b strings.Builder
	line := func(format string, arguments ...any) { fmt.Fprintf(&b, format+"\n", arguments...) }
	line("seed %d: %d rounds in %s, every rule held", s.Seed, f.rounds, f.took.Round(time.Second))
	line("actions    %s", counts(f.steps))
	line("faults     %d survived; supervisors %d, kubelets started %d", f.faults, s.service.life(), s.service.log.starts)
	line("kubelets   never two at a time, in %d looks; longest without one beside a supervisor %s", s.observer.looks, brief(s.observer.without))
	line("restarts   as foretold in %d rounds of one step; %d times a struck configuration was asked for again", f.counted, f.retries)
	line("recovery   after the last fault's end, at worst: healthy in %s, the Node true in %s; by fault in the round:", brief(f.worst.healthy), brief(f.worst.truth))
	for _, kind := range slices.Sorted(maps.Keys(f.recovery)) {
		line("             %-24s healthy in %s, true in %s", kind, brief(f.recovery[kind].healthy), brief(f.recovery[kind].truth))
	}
	low, high := f.smallest, f.largest
	line("growth     descriptors %d to %d, threads %d to %d, goroutines %d to %d in %d dumps", low.files, high.files, low.threads, high.threads, f.fewest, f.most, f.dumps)
	line("           memory %.1f to %.1f MiB, of it anonymous %.1f to %.1f MiB", mib(low.resident), mib(high.resident), mib(low.anonymous), mib(high.anonymous))
	line("           state folder at most %d entries, %d KiB; run folder at most %d entries, %d KiB", high.stateDir.files, high.stateDir.kib, high.runDir.files, high.runDir.kib)
	_, err := io.WriteString(to, b.String())
	return err
}

func brief(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
func mib(kib int) float64                 { return float64(kib) / 1024 }

func counts(of map[string]int) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		words = append(words, fmt.Sprintf("%s %d", name, of[name]))
	}
	return strings.Join(words, " · ")
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
