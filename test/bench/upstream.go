package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	sectionUpstream = "the removed feature"

	// The last kubelet that has the feature, and the last API server that keeps its fields and can be built.
	removedKubelet   = "1.23.17"
	removedAPIServer = "1.24.17"
)

// upstreamMain measures the removed feature and ours beside it: `make bench-upstream`.
func upstreamMain(ctx context.Context, arguments []string) error {
	o := options{Log: os.Stderr, Settle: 1500 * time.Millisecond, Window: time.Minute}
	var document, rest, results string
	flags := flag.NewFlagSet("bench upstream", flag.ExitOnError)
	flags.StringVar(&document, "document", "", "write the page of the benchmarks anew, this run with it")
	flags.StringVar(&rest, "rest", "", "the result file that the rest of the page is from; without one no page is written")
	flags.StringVar(&results, "json", "", "write the results into this file, for bench compare")
	flags.StringVar(&o.Binary, "binary", besideOwn("kubelet-supervisor"), "the supervisor")
	flags.StringVar(&o.Commit, "commit", "unknown", "what was built, for the document")
	flags.IntVar(&o.Rounds, "rounds", 3, "how often each change is made")
	flags.DurationVar(&o.Window, "window", o.Window, "how long a kubelet that ends of a deadly payload is watched")
	_ = flags.Parse(arguments) // exits on errors
	result, err := measureUpstream(ctx, o)
	if err != nil {
		return err
	}
	fmt.Printf("Bare restart of the kubelet: %s\n\n%s", result.UpstreamBare(), result.UpstreamTable())
	if results != "" {
		if err := result.save(results); err != nil {
			return err
		}
	}
	page, err := load(rest)
	if document == "" || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	page.Upstream = result
	return page.saveDocument(document)
}

// measureUpstream measures on a cluster that still has the feature.
func measureUpstream(ctx context.Context, o options) (*Result, error) {
	if _, err := os.Stat(o.Binary); err != nil {
		return nil, fmt.Errorf("looking for what is measured (make build): %w", err)
	}
	machine := machineWith("kubelet " + removedKubelet + ", kube-apiserver " + removedAPIServer + ", etcd and containerd")
	return onCluster(ctx, o, cluster.Options{APIServer: removedAPIServer, Kubelet: removedKubelet}, machine,
		func(b *bench) error { return b.watched(ctx, b.upstream) })
}

// upstream measures one subject after another, the bare kubelet before and after them.
func (b *bench) upstream(ctx context.Context) error {
	b.bareRestart = b.result.row(sectionUpstream, "bare restart: "+untilHealthy, "ms").yardstick()
	b.bareUnhealthy = b.result.row(sectionUpstream, "bare restart: "+notHealthy, "ms").yardstick()
	b.bareStop = &Row{} // not shown
	subjects := b.subjects(ctx)
	b.upstreamRows(subjects)
	if err := b.timed("the bare kubelet", func() error { return b.bare(ctx) }); err != nil {
		return err
	}
	for _, s := range subjects {
		if err := b.timed(s.name, func() error { return b.changesOf(ctx, s) }); err != nil {
			return err
		}
	}
	return b.timed("the bare kubelet again", func() error { return b.bare(ctx) })
}
