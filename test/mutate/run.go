//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

type result string

// What becomes of a mutant. A test that hangs has noticed nothing, unless it is about code that waits.
const (
	killed    result = "killed"
	hung      result = "killed by the time limit"
	survived  result = "survived"
	uncovered result = "not covered"
	timedOut  result = "timed out"
	broken    result = "does not compile"
)

// patience is how many times as long as the original a mutant may take.
const patience = 10

// parallel lets tests wait side by side, though each mutant has one processor.
const parallel = "-test.parallel=8"

// runner runs the package's tests on mutants.
type runner struct {
	*folder
	target  target
	env     []string // beside that of this process
	binary  string   // with all mutants of functions
	blocks  map[string][]block
	slow    string        // a pattern of the tests that take most of the time; may be empty
	quick   time.Duration // for the other tests
	timeout time.Duration // for all
}

// prepare builds the mutants, gives those that compile, and runs the tests without any.
func prepare(ctx context.Context, p *folder, mutants []*mutant, o options) (*runner, []*mutant, error) {
	r := &runner{folder: p, target: o.target, binary: filepath.Join(p.scratch, "test")}
	if o.FakeKubelet {
		path, err := fakenode.Build(p.scratch)
		if err != nil {
			return nil, nil, err
		}
		r.env = append(r.env, fakenode.BuiltVariable+"="+path)
	}
	inside := slices.DeleteFunc(slices.Clone(mutants), func(m *mutant) bool { return m.decl == nil })
	outside := slices.DeleteFunc(slices.Clone(mutants), func(m *mutant) bool { return m.decl != nil })
	inside, err := p.compile(ctx, inside, r.binary)
	if err != nil {
		return nil, nil, err
	}
	return r, append(inside, outside...), r.calibrate(ctx, o.Least)
}

// calibrate runs the tests on the original, twice: for what they cover, and for how long they take.
func (r *runner) calibrate(ctx context.Context, least time.Duration) error {
	profile := filepath.Join(r.scratch, "cover")
	if _, err := command(ctx, "go", append(append([]string{"test", "-count=1", "-vet=off", "-coverprofile", profile}, r.skip("-skip")...), r.Dir)...); err != nil {
		return fmt.Errorf("the tests fail without any mutant: %w", err)
	}
	data, err := os.ReadFile(profile)
	if err != nil {
		return err
	}
	r.blocks = coverage(string(data))
	start := time.Now()
	output, err := r.start(ctx, r.binary, 0, append([]string{"-test.v"}, r.skip("-test.skip")...)...)
	if err != nil {
		return fmt.Errorf("the tests fail on the original built among its mutants: %w\n%s", err, failures(string(output)))
	}
	took := time.Since(start)
	r.timeout, r.slow = max(patience*took, least), slowTests(string(output), took/slowShare)
	if r.quick = r.timeout; r.slow == "" {
		return nil
	}
	start = time.Now()
	if output, err = r.start(ctx, r.binary, 0, r.skip("-test.skip", r.slow)...); err != nil {
		return fmt.Errorf("the tests fail on the original without those that are slow: %w\n%s", err, output)
	}
	r.quick = max(patience*time.Since(start), least)
	return nil
}

var passes = regexp.MustCompile(`(?m)^ *(?:=== |--- (?:PASS|SKIP): ).*\n`)

// failures leaves out of what tests print what is not about a failure.
func failures(output string) string { return passes.ReplaceAllString(output, "") }

// skip is the flag that leaves out tests of the target.
func (r *runner) skip(flag string, more ...string) []string {
	patterns := slices.DeleteFunc(append(more, r.target.Skip), func(pattern string) bool { return pattern == "" })
	if len(patterns) == 0 {
		return nil
	}
	return []string{flag, strings.Join(patterns, "|")}
}

// slowShare: a test that takes more than this part of the time is run after all others, for most mutants do not live until then.
const slowShare = 30

var timed = regexp.MustCompile(`(?m)^ *--- PASS: (\w+)(/\S+)? \(([0-9.]+s)\)$`)

