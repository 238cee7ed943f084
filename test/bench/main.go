//go:build linux

// Command bench measures kubelet-supervisor on real parts: a real API server, etcd, containerd and kubelet on this machine, and
// beside each figure that has one its reference, measured in the same run. `make bench` runs it.
//
//	bench run|upstream|matrix|servers|nodes|storm|pools|rollout|long -json=FILE    measures, and writes a result file
//	bench page -document=docs/PAGE.md FILE...          renders a page from result files, and nothing else
//	bench page -document=… -section=HEADING FILE...    renders that section anew, and leaves the rest of the page as it is
//
// It promises that
//   - every figure was seen from outside where it can be: the Node's watch, a poll of healthz every 5 ms, the process table, the
//     kernel's counters, the API server's audit log; only the phases of a change are from the supervisor's own log;
//   - nothing is left out silently: what this machine does not let it measure is named in the result, and so on the page;
//   - a result is of one run, whole or not written at all;
//   - it ends with 0 when everything was measured, whether or not the budgets are met, else with 1, or with 130 when it was
//     interrupted; and it leaves nothing on the machine in any of these cases.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// A command measures something; its options are the defaults of its flags.
type command struct {
	options
	measure func(context.Context, options) (*Result, error)
}

var commands = map[string]command{
	"run":      {options{Rounds: 10, Changes: 100, Steady: time.Minute, Window: 6 * time.Second, Cold: true}, measure},
	"upstream": {options{Rounds: 3, Window: time.Minute}, measureUpstream},
	"matrix":   {options{}, measureMatrix},
	"servers":  {options{}, measureServers},
	"nodes":    {options{Nodes: 10, Steady: 20 * time.Second}, measureNodes},
	"storm":    {options{Nodes: 10, Steady: 20 * time.Second, Edits: 5 * time.Minute}, measureStorm},
	"pools":    {options{Nodes: 10, Steady: time.Minute, Changes: 100}, measurePools},
	"rollout":  {options{Nodes: 10, Machines: 200, Rounds: 5, Changes: 100}, measureRollout},
	"long":     {options{Rounds: 10, Changes: 1000, Steady: 10 * time.Minute, Window: 6 * time.Second}, measureLong},
}

func main() {
	// They stay caught until the end, so that a second Ctrl-C does not stop the cleaning up.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		os.Exit(failure(ctx, err))
	}
}

// failure says what went wrong, and gives the exit code.
func failure(ctx context.Context, err error) int {
	if ctx.Err() != nil {
		_, _ = fmt.Fprintln(os.Stderr, "interrupted")
		return 130
	}
	_, _ = fmt.Fprintln(os.Stderr, "FAILED:", err)
	return 1
}

func run(ctx context.Context, arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("usage: bench run|upstream|matrix|servers|nodes|storm|pools|rollout|long|page [flags]")
	}
	name, flags := arguments[0], flag.NewFlagSet("bench "+arguments[0], flag.ExitOnError)
	if name == "page" {
		document := flags.String("document", "", "the page; its name tells which one")
		note := flags.String("note", "", "what a reader has to know of these runs")
		section := flags.String("section", "", "render this section of the page alone, which is there already")
		_ = flags.Parse(arguments[1:]) // exits on errors
		if *section != "" {
			return writeSection(*document, *section, *note, flags.Args())
		}
		return writePage(*document, *note, flags.Args())
	}
	c, known := commands[name]
	if !known {
		return fmt.Errorf("there is no %q: bench run, upstream, matrix, servers, nodes, storm, pools, rollout, long or page", name)
	}
	o := c.options
	o.Log, o.Settle, o.GiveUp = os.Stderr, 1500*time.Millisecond, 30*time.Second
	results := flags.String("json", "", "write the result into this file")
	flags.StringVar(&o.Binary, "binary", besideOwn("kubelet-supervisor"), "the supervisor")
	flags.StringVar(&o.FakeKubelet, "fake-kubelet", besideOwn("fakekubelet"), "what test/fakekubelet builds")
	flags.StringVar(&o.Controller, "controller", besideOwn("kubelet-supervisor-controller"), "the controller of pools")
	flags.StringVar(&o.Plugin, "plugin", besideOwn("kubectl-kubelet"), "the plugin of kubectl")
	flags.StringVar(&o.Host, "host", besideOwn("scalehost"), "what test/scale/scalehost builds, of any commit")
	flags.StringVar(&o.Commit, "commit", "unknown", "what was built, for the page")
	flags.StringVar(&o.Only, "only", "", "matrix: one version of the kubelet alone; servers: of the API server")
	flags.IntVar(&o.Nodes, "nodes", o.Nodes, "nodes, storm, pools, rollout: how many")
	flags.IntVar(&o.Machines, "machines", o.Machines, "rollout: how many of them have a real supervisor, at most half")
	flags.StringVar(&o.Decide, "decide", besideOwn("rollout.test"), "rollout: the test program of package fleet/rollout")
	flags.DurationVar(&o.Edits, "edits", o.Edits, "storm: how long the ConfigMap of all nodes is edited every 2 s")
	flags.IntVar(&o.Rounds, "rounds", o.Rounds, "how often each change is made")
	flags.IntVar(&o.Changes, "changes", o.Changes, "configuration changes before the last look at the memory")
	flags.DurationVar(&o.Steady, "steady", o.Steady, "how long nothing happens while idle cost is measured")
	flags.BoolVar(&o.Cold, "cold", o.Cold, "drop this machine's page cache before some starts, where that is allowed")
	_ = flags.Parse(arguments[1:]) // exits on errors
	for _, file := range []string{o.Binary, o.FakeKubelet} {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("looking for what is measured (make builds it): %w", err)
		}
	}
	result, err := c.measure(ctx, o)
	if err != nil || *results == "" {
		return err
	}
	return result.save(*results)
}

func besideOwn(name string) string {
	own, err := os.Executable()
	if err != nil {
		return name
	}
	return filepath.Join(filepath.Dir(own), name)
}
