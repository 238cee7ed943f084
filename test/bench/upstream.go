//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	sectionUpstream = "the removed feature"

	// The last kubelet that has the feature, and the last API server that keeps its fields and can be built.
	removedKubelet   = "1.23.17"
	removedAPIServer = "1.24.17"

	// The figures of a change.
	untilHealthy = "until the kubelet is healthy"
	untilSaid    = "until the Node says so"
	untilBack    = "until the kubelet is healthy again"
	notHealthy   = "kubelet not healthy"
	starts       = "kubelet starts"

	// lasting is how long a kubelet is healthy that has come back for good.
	lasting = 10 * time.Second
)

// upstreamKinds are the changes of all subjects, in their order: the first begins with local running.
var upstreamKinds = []string{"refused payload", "good configuration", "in-place edit", "equal content", "removal"}

// A subject is what carries out the changes that a Node asks for. All have the same kubelet and the same local configuration.
type subject struct {
	name  string
	log   string        // name of its log
	words []string      // its command line; it logs each start of a kubelet
	turns time.Duration // how far, at most, the turns of its loop are apart: changes are spread evenly over this time
	rows  map[string]*Row
}

const (
	oursName      = "ours"
	atOnceName    = "removed feature, started again at once"
	withDelayName = "removed feature, started again after 10 s"
)

func (b *bench) subjects() []*subject {
	removed := func(name, log string, delay time.Duration) *subject {
		kubelet := b.node.kubelet("--feature-gates=DynamicKubeletConfig=true", "--dynamic-config-dir="+b.stateDir(log))
		words := slices.Concat(restartLoop(delay), kubelet)
		return &subject{name: name, log: log, words: words, turns: 12 * time.Second}
	}
	return []*subject{removed(atOnceName, "removed-at-once", 0), removed(withDelayName, "removed-after-10s", 10*time.Second),
		{name: oursName, log: oursName, words: b.supervisorWords(oursName, b.node.kubelet())}}
}

// restartLoop is a service manager as the removed feature needs one: however the program ended, it is started again after a delay.
func restartLoop(delay time.Duration) []string {
	const loop = `trap 'kill $!; wait; exit 0' TERM; while :; do echo '%s'; "$@" & wait $!; sleep %g & wait $!; done`
	return []string{"sh", "-c", fmt.Sprintf(loop, startingWords, delay.Seconds()), "loop"}
}

// measureUpstream measures the removed feature and ours beside it, on a cluster that still has the feature.
func measureUpstream(ctx context.Context, o options) (*Result, error) {
	return onCluster(ctx, o, cluster.Options{APIServer: removedAPIServer, Kubelet: removedKubelet},
		"kubelet "+removedKubelet+", kube-apiserver "+removedAPIServer+", etcd and containerd", func(ctx context.Context, b *bench) error {
			b.node.byField = true
			return b.watched(ctx, func() error { return b.upstream(ctx) })
		})
}

// upstream measures one subject after another, the bare kubelet before and after them.
func (b *bench) upstream(ctx context.Context) error {
	b.bareRestart = b.result.row(sectionUpstream, "bare restart: "+untilHealthy, "ms")
	b.bareUnhealthy = b.result.row(sectionUpstream, "bare restart: "+notHealthy, "ms")
	b.bareStop = &Row{} // not shown
	subjects := b.subjects()
	b.result.upstreamRows(subjects)
	sections := []section{{"the bare kubelet", b.bare}}
	for _, s := range subjects {
		sections = append(sections, section{s.name, func(ctx context.Context) error { return b.changesOf(ctx, s) }})
	}
	return b.inTurn(ctx, append(sections, section{"the bare kubelet again", b.bare})...)
}

// upstreamFigures names the figures of all kinds of changes.
func upstreamFigures() (names []string) {
	for _, kind := range []string{"good configuration", "in-place edit", "equal content", "removal", "refused payload", deadlyName} {
		first := untilSaid
		if kind == deadlyName {
			first = untilBack
		}
		for _, figure := range []string{first, notHealthy, starts} {
			names = append(names, kind+": "+figure)
		}
	}
	return names
}

