// Command bench measures kubelet-supervisor on real parts: a real API server, etcd, containerd and kubelet on this machine, and
// beside each figure that has one its reference, measured in the same run. `make bench` runs it.
//
// It promises that
//   - every figure was seen from outside where it can be: the Node's watch, a poll of healthz every 5 ms, the process table, the
//     kernel's counters, the API server's audit log; only the phases of a change are from the supervisor's own log;
//   - nothing is left out silently: what this machine does not let it measure is named in the document;
//   - the document (docs/benchmarks.md) and the result file (JSON) are of one and the same run, whole or not written at all; only the
//     section about the removed feature is of a run of its own, by `bench upstream`, with a result file of its own;
//   - it ends with 0 when everything was measured, whether or not the budgets are met, else with 1, or with 130 when it was
//     interrupted; and it leaves nothing on the machine in any of these cases.
//
// `bench matrix` tells what works with which kubelet, and ends with 0 when all was tried, whether it works or not.
//
// `bench compare A.json B.json` compares two result files and ends with 1 where something of B is clearly worse.
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

	"github.com/kubelet-supervisor/kubelet-supervisor/test/scale"
)

func main() { os.Exit(run()) }

func run() int {
	if len(os.Args) > 1 && os.Args[1] == "compare" {
		return compareFiles(os.Stdout, os.Args[2:])
	}
	// They stay caught until the end, so that a second Ctrl-C does not stop the cleaning up.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if scale.IsHost() {
		return exitCode(ctx, hostMain(ctx))
	}
	if len(os.Args) > 1 && os.Args[1] == "upstream" {
		return exitCode(ctx, upstreamMain(ctx, os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "matrix" {
		return exitCode(ctx, matrixMain(ctx, os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "nodes" {
		return exitCode(ctx, nodesMain(ctx, os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "long" {
		return exitCode(ctx, longMain(ctx, os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "scale" {
		return exitCode(ctx, scaleMain(os.Args[2:]))
	}
	return exitCode(ctx, benchMain(ctx))
}

func benchMain(ctx context.Context) error {
	o := options{Log: os.Stderr, Settle: 1500 * time.Millisecond, GiveUp: 30 * time.Second, Window: 6 * time.Second}
	var document, results, upstream string
	var short bool
	flag.StringVar(&document, "document", "", "write the tables and what they mean into this Markdown file")
	flag.StringVar(&results, "json", "", "write the results into this file, for bench compare")
	flag.StringVar(&upstream, "upstream", "", "the result file of bench upstream, for the document, if it is there")
	flag.StringVar(&o.Binary, "binary", besideOwn("kubelet-supervisor"), "the supervisor")
	flag.StringVar(&o.FakeKubelet, "fake-kubelet", besideOwn("fakekubelet"), "what test/fakekubelet builds")
	flag.StringVar(&o.Commit, "commit", "unknown", "what was built, for the document")
	flag.IntVar(&o.Rounds, "rounds", 10, "how often each change is made")
	flag.IntVar(&o.Changes, "changes", 100, "configuration changes before the last look at the memory")
	flag.DurationVar(&o.Steady, "steady", time.Minute, "how long nothing happens while idle cost is measured")
	flag.BoolVar(&o.Cold, "cold", true, "drop this machine's page cache before some starts, where that is allowed")
	flag.BoolVar(&short, "short", false, "only see whether everything can be measured: a minute, and figures that mean nothing")
	flag.Parse()
	if short {
		o = o.shortened()
	}
	result, err := measure(ctx, o)
	if err != nil {
		return err
	}
	if result.Upstream, err = load(upstream); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return write(result, document, results)
}

func exitCode(ctx context.Context, err error) int {
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		_, _ = fmt.Fprintln(os.Stderr, "interrupted")
		return 130
	}
	_, _ = fmt.Fprintln(os.Stderr, "FAILED:", err)
	return 1
}

// write prints the tables, and writes the files that are wanted.
func write(result *Result, document, results string) error {
	fmt.Print(result.tables())
	if results != "" {
		if err := result.save(results); err != nil {
			return err
		}
	}
	if document == "" {
		return nil
	}
	return result.saveDocument(document)
}

func besideOwn(name string) string {
	own, err := os.Executable()
	if err != nil {
		return name
	}
	return filepath.Join(filepath.Dir(own), name)
}
