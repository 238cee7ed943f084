//go:build linux

package scale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	editEvery      = 2 * time.Second
	quietPatience  = 4 * time.Minute // watches are begun anew by themselves after 5
	settlePatience = 4 * time.Minute // after the last edit: thrice what a node may take for one
	assignedAtOnce = 100             // nodes
	preflightWord  = `"msg":"pre-flight"`
)

// A Storm is when all nodes want something of the API server at once: because one ConfigMap is edited again and again, and because the
// API server was away.
type Storm struct {
	Leases     Load // before, with nothing but the Leases renewed
	Return     Return
	Edits      Load          // while the ConfigMap that is assigned to all is edited every 2 s
	Busy       float64       // meanwhile; see Wave
	Edited     int           // how often
	Preflights int           // that nodes asked for meanwhile; none is made, for they are turned off
	Starts     int           // of kubelets meanwhile
	Settled    time.Duration // from the end of the edits until every node ran the last one, or nobody waited any longer
	Behind     int           // nodes that did not run it even then
	Instead    string        // what these said instead: how many nodes for each reason
}

// A Return is that of a kube-apiserver which was killed and started again at once.
type Return struct {
	Away  time.Duration    // until a supervisor's first request was received
	First cluster.Requests // in the second from that one on
	All   cluster.Requests // until there were none any more
	Took  time.Duration    // from the first to the last
}

// MeasureStorm measures a Storm. Every node is assigned the ConfigMap, and has passed its trial before.
func MeasureStorm(ctx context.Context, o Options) (*Storm, error) {
	s := &Storm{}
	return s, onNodes(ctx, o, func(m *measurement, renew func()) error {
		renew()
		return m.inTurn(ctx, []phase{
			{"all start", func(ctx context.Context) error { return m.startAll(ctx, m.Options.Spread, view.local) }},
			{"one ConfigMap is assigned to all", m.assignStorm},
			{"all passed their trial", m.promoted},
			{"Leases alone", func(ctx context.Context) error { return m.load(ctx, &s.Leases) }},
			{"the API server killed, and started again", func(ctx context.Context) error { return m.restart(ctx, &s.Return) }},
			{"edits", func(ctx context.Context) error { return m.edits(ctx, s) }},
			{"all run the last edit", func(ctx context.Context) error { return m.settle(ctx, s) }},
			{"all stop", func(context.Context) error { return m.stopSupervisors() }},
		})
	})
}

// assignStorm assigns to nodes that run already, some at a time: a thousand kubelets that start at once on one machine, each asked for its
// health a hundred times a second, lose it to the load.
func (m *measurement) assignStorm(ctx context.Context) (err error) {
	if m.version, err = m.makeConfigMap(ctx); err != nil {
		return err
	}
	m.starts += m.Nodes
	done := 0
	for some := range slices.Chunk(m.nodes, assignedAtOnce) {
		if err := m.assignNodes(ctx, some); err != nil {
			return err
		}
		done += len(some)
		if _, err := m.observer.await(ctx, m.observer.expect(func(v view) bool { return v.runs(m.version) }), done); err != nil {
			return err
		}
	}
	return nil
}

func (m *measurement) restart(ctx context.Context, r *Return) error {
	if _, err := m.begin(); err != nil {
		return err
	}
	killed := time.Now()
	if err := m.cluster.Signal(apiServerPart, syscall.SIGKILL); err != nil {
		return err
	}
	m.cluster.End(apiServerPart)
	if err := m.cluster.StartAPIServer(ctx); err != nil {
		return err
	}
	first, last := killed, time.Now()
	for r.All.Total() == 0 || time.Since(last) < m.Quiet {
		if time.Since(killed) > quietPatience {
			return fmt.Errorf("%s after its end it has had %d requests, the last one at %s: this is not quiet", quietPatience, r.All.Total(), last)
		}
		pause(ctx, time.Second)
		more, _, err := m.audit.Take()
		if err != nil || ctx.Err() != nil {
			return err
		}
		r.All = r.All.And(more.Between(killed, time.Now()))
		first, last = r.All.Span()
	}
	r.Away, r.Took, r.First = first.Sub(killed), last.Sub(first), r.All.Between(first, first.Add(time.Second))
	return m.observer.hold("Active", func(v view) bool { return v.reason == "Active" })
}

func (m *measurement) edits(ctx context.Context, s *Storm) error {
	preflights, starts, err := m.doings()
	if err != nil {
		return err
	}
	begin, err := m.begin()
	if err != nil {
		return err
	}
	ticker := time.NewTicker(editEvery)
	defer ticker.Stop()
	for ctx.Err() == nil && time.Since(begin.at) < m.Edits {
		if m.version, err = m.editConfigMap(ctx); err != nil {
			return err
		}
		s.Edited++
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
	if s.Preflights, s.Starts, err = m.doings(); err != nil {
		return err
	}
	s.Preflights, s.Starts = s.Preflights-preflights, s.Starts-starts
	s.Edits, s.Busy, err = m.since(begin)
	s.Edits.Requests = s.Edits.Requests.Between(begin.at, begin.at.Add(s.Edits.Took)) // there were more while the audit log was read
	return err
}

// doings are what the supervisors have done so far.
func (m *measurement) doings() (preflights, starts int, err error) {
	if preflights, err = m.logged(preflightWord); err != nil {
		return 0, 0, err
	}
	starts, err = m.logged(startingWord)
	return preflights, starts, err
}

func (m *measurement) settle(ctx context.Context, s *Storm) error {
	begin := time.Now()
	waits, cancel := context.WithTimeout(ctx, settlePatience)
	defer cancel()
	last := m.observer.expect(func(v view) bool { return v.runs(m.version) })
	_, err := m.observer.await(waits, last, m.Nodes)
	s.Settled = time.Since(begin)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil { // that is a figure, too
		s.Behind, s.Instead = m.Nodes-len(m.observer.moments(last)), m.observer.instead(last)
		return nil
	}
	return err
}