// upstreamRows makes the rows of all subjects, ours against the feature that is started again at once.
func (r *Result) upstreamRows(subjects []*subject) {
	for _, s := range subjects {
		s.rows = map[string]*Row{}
	}
	for _, name := range upstreamFigures() {
		unit := "ms"
		if strings.HasSuffix(name, starts) {
			unit = ""
		}
		for _, s := range subjects {
			s.rows[name] = r.row(sectionUpstream, name+", "+s.name, unit)
			if s.name == oursName {
				s.rows[name].against(subjects[0].rows[name])
			}
		}
	}
}

// changesOf makes all kinds of changes with one subject, round by round, and the deadly one at last.
func (b *bench) changesOf(ctx context.Context, s *subject) (err error) {
	running, err := b.start(s.log, s.words)
	if err != nil {
		return err
	}
	if err := b.node.awaitNode(ctx, "local, and that it is ready", func(v view) bool { return v.local() && v.ready }); err != nil {
		return err
	}
	kinds := b.kinds()
	for round := range b.Rounds {
		for _, name := range upstreamKinds {
			// The last turn of the subject's loop has just been seen.
			if err := settled(ctx, s.turns*time.Duration(2*round+1)/time.Duration(2*b.Rounds)); err != nil {
				return err
			}
			k := kinds[slices.IndexFunc(kinds, func(k *change) bool { return k.name == name })]
			if err := b.changeOf(ctx, s, running, k); err != nil {
				return fmt.Errorf("%s, round %d: %w", name, round+1, err)
			}
		}
	}
	if err := b.deadlyOf(ctx, s, running); err != nil {
		return fmt.Errorf("%s: %w", deadlyName, err)
	}
	return b.end(running)
}

// changeOf makes one change and measures it.
func (b *bench) changeOf(ctx context.Context, s *subject, running *process, k *change) error {
	if err := k.prepare(ctx); err != nil {
		return err
	}
	watch, err := b.node.watch(ctx)
	if err != nil {
		return err
	}
	defer watch.Stop()
	return b.costs(ctx, s, running, k.name, func(began time.Time) error {
		seen, err := k.do(ctx)
		if err != nil {
			return err
		}
		at, err := watch.await(ctx, k.name, seen)
		if err != nil {
			return err
		}
		s.rows[k.name+": "+untilSaid].addTime(at.Sub(began))
		if err := settled(ctx, b.Settle); err != nil {
			return err
		}
		_, err = b.health.awaitUp(ctx)
		return err
	})
}

// costs adds what a change costs a kubelet that is healthy.
func (b *bench) costs(ctx context.Context, s *subject, running *process, kind string, do func(began time.Time) error) error {
	if _, err := b.health.awaitUp(ctx); err != nil {
		return err
	}
	logged, began := running.LogSize(), time.Now()
	if err := do(began); err != nil {
		return err
	}
	log, err := running.LogFrom(logged)
	s.rows[kind+": "+notHealthy].addTime(b.health.down(began))
	s.rows[kind+": "+starts].add(float64(strings.Count(log, startingWords)))
	return err
}

// deadlyOf assigns a payload that validates and that the kubelet ends of. Half of the window later, the assignment is removed.
func (b *bench) deadlyOf(ctx context.Context, s *subject, running *process) error {
	if _, err := b.node.write(ctx, "bench-deadly", b.node.payload(greedy)); err != nil {
		return err
	}
	return b.costs(ctx, s, running, deadlyName, func(began time.Time) error {
		for _, name := range []string{"bench-deadly", ""} {
			if err := b.node.assign(ctx, name); err != nil {
				return err
			}
			if err := settled(ctx, b.Window/2); err != nil {
				return err
			}
		}
		back := s.rows[deadlyName+": "+untilBack]
		last := b.health.last()
		switch {
		case !last.healthy || time.Since(last.at) < lasting: // one that ends again and again may be healthy for a moment
			back.AtLeast, s.rows[deadlyName+": "+notHealthy].AtLeast = true, true
			back.addTime(b.Window)
		case last.at.Before(began):
			return errors.New("the kubelet did not end of it")
		default:
			back.addTime(last.at.Sub(began))
		}
		return nil
	})
}
