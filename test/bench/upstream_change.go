package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The figures of a change.
const (
	untilHealthy = "until the kubelet is healthy"
	untilSaid    = "until the Node says so"
	untilBack    = "until the kubelet is healthy again"
	notHealthy   = "kubelet not healthy"
	starts       = "kubelet starts"
)

// lasting is how long a kubelet is healthy that has come back for good.
const lasting = 10 * time.Second

// An upstreamKind is a kind of change, by the fields that the removed feature had, for every subject the same.
type upstreamKind struct {
	name    string
	prepare func(ctx context.Context) error                    // everything but the last request
	do      func(ctx context.Context) (func(view) bool, error) // it makes that, and tells what status.config is to say then
}

// upstreamKinds are made one after another in each round; each begins where the one before ended, the first with local running.
func (b *bench) upstreamKinds() []upstreamKind {
	n := b.node
	var version string
	write := func(name, kind string) func(context.Context) error {
		return func(ctx context.Context) (err error) {
			version, err = n.write(ctx, name, n.payload(kind))
			return err
		}
	}
	assign := func(name string, seen func(view) bool) func(context.Context) (func(view) bool, error) {
		return func(ctx context.Context) (func(view) bool, error) { return seen, n.assignByField(ctx, name) }
	}
	nothing := func(context.Context) error { return nil }
	active := func(v view) bool { return versionOf(v.field.Active) == version && v.field.Error == "" }
	return []upstreamKind{
		{"refused payload", write("bench-refused", refused), assign("bench-refused", func(v view) bool {
			return versionOf(v.field.Assigned) == version && v.field.Active == nil && v.field.Error != ""
		})},
		{"good configuration", write("bench-good", good), assign("bench-good", active)},
		{"in-place edit", nothing, func(ctx context.Context) (func(view) bool, error) { return active, write("bench-good", good)(ctx) }},
		{"equal content", nothing, func(ctx context.Context) (_ func(view) bool, err error) {
			version, err = n.label(ctx, "bench-good")
			return active, err
		}},
		{"removal", nothing, assign("", view.localByField)},
	}
}

func (v view) localByField() bool {
	return v.field.Assigned == nil && v.field.Active == nil && v.field.Error == ""
}

// upstreamRows makes the rows of all subjects, ours against the feature that is started again at once.
func (b *bench) upstreamRows(subjects []*subject) {
	for _, name := range upstreamFigures() {
		for _, s := range subjects {
			unit := "ms"
			if strings.HasSuffix(name, starts) {
				unit = ""
			}
			s.rows[name] = b.result.row(sectionUpstream, name+", "+s.name, unit)
			if s.name == oursName {
				s.rows[name].against(subjects[0].rows[name])
			}
		}
	}
}

// changesOf makes all kinds of changes with one subject, round by round, and the deadly one at last.
func (b *bench) changesOf(ctx context.Context, s *subject) (err error) {
	running, err := s.start()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w%s", err, (&process{Log: b.log(s.log)}).LastWords())
		}
		err = errors.Join(err, running.stop())
	}()
	if err := b.node.awaitNode(ctx, "local, and that it is ready", func(v view) bool { return v.localByField() && v.ready }); err != nil {
		return err
	}
	for round := range b.Rounds {
		for _, k := range b.upstreamKinds() {
			// The last turn of the subject's loop has just been seen.
			if err := settled(ctx, s.turns*time.Duration(2*round+1)/time.Duration(2*b.Rounds)); err != nil {
				return err
			}
			if err := b.makeUpstream(ctx, s, running, k); err != nil {
				return fmt.Errorf("%s, round %d: %w", k.name, round+1, err)
			}
		}
	}
	if err := b.makeDeadly(ctx, s, running); err != nil {
		return fmt.Errorf("%s: %w", deadlyName, err)
	}
	return nil
}

// makeUpstream makes one change and measures it.
func (b *bench) makeUpstream(ctx context.Context, s *subject, running runner, k upstreamKind) error {
	if err := k.prepare(ctx); err != nil {
		return err
	}
	watch, err := b.node.watch(ctx)
	if err != nil {
		return err
	}
	defer watch.Stop()
	finish, err := b.begin(ctx, s, running, k.name)
	if err != nil {
		return err
	}
	began := time.Now()
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
	if _, err := b.health.awaitUp(ctx); err != nil {
		return err
	}
	return finish(began)
}

// begin waits until the kubelet is healthy; finish adds what a change cost it.
func (b *bench) begin(ctx context.Context, s *subject, running runner, kind string) (finish func(began time.Time) error, err error) {
	if _, err := b.health.awaitUp(ctx); err != nil {
		return nil, err
	}
	before, err := running.starts()
	return func(began time.Time) error {
		now, err := running.starts()
		s.rows[kind+": "+notHealthy].addTime(b.health.down(began))
		s.rows[kind+": "+starts].add(float64(now - before))
		return err
	}, err
}

// makeDeadly assigns a payload that validates and that the kubelet ends of. Half of the window later, the assignment is removed.
func (b *bench) makeDeadly(ctx context.Context, s *subject, running runner) error {
	if _, err := b.node.write(ctx, "bench-deadly", b.node.payload(greedy)); err != nil {
		return err
	}
	finish, err := b.begin(ctx, s, running, deadlyName)
	if err != nil {
		return err
	}
	began := time.Now()
	for _, name := range []string{"bench-deadly", ""} {
		if err := b.node.assignByField(ctx, name); err != nil {
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
	return finish(began)
}
