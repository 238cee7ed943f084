//go:build linux

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
	Nodes       int           // of bench nodes, storm, pools and rollout
	Machines    int           // of bench rollout: of them, with a real supervisor
	Edits       time.Duration // of bench storm
	Only        string        // of bench matrix: one version of the kubelet; of bench servers: of the API server
	Cold        bool          // drop the machine's page cache, and so slow down all else that runs on it
	Binary      string        // the supervisor
	FakeKubelet string
	Host        string // of many supervisors
	Controller  string // of pools
	Plugin      string // of kubectl
	Decide      string // the test program of package rollout
	Commit      string
	Log         io.Writer // one line per step
}

// A bench is one run.
type bench struct {
	options
	cluster *cluster.Cluster
	node    *node
	health  *health
	result  *Result
	audit   *cluster.Audit
	started []*process // and not stopped

	bareRestart, bareStop, bareUnhealthy *Row
}

// measure measures everything on a cluster of its own.
func measure(ctx context.Context, o options) (*Result, error) {
	return onCluster(ctx, o, cluster.Options{Audit: true}, newestParts, func(ctx context.Context, b *bench) error { return b.all(ctx) })
}

// measureLong measures what takes long.
func measureLong(ctx context.Context, o options) (*Result, error) {
	return onCluster(ctx, o, cluster.Options{Audit: true}, newestParts, func(ctx context.Context, b *bench) error {
		return b.inTurn(ctx, section{"what the program is made of", b.programRows}, section{"the first start of a kubelet", b.register},
			section{"idle cost", b.idle}, section{"many changes", b.manyChanges})
	})
}

// onCluster brings a cluster up, measures on it and takes it down.
func onCluster(ctx context.Context, o options, of cluster.Options, parts string, measure func(context.Context, *bench) error) (
	result *Result, err error,
) {
	of.Name, of.Log = fmt.Sprintf("bench-%d", os.Getpid()), o.Log
	c, err := cluster.Up(ctx, of)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Down()) }()
	b := &bench{options: o, cluster: c, node: &node{cluster: c}, audit: c.ReadAudit(), result: newResult(o, parts)}
	b.result.Machine = append(b.result.Machine, "cgroup "+c.Cgroups)
	defer func() { err = errors.Join(err, b.stopAll()) }()
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	if err := measure(ctx, b); err != nil {
		return nil, err
	}
	return b.result, b.result.finish()
}

// watched measures while healthz is asked all the time.
func (b *bench) watched(ctx context.Context, measure func() error) (err error) {
	watching, stop := context.WithCancel(ctx)
	var wait func()
	if b.health, wait, err = watchHealth(watching, b.cluster); err != nil {
		stop()
		return err
	}
	defer func() { stop(); wait() }()
	return measure()
}

// all measures one section after another, the bare kubelet before and after ours: a machine that becomes slower shows in its spread.
func (b *bench) all(ctx context.Context) error {
	b.bareRestart = b.result.row(sectionChange, "bare restart", "ms")
	b.bareStop = b.result.row(sectionChange, "bare restart: from SIGTERM to its end", "ms")
	b.bareUnhealthy = b.result.row(sectionChange, "bare restart: not healthy", "ms")
	restarts := func(ctx context.Context) error {
		return b.watched(ctx, func() error {
			return b.inTurn(ctx, section{"the bare kubelet", b.bare}, section{"changes", b.changes}, section{"the bare kubelet again", b.bare})
		})
	}
	return b.inTurn(ctx, section{"restarts", restarts}, section{"idle cost, and the API server's part of a change", b.idle},
		section{"starts", func(ctx context.Context) error { return b.watched(ctx, func() error { return b.starts(ctx) }) }},
		section{"many changes", b.manyChanges})
}

// A section is a part of the measuring.
type section struct {
	name    string
	measure func(context.Context) error
}

// inTurn says how long each took.
func (b *bench) inTurn(ctx context.Context, sections ...section) error {
	for _, s := range sections {
		begin := time.Now()
		if err := s.measure(ctx); err != nil {
			return fmt.Errorf("measuring %s: %w%s", s.name, err, b.lastWords())
		}
		_, _ = fmt.Fprintf(b.Log, "measured %s in %.0f s\n", s.name, time.Since(begin).Seconds())
	}
	return nil
}

func (b *bench) prepare(ctx context.Context) (err error) {
	if err := b.node.writeLocal(); err != nil {
		return err
	}
	if b.node.client, err = configsync.NewClient(b.cluster.AdminConfig()); err != nil {
		return err
	}
	return b.cluster.ReadConfigMapsRole(ctx, namespace, "bench-good", "bench-other", "bench-refused", "bench-layers",
		"bench-deadly", "bench-held", "bench-steady", "bench-many")
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

func (b *bench) start(name string, words []string) (*process, error) {
	p, err := b.cluster.Launch(b.log(name), words...)
	if err == nil {
		b.started = append(b.started, p)
	}
	return p, err
}

// kubeletProcess starts a kubelet without us.
func (b *bench) kubeletProcess() (*process, error) { return b.start("kubelet", b.node.kubelet()) }

// supervisorProcess starts a supervisor; its folders and log have the name, so that one may go on where another ended.
func (b *bench) supervisorProcess(name string, kubelet []string, flags ...string) (*process, error) {
	return b.start(name, b.supervisorWords(name, kubelet, flags...))
}

func (b *bench) supervisorWords(name string, kubelet []string, flags ...string) []string {
	return slices.Concat([]string{b.Binary, "run", "--state-dir=" + b.stateDir(name), "--run-dir=" + b.runDir(name),
		"--edit-spread=0", "--log-format=json"}, flags, []string{"--"}, kubelet)
}

// running starts a supervisor with a new payload assigned, and returns when its kubelet runs with it.
func (b *bench) running(ctx context.Context, name, config string, kubelet []string, flags ...string) (
	p *process, version string, err error,
) {
	if version, err = b.node.write(ctx, config, b.node.payload(good)); err != nil {
		return nil, "", err
	}
	if err := b.node.assign(ctx, config); err != nil {
		return nil, "", err
	}
	if p, err = b.supervisorProcess(name, kubelet, flags...); err != nil {
		return nil, "", err
	}
	return p, version, b.node.awaitNode(ctx, "the configuration is active", func(v view) bool { return v.runs(config, version) })
}

func (b *bench) stateDir(name string) string { return b.cluster.Folder + "/" + name + "-state" }
func (b *bench) runDir(name string) string   { return b.cluster.Folder + "/" + name + "-run" }

func (b *bench) end(p *process) error {
	b.started = slices.DeleteFunc(b.started, func(other *process) bool { return other == p })
	return p.Stop(stopPatience)
}

func (b *bench) stopAll() (err error) {
	for len(b.started) > 0 {
		err = errors.Join(err, b.end(b.started[0]))
	}
	return err
}

// lastWords are those of the newest process that runs.
func (b *bench) lastWords() string {
	if len(b.started) == 0 {
		return ""
	}
	return b.started[len(b.started)-1].LastWords()
}
