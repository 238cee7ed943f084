//go:build linux

package scale

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// A count is what is read at the begin of a time and at its end.
type count struct {
	at              time.Time
	apiServer, etcd cluster.Usage
	all, busy       time.Duration // of the machine
}

func (m *measurement) now() (c count, err error) {
	c.at = time.Now()
	for part, usage := range map[string]*cluster.Usage{apiServerPart: &c.apiServer, etcdPart: &c.etcd} {
		pid, err := m.cluster.ProcessID(part)
		if err != nil {
			return c, err
		}
		if *usage, err = cluster.UsageOf(pid); err != nil {
			return c, err
		}
	}
	c.all, c.busy, err = cluster.MachineTime()
	return c, err
}

// begin forgets what was asked for before.
func (m *measurement) begin() (count, error) {
	if _, _, err := m.audit.Take(); err != nil {
		return count{}, err
	}
	return m.now()
}

// since gives what the API server did since a count.
func (m *measurement) since(begin count) (l Load, busy float64, err error) {
	end, err := m.now()
	if err != nil {
		return l, 0, err
	}
	l = Load{Took: end.at.Sub(begin.at), APIServer: end.apiServer.Processor - begin.apiServer.Processor,
		Etcd: end.etcd.Processor - begin.etcd.Processor, Memory: end.apiServer.Resident}
	if end.all > begin.all {
		busy = float64(end.busy-begin.busy) / float64(end.all-begin.all)
	}
	l.Requests, _, err = m.audit.Take()
	return l, busy, err
}

// load measures a time in which nothing is changed.
func (m *measurement) load(ctx context.Context, l *Load) error {
	begin, err := m.begin()
	if err != nil {
		return err
	}
	pause(ctx, m.Options.Steady)
	*l, _, err = m.since(begin)
	return err
}

// wave makes a change that gives all nodes another version, and measures until the last one runs it. Where there is something to be
// done meanwhile, times and requests are from the end of that.
func (m *measurement) wave(ctx context.Context, w *Wave, change func() (version string, err error), during func(context.Context) error) error {
	m.starts += m.Nodes
	begin, err := m.begin()
	if err != nil {
		return err
	}
	before := m.version
	goal := m.observer.expect(func(v view) bool { return v.follows(before) })
	if m.version, err = change(); err != nil {
		return err
	}
	if during != nil {
		if err := during(ctx); err != nil {
			return err
		}
		if begin, err = m.begin(); err != nil {
			return err
		}
	}
	moments, err := m.observer.await(ctx, goal, m.Nodes)
	if err != nil {
		return err
	}
	pause(ctx, tail)
	for _, at := range moments {
		w.Reached = append(w.Reached, max(0, at.Sub(begin.at)))
	}
	w.Load, w.Busy, err = m.since(begin)
	return errors.Join(err, m.observer.hold("that it runs version "+m.version, func(v view) bool { return v.runs(m.version) }))
}

// outage takes the API server away when some nodes have followed, and brings it back.
func (m *measurement) outage(ctx context.Context) error {
	begun := m.Options.Spread / 4
	pause(ctx, begun)
	m.cluster.StopAPIServer()
	pause(ctx, m.Options.Outage)
	if err := m.cluster.StartAPIServer(ctx); err != nil {
		return fmt.Errorf("bringing the API server back: %w", err)
	}
	return nil
}
