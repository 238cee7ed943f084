//go:build linux

// Command soak kills what there is to kill on a real node, at random, and looks on: a real API server, etcd, containerd and
// kubelet, with kubelet-supervisor as the kubelet's parent. `make soak` runs it.
//
// It works in rounds. A round is a few random steps (a configuration that is assigned, edited, re-created or removed; a kubelet,
// a supervisor or a part of the cluster that is killed, stopped or frozen; the network cut; 429 or 500 in the place of answers to the supervisor;
// the disk of STATE_DIR hung; huge pages taken from the machine; a pod that goes or comes) with random pauses. Then everything that is broken is mended, and what the node says has to become the truth
// within a bound. Among the configurations are some of static policies, whose kubelets write other state files than the rest, and
// one with a Lease of 300 s. Eleven pods of all QoS classes run all the while, one static pod of which the API server takes no mirror, and one with
// huge pages. Some configurations have room for fewer pods than run: these wait until they are approved, by the word of just this hold.
//
// It promises that
//   - the sequence of steps is a function of the seed alone; what is measured is not, for machines are not;
//   - the rules are checked all the time: never two kubelets, lastKnownGood never names what cannot run, an error fits its reason;
//   - each round ends with the whole truth: Node, configz, process table, effective file and disk agree with each other and with
//     what a small model (expect.go) derives from the steps;
//   - no pod is touched by any of it: container, start time and restart count of each are what they were a round before, and the pod
//     that was made meanwhile runs. A pod may end only if a hold named it, and the word of that hold was said and spent; or if a kubelet that was
//     killed, or rolled back, started while the machine had not what the pod asks for;
//   - no growth goes unseen: file descriptors, threads, memory, goroutines, files and bytes on disk, at comparable moments;
//   - it ends with 0 only when all of this held, else with 1, the seed, the last steps, the Node and the supervisor's last words,
//     or with 130 when it was interrupted; with -json what was measured is added to a file in each of these cases, and -page makes a
//     page of such files; it leaves nothing on the machine in any of these cases.
//
// A killed supervisor is started again after 100 ms, as systemd would with Restart=always. Its kubelet is left over, for there is no
// cgroup that is emptied: the next supervisor has to find it.
//
// The wall clock is that of the whole machine, so it is jumped only with -clock, and put back.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() { os.Exit(run()) }

func run() int {
	o := options{Log: os.Stdout}
	flag.DurationVar(&o.Time, "time", 5*time.Minute, "how long; the round that is under way is finished")
	flag.Uint64Var(&o.Seed, "seed", 0, "of the sequence of steps; 0: a random one")
	flag.BoolVar(&o.Clock, "clock", false, "jump the clock of this machine, too, and put it back: for a machine that does nothing else")
	flag.BoolVar(&o.HugePages, "huge", true, "add huge pages to this machine, take them away now and then, and leave it with as many as it had")
	flag.StringVar(&o.Binary, "binary", besideOwn("kubelet-supervisor"), "the supervisor")
	flag.StringVar(&o.Commit, "commit", "unknown", "of what is soaked, for the result")
	flag.StringVar(&o.Result, "json", "", "the file to which the result is added, a line of JSON")
	page := flag.String("page", "", "soak nothing: write this page from the files of results that follow")
	flag.Parse()
	if *page != "" {
		return report(writePage(*page, flag.Args()))
	}
	if o.Seed == 0 {
		o.Seed = 1 + rand.Uint64N(1_000_000)
	}
	// They stay caught until the end, so that a second Ctrl-C does not stop the cleaning up.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := soak(ctx, o)
	if err != nil && ctx.Err() != nil {
		_, _ = fmt.Fprintln(os.Stderr, "interrupted")
		return 130
	}
	return report(err)
}

func report(err error) int {
	if err == nil {
		return 0
	}
	_, _ = fmt.Fprintln(os.Stderr, "FAILED:", err)
	return 1
}

func besideOwn(name string) string {
	own, err := os.Executable()
	if err != nil {
		return name
	}
	return filepath.Join(filepath.Dir(own), name)
}
