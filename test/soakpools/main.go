//go:build linux

// Command soakpools lets a KubeletPool live through acts at random, on a real API server, and holds all that the API server has noted against
// the rules of pools. `make soak-pools` runs it; package pools says what is real.
//
// It promises that the sequence of acts is a function of the seed alone; that it ends with 0 only where each round ended with every node on one
// good revision, no write broke a rule, and no process grew by more than it may, where the run was long enough to see that; and that it leaves
// nothing on the machine.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/scale/pools"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/watch/dashboard"
)

const readEvery = 15 * time.Second // by Prometheus; a processor has more to do than that

func main() {
	if err := run(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "FAILED:", err)
		os.Exit(1)
	}
}

func run() error {
	o := pools.SoakOptions{Log: os.Stdout}
	flag.DurationVar(&o.Time, "time", 5*time.Minute, "how long; the round that is under way is finished")
	flag.Uint64Var(&o.Seed, "seed", 0, "of the sequence of acts; 0: a random one")
	flag.IntVar(&o.Nodes, "nodes", 40, "how many nodes, but for the one with the real kubelet")
	flag.IntVar(&o.Machines, "machines", 4, "how many of them have a supervisor of their own, at least 2; the others are puppets")
	commit := flag.String("commit", "unknown", "of what is soaked, for the result")
	file := flag.String("json", "", "the file to which the result is added, a line of JSON")
	var watch dashboard.Options
	flag.StringVar(&watch.Programs, "prometheus", "", "the folder that test/parts/prometheus.sh node-exporter names: a Prometheus reads all programs meanwhile")
	flag.StringVar(&watch.Mixin, "mixin", "", "the rendered mixin, for Prometheus")
	looked := flag.String("dashboard", "", "the page on what the dashboard would have shown, for -prometheus; its picture stands beside it, as .png")
	page := flag.String("page", "", "soak nothing: write this page from the files of results that follow")
	flag.Parse()
	if *page != "" {
		runs, err := writePage(*page, flag.Args())
		if err != nil {
			return err
		}
		return draw(strings.TrimSuffix(*page, ".md")+".png", runs)
	}
	if o.Seed == 0 {
		o.Seed = 1 + rand.Uint64N(1_000_000)
	}
	if o.Machines < 2 || o.Machines > o.Nodes/2 {
		return fmt.Errorf("%d of %d nodes with a supervisor of their own: give 2 to %d", o.Machines, o.Nodes, o.Nodes/2)
	}
	if watch.Programs != "" {
		watch.Every, watch.Lasts = readEvery, o.Time
		o.Watch = &watch
	}
	if set := watch.Programs != ""; (watch.Mixin != "") != set || (*looked != "") != set {
		return errors.New("-prometheus, -mixin and -dashboard are given together, or not at all")
	}
	own, err := os.Executable()
	if err != nil {
		return err
	}
	for name, to := range map[string]*string{"kubelet-supervisor-controller": &o.Controller, "kubelet-supervisor": &o.Supervisor, "fakekubelet": &o.FakeKubelet} {
		*to = filepath.Join(filepath.Dir(own), name)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	fmt.Println("seed", o.Seed)
	soaked, err := pools.Soak(ctx, o)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	r := result{Commit: *commit, Ended: time.Now().UTC(), Soaked: *soaked}
	if err != nil {
		r.Failure = err.Error()
	}
	for i, b := range soaked.Breaches {
		err = errors.Join(err, fmt.Errorf("rule %q is broken at %s by the PATCH of %s: %s", b.Rule, b.At.Format(time.RFC3339Nano), b.Node, b.Words))
		if i == 9 {
			break
		}
	}
	words, grows := verdict(r)
	if err = errors.Join(err, grows); err != nil {
		err = fmt.Errorf("seed %d: %w", o.Seed, err)
	}
	err = errors.Join(err, r.add(*file), summary(soaked), r.writeDashboard(*looked))
	fmt.Println(words)
	return err
}

func summary(s *pools.Soaked) error {
	short := *s
	short.Samples, short.Minutes, short.Breaches = nil, nil, nil
	text, err := json.MarshalIndent(short, "", "  ")
	fmt.Println(string(text))
	return err
}

// A result is a run, as a line of a file.
type result struct {
	Commit  string    `json:"commit"`
	Ended   time.Time `json:"when"`
	Failure string    `json:"failure,omitempty"`
	pools.Soaked
}

func (r result) add(file string) error {
	if file == "" {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	to, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // anybody may read it
	if err != nil {
		return err
	}
	_, err = to.Write(append(line, '\n'))
	return errors.Join(err, to.Close())
}
