package scale

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A count is what is read at the begin of a time and at its end.
type count struct {
	at              time.Time
	apiServer, etcd time.Duration // processor time
	all, busy       time.Duration // of the machine
}

func (f *fleet) now() (c count, err error) {
	c.at = time.Now()
	if c.apiServer, _, err = f.usage(apiServerPart); err != nil {
		return c, err
	}
	if c.etcd, _, err = f.usage(etcdPart); err != nil {
		return c, err
	}
	c.all, c.busy, err = machineTime()
	return c, err
}

func (f *fleet) usage(part string) (processor time.Duration, resident float64, err error) {
	pid, err := f.cluster.ProcessID(part)
	if err != nil {
		return 0, 0, err
	}
	if processor, err = processorTime(pid); err != nil {
		return 0, 0, err
	}
	resident, _, err = memoryOf(pid)
	return processor, resident, err
}

// since gives what the API server did since a count.
func (f *fleet) since(begin count) (l Load, busy float64, err error) {
	end, err := f.now()
	if err != nil {
		return l, 0, err
	}
	l = Load{Took: end.at.Sub(begin.at), APIServer: end.apiServer - begin.apiServer, Etcd: end.etcd - begin.etcd}
	if _, l.Memory, err = f.usage(apiServerPart); err != nil {
		return l, 0, err
	}
	if l.Requests, err = f.audit.take(); err != nil {
		return l, 0, err
	}
	if end.all > begin.all {
		busy = float64(end.busy-begin.busy) / float64(end.all-begin.all)
	}
	return l, busy, nil
}

// load measures a time in which nothing is changed.
func (f *fleet) load(ctx context.Context, l *Load) error {
	if _, err := f.audit.take(); err != nil {
		return err
	}
	begin, err := f.now()
	if err != nil {
		return err
	}
	pause(ctx, f.Options.Steady)
	*l, _, err = f.since(begin)
	return err
}

// wave makes a change that gives all nodes another version, and measures until the last one runs it. Where there is something to be
// done meanwhile, times and requests are from the end of that.
func (f *fleet) wave(ctx context.Context, w *Wave, change func() (version string, err error), during func(context.Context) error) error {
	f.starts += f.Nodes
	if _, err := f.audit.take(); err != nil {
		return err
	}
	begin, err := f.now()
	if err != nil {
		return err
	}
	before := f.version
	goal := f.observer.expect(func(v view) bool { return v.follows(before) })
	if f.version, err = change(); err != nil {
		return err
	}
	if during != nil {
		if err := during(ctx); err != nil {
			return err
		}
		if begin, err = f.now(); err != nil {
			return err
		}
	}
	moments, err := f.observer.await(ctx, goal, f.Nodes)
	if err != nil {
		return err
	}
	pause(ctx, tail)
	for _, at := range moments {
		w.Reached = append(w.Reached, max(0, at.Sub(begin.at)))
	}
	w.Load, w.Busy, err = f.since(begin)
	return errors.Join(err, f.observer.hold("that it runs version "+f.version, func(v view) bool { return v.runs(f.version) }))
}

// outage takes the API server away when some nodes have followed, and brings it back.
func (f *fleet) outage(ctx context.Context) error {
	begun := f.Options.Spread / 4
	pause(ctx, begun)
	f.cluster.StopAPIServer()
	pause(ctx, f.Options.Outage)
	if err := f.cluster.StartAPIServer(ctx); err != nil {
		return fmt.Errorf("bringing the API server back: %w", err)
	}
	_, err := f.audit.take()
	return err
}
