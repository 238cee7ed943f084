package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// longMain measures what takes long: `bench long`, a part of make bench-scale.
func longMain(ctx context.Context, arguments []string) error {
	o := options{Log: os.Stderr, Settle: 1500 * time.Millisecond, Window: 6 * time.Second, Rounds: 10}
	var results string
	flags := flag.NewFlagSet("bench long", flag.ExitOnError)
	flags.StringVar(&results, "json", "", "write the results into this file, for bench page and bench compare")
	flags.StringVar(&o.Binary, "binary", besideOwn("kubelet-supervisor"), "the supervisor")
	flags.StringVar(&o.FakeKubelet, "fake-kubelet", besideOwn("fakekubelet"), "what test/fakekubelet builds")
	flags.StringVar(&o.Commit, "commit", "unknown", "what was built, for the document")
	flags.IntVar(&o.Changes, "changes", 1000, "configuration changes before the last look at the memory; 0: only the idle cost")
	flags.DurationVar(&o.Steady, "steady", 10*time.Minute, "how long nothing happens while idle cost is measured; 0: only the changes")
	_ = flags.Parse(arguments) // exits on errors
	result, err := measureLong(ctx, o)
	if err != nil {
		return err
	}
	fmt.Print(result.Table(sectionProgram), result.Table(sectionFootprint), result.Table(sectionTraffic))
	if results == "" {
		return nil
	}
	return result.save(results)
}

func measureLong(ctx context.Context, o options) (*Result, error) {
	return onCluster(ctx, o, cluster.Options{Audit: true}, machineLines(), func(b *bench) error {
		if err := b.timed("what the program is made of", func() error { return b.programRows(ctx) }); err != nil {
			return err
		}
		if err := b.register(ctx); err != nil {
			return err
		}
		if o.Steady > 0 {
			if err := b.timed("idle cost", func() error { return b.idle(ctx) }); err != nil {
				return err
			}
		}
		if o.Changes == 0 {
			return nil
		}
		return b.timed("many changes", func() error { return b.manyChanges(ctx) })
	})
}

// register has a kubelet make its Node.
func (b *bench) register(ctx context.Context) error {
	kubelet, err := b.kubeletProcess()
	if err != nil {
		return err
	}
	if err := b.node.awaitNode(ctx, "that it is ready", func(v view) bool { return v.ready }); err != nil {
		return err
	}
	return b.end(kubelet)
}
