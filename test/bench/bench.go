package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

type options struct {
	Rounds      int           // how often each change is made
	Changes     int           // of the fake kubelet's configuration, for the footprint
	Steady      time.Duration // how long idle cost is measured
	Settle      time.Duration // how long a kubelet is left alone after a start, before it is restarted again
	GiveUp      time.Duration // how long a kubelet is waited for that may not come back
	Window      time.Duration // of a change, in which the new kubelet asks the API server for most of what a start brings
	Cold        bool          // drop the machine's page cache, and so slow down all else that runs on it
	Binary      string        // the supervisor
	FakeKubelet string
	Commit      string
	Log         io.Writer // one line per step
}

// shortened is as little as shows that everything can be measured.
func (o options) shortened() options {
	o.Rounds, o.Changes, o.Steady, o.Settle, o.Window, o.GiveUp, o.Cold = 1, 3, 2*time.Second, 300*time.Millisecond, 2*time.Second, 2*time.Second, false
	return o
}

// A bench is one run.
type bench struct {
	options
	cluster *cluster.Cluster
	node    *node
	health  *health
	result  *Result
	running []*process // all that were started and not stopped

	bareRestart, bareStop, bareUnhealthy *Row
}

// measure measures everything on a cluster of its own.
func measure(ctx context.Context, o options) (*Result, error) {
	for _, file := range []string{o.Binary, o.FakeKubelet} {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("looking for what is measured (make bench builds it): %w", err)
		}
	}
	return onCluster(ctx, o, cluster.Options{Audit: true}, machineLines(), func(b *bench) error { return b.watched(ctx, b.run) })
}

// onCluster brings a cluster up, measures on it and takes it down.
func onCluster(ctx context.Context, o options, of cluster.Options, machine []string, measure func(*bench) error) (result *Result, err error) {
	of.Name, of.Log = fmt.Sprintf("bench-%d", os.Getpid()), o.Log
	c, err := cluster.Up(ctx, of)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Down()) }()
	b := &bench{options: o, cluster: c, node: &node{cluster: c}}
	b.result = &Result{Commit: o.Commit, Date: time.Now().UTC().Truncate(time.Second), Machine: append(machine, "cgroup "+c.Cgroups, cluster.KubeletOOMScore().String()), OOMScore: cluster.KubeletOOMScore(), Rounds: o.Rounds,
		Settle: o.Settle.String(), Steady: o.Steady.String(), Window: o.Window.String()}
	defer func() { err = errors.Join(err, b.stopAll()) }()
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	if err := measure(b); err != nil {
		return nil, err
	}
	return b.result, b.result.finish()
}

// watched measures while healthz is asked all the time.
func (b *bench) watched(ctx context.Context, measure func(context.Context) error) (err error) {
	watching, stop := context.WithCancel(ctx)
	var wait func()
	if b.health, wait, err = watchHealth(watching, b.cluster); err != nil {
		stop()
		return err
	}
	defer func() { stop(); wait() }()
	return measure(ctx)
}

// run measures one section after another, the bare kubelet before and after ours: a machine that becomes slower shows in its spread.
func (b *bench) run(ctx context.Context) error {
	b.bareRestart = b.result.row(sectionChange, "bare restart", "ms")
	b.bareStop = b.result.row(sectionChange, "bare restart: from SIGTERM to its end", "ms").yardstick()
	b.bareUnhealthy = b.result.row(sectionChange, "bare restart: not healthy", "ms").yardstick()
	for _, section := range []struct {
		name    string
		measure func(context.Context) error
	}{
		{"the bare kubelet", b.bare},
		{"changes", b.changes},
		{"the bare kubelet again", b.bare},
		{"idle cost, and the API server's part of a change", b.idle},
		{"starts", b.starts},
		{"many changes", b.manyChanges},
	} {
		if err := b.timed(section.name, func() error { return section.measure(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

// timed says how long a part of the measuring took.
func (b *bench) timed(name string, measure func() error) error {
	begin := time.Now()
	if err := measure(); err != nil {
		return fmt.Errorf("measuring %s: %w%s", name, err, b.lastWords())
	}
	_, _ = fmt.Fprintf(b.Log, "measured %s in %.0f s\n", name, time.Since(begin).Seconds())
	return nil
}

func (b *bench) prepare(ctx context.Context) (err error) {
	if err := b.node.writeLocal(); err != nil {
		return err
	}
	if b.node.client, err = configsync.NewClient(b.cluster.AdminConfig()); err != nil {
		return err
	}
	return b.cluster.ReadConfigMapsRole(ctx, namespace, "bench-good", "bench-other", "bench-refused", "bench-deadly", "bench-held", "bench-steady", "bench-many")
}

// kubeletProcess starts a kubelet without us.
func (b *bench) kubeletProcess() (*process, error) {
	p, err := b.start("kubelet", b.node.kubelet())
	if err == nil {
		b.running = append(b.running, p)
	}
	return p, err
}

// supervisorProcess starts a supervisor; its folders and log have the name, so that one may go on where another ended.
func (b *bench) supervisorProcess(name string, flags, kubelet []string) (*process, error) {
	p, err := b.start(name, slices.Concat([]string{b.Binary, "run", "--state-dir=" + b.stateDir(name), "--run-dir=" + b.runDir(name),
		"--edit-spread=0", "--log-format=json"}, flags, []string{"--"}, kubelet))
	if err == nil {
		b.running = append(b.running, p)
	}
	return p, err
}

func (b *bench) stateDir(name string) string { return b.cluster.Folder + "/" + name + "-state" }
func (b *bench) runDir(name string) string   { return b.cluster.Folder + "/" + name + "-run" }

func (b *bench) end(p *process) error {
	b.running = slices.DeleteFunc(b.running, func(other *process) bool { return other == p })
	return p.stop()
}

func (b *bench) stopAll() (err error) {
	for _, p := range b.running {
		err = errors.Join(err, p.stop())
	}
	b.running = nil
	return err
}

// lastWords are those of the newest process that runs.
func (b *bench) lastWords() string {
	if len(b.running) == 0 {
		return ""
	}
	return b.running[len(b.running)-1].lastWords()
}
