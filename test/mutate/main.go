//go:build linux

// Command mutate asks whether a package's tests notice when its code is wrong: it changes the code in one small place after the other,
// and runs the tests on each such mutant. `make mutate` runs it on package supervisor/core, PACKAGES="store sync" on others, "all" on all that it knows
// (targets.go).
//
// A mutant that fails a test is killed. One that passes all of them is alive, and so is one that no test comes by or that makes them
// hang. What cannot be killed, for it means the same as the original, is listed with its reason in the package's testdata/mutants.txt.
// It ends with 1 when anything else is alive, when a listed one is killed or is no mutant any more, or when the list has more than 8 %
// of all mutants.
//
// Mutants are: operators swapped; conditions negated, and parts of them left out; numbers that are off by one, durations of one unit
// doubled; statements, early exits, cases, fields and list elements left out; one half of an assignment of several values left out;
// nil returned. Words are left as they are.
//
// It is not gremlins (v0.6.0, 25 requirements): that leaves no statements out, knows no list of equal mutants, and compiles each mutant by itself.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() { os.Exit(run()) }

type options struct {
	target
	Files string
	Share float64
	Seed  uint64
	Show  bool
	Least time.Duration // that a mutant is given, however quick the original is
	Jobs  int           // so many mutants at a time
	Again string        // a file with what was printed before: only what was alive then
}

func run() int {
	if len(os.Args) > 3 && os.Args[1] == enclosed {
		return enclose(os.Args[2], os.Args[3], os.Args[4:])
	}
	var o options
	names := flag.String("package", "./supervisor/core", "whose code and tests: one, several with commas, or all that are known")
	flag.StringVar(&o.Files, "files", "", "only mutants of these files, as act.go,trial.go")
	flag.Float64Var(&o.Share, "share", 1, "only this part of the mutants, by chance")
	flag.Uint64Var(&o.Seed, "seed", 1, "of that chance")
	flag.DurationVar(&o.Least, "least", 10*time.Second, "what each mutant is given at least; more where other work slows the tests down, for a mutant that takes too long may count as killed")
	flag.IntVar(&o.Jobs, "jobs", runtime.GOMAXPROCS(0), "so many mutants at a time; more than processors where the tests wait most of the time")
	flag.StringVar(&o.Again, "again", "", "only mutants that were alive by this file, which has what a run of the same packages printed")
	flag.BoolVar(&o.Show, "show", false, "only show the mutants, also those that turn out not to compile")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code := 0
	for _, o.target = range targetsOf(*names) {
		faults, err := mutate(ctx, o, os.Stdout)
		if err != nil {
			_, _ = fmt.Fprintf(os.Stderr, "mutate: %s: %v\n", o.Package, err)
			return 2
		}
		if faults > 0 {
			code = 1
		}
	}
	return code
}

// mutate prints what it finds, and gives the number of faults.
func mutate(ctx context.Context, o options, out io.Writer) (int, error) {
	start := time.Now()
	scratch, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(scratch)
	p, err := open(ctx, o.Package, scratch)
	if err != nil {
		return 0, err
	}
	mutants, err := p.mutants()
	if err != nil {
		return 0, err
	}
	mutants = slices.DeleteFunc(mutants, func(m *mutant) bool {
		return len(o.Only) > 0 && !slices.Contains(o.Only, m.file)
	})
	if o.Show {
		for _, m := range mutants {
			_, _ = fmt.Fprintln(out, m)
		}
		return 0, nil
	}
	a := &account{out: out, results: map[result]int{}}
	if a.reasons, err = readList(filepath.Join(p.Dir, "testdata", "mutants.txt")); err != nil {
		return 0, err
	}
	chosen := o.choose(mutants)
	if o.Again != "" {
		if chosen, err = again(o.Again, chosen); err != nil {
			return 0, err
		}
	}
	if len(chosen) == 0 {
		return 0, errors.New("no mutant is left of those asked for: look at -files, -share and -again")
	}
	all := len(chosen) == len(mutants) // of the target
	r, chosen, err := prepare(ctx, p, chosen, o)
	if err != nil {
		return 0, err
	}
	if all {
		mutants = chosen // those that compile
	}
	a.match(mutants)
	_, _ = fmt.Fprintf(out, "%s: %d mutants to run; built in %s, %s for each at most\n",
		o.Package, len(chosen), time.Since(start).Round(time.Second), r.timeout.Round(time.Second))
	if err := r.each(ctx, o.Jobs, chosen, a.take); err != nil {
		return 0, err
	}
	if all {
		a.judge()
	}
	_, _ = fmt.Fprintf(out, "%s: %s; %s\n", o.Package, a, time.Since(start).Round(time.Second))
	return a.faults, nil
}

// choose gives the mutants that are asked for.
func (o options) choose(mutants []*mutant) []*mutant {
	random := rand.New(rand.NewPCG(o.Seed, 0))
	files := strings.FieldsFunc(o.Files, func(r rune) bool { return r == ',' })
	return slices.DeleteFunc(slices.Clone(mutants), func(m *mutant) bool {
		left := random.Float64() >= o.Share
		return left || len(files) > 0 && !slices.Contains(files, m.file)
	})
}