func slowTests(output string, limit time.Duration) string {
	var names []string
	spent, inside := map[string]time.Duration{}, map[string]time.Duration{}
	for _, match := range timed.FindAllStringSubmatch(output, -1) {
		took, err := time.ParseDuration(match[3])
		switch name, below := match[1], match[2]; {
		case err != nil:
		case below == "":
			names, spent[name] = append(names, name), took
		case strings.Count(below, "/") == 1: // a test's own time does not hold that of its parallel subtests
			inside[name] += took
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return max(spent[name], inside[name]) <= limit })
	if len(names) == 0 {
		return ""
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

// each runs so many mutants at a time and hands over each result, one after the other.
func (r *runner) each(ctx context.Context, at int, mutants []*mutant, take func(*mutant, result)) error {
	jobs := make(chan *mutant)
	var workers sync.WaitGroup
	var one sync.Mutex
	var failed error
	for range at {
		workers.Go(func() {
			for m := range jobs {
				got, err := r.try(ctx, m)
				one.Lock()
				if err == nil && ctx.Err() == nil {
					take(m, got)
				}
				failed = errors.Join(failed, err)
				one.Unlock()
			}
		})
	}
	for _, m := range mutants {
		if ctx.Err() != nil {
			break
		}
		jobs <- m
	}
	close(jobs)
	workers.Wait()
	return errors.Join(failed, ctx.Err())
}

func (r *runner) try(ctx context.Context, m *mutant) (result, error) {
	if m.decl != nil {
		if !covers(r.blocks[m.file], m.at.Line, m.at.Column) {
			return uncovered, nil
		}
		return r.test(ctx, r.binary, m.id), nil
	}
	// A constant or variable of the package: a binary of its own.
	scratch, err := os.MkdirTemp(r.scratch, "one-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	overlay, err := r.overlay(scratch, map[string][]byte{m.file: []byte(apply(r.sources[m.file], []edit{m.edit}))})
	if err != nil {
		return "", err
	}
	binary := filepath.Join(scratch, "test")
	if _, err := command(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, r.Dir); err != nil {
		return broken, ctx.Err()
	}
	return r.test(ctx, binary, 0), nil
}

// test runs the quick tests, then the slow ones.
func (r *runner) test(ctx context.Context, binary string, id int) result {
	if r.slow == "" {
		return r.pass(ctx, r.timeout, binary, id, r.skip("-test.skip"))
	}
	if got := r.pass(ctx, r.quick, binary, id, r.skip("-test.skip", r.slow)); got != survived {
		return got
	}
	return r.pass(ctx, r.timeout, binary, id, append(r.skip("-test.skip"), "-test.run", r.slow))
}

func (r *runner) pass(ctx context.Context, limit time.Duration, binary string, id int, arguments []string) result {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	switch _, err := r.start(ctx, binary, id, append(arguments, "-test.failfast")...); {
	case ctx.Err() != nil && r.target.Waits:
		return hung
	case ctx.Err() != nil:
		return timedOut
	case err != nil:
		return killed
	}
	return survived
}

func (r *runner) start(ctx context.Context, binary string, id int, arguments ...string) ([]byte, error) {
	if r.target.Waits {
		arguments = append(arguments, parallel) // one processor runs many tests that wait
	}
	if r.target.Enclosed {
		return r.startEnclosed(ctx, binary, id, arguments...)
	}
	c := exec.CommandContext(ctx, binary, arguments...)
	c.Dir = r.Dir
	c.Env = append(os.Environ(), variable+"="+strconv.Itoa(id), "GOMAXPROCS=1")
	c.Env = append(c.Env, r.env...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	return c.CombinedOutput()
}

// block is a stretch of code in a cover profile.
type block struct {
	fromLine, fromColumn, toLine, toColumn int
	run                                    bool
}

var profiled = regexp.MustCompile(`(?m)^(?:.*/)?([^/:\n]+):(\d+)\.(\d+),(\d+)\.(\d+) \d+ (\d+)$`)

func coverage(profile string) map[string][]block {
	blocks := map[string][]block{}
	for _, match := range profiled.FindAllStringSubmatch(profile, -1) {
		var n [4]int
		for i := range n {
			n[i], _ = strconv.Atoi(match[2+i])
		}
		blocks[match[1]] = append(blocks[match[1]], block{n[0], n[1], n[2], n[3], match[6] != "0"})
	}
	return blocks
}

// covers tells whether a test comes by a place; also where the profile does not speak of it.
func covers(blocks []block, line, column int) bool {
	spoken := false
	for _, b := range blocks {
		after := line > b.fromLine || line == b.fromLine && column >= b.fromColumn
		before := line < b.toLine || line == b.toLine && column < b.toColumn
		if after && before {
			if b.run {
				return true
			}
			spoken = true
		}
	}
	return !spoken
}
