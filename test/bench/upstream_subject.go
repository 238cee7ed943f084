package main

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// A subject is what carries out the changes that a Node asks for.
type subject struct {
	name  string
	log   string // of its kubelets
	start func() (runner, error)
	turns time.Duration // how far, at most, the turns of its loop are apart: changes are spread evenly over this time
	rows  map[string]*Row
}

// A runner is a subject that runs.
type runner interface {
	starts() (int, error) // of the kubelet, until now
	stop() error
}

const (
	oursName      = "ours"
	atOnceName    = "removed feature, started again at once"
	withDelayName = "removed feature, started again after 10 s"
)

// subjects are all with the same kubelet and the same local configuration.
func (b *bench) subjects(ctx context.Context) []*subject {
	kubelet := b.node.kubelet()
	removed := func(name, log string, delay time.Duration) *subject {
		words := slices.Concat(kubelet, []string{"--feature-gates=DynamicKubeletConfig=true", "--dynamic-config-dir=" + b.stateDir(log)})
		return &subject{name: name, log: log, turns: 12 * time.Second, rows: map[string]*Row{}, start: func() (runner, error) {
			return startLoop(ctx, delay, func() (*process, error) { return b.cluster.Launch(b.log(log), words...) }), nil
		}}
	}
	ours := &subject{name: oursName, log: oursName, rows: map[string]*Row{}, start: func() (runner, error) {
		p, err := b.supervisorProcess(oursName, kubelet)
		return &supervised{bench: b, process: p}, err
	}}
	return []*subject{removed(atOnceName, "removed-at-once", 0), removed(withDelayName, "removed-after-10s", 10*time.Second), ours}
}

// A supervised kubelet is ours.
type supervised struct {
	bench *bench
	*process
}

func (s *supervised) starts() (int, error) {
	log, err := s.LogFrom(0)
	return strings.Count(log, startingWords), err
}

func (s *supervised) stop() error { return s.bench.end(s.process) }

// A restartLoop is a service manager as the removed feature needs one: however the program ended, it is started again after a delay.
type restartLoop struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when the program has ended for good; err is set then
	err    error

	mutex sync.Mutex
	count int // of starts
}

// startLoop begins to start a program; it ends with stop, or with ctx.
func startLoop(ctx context.Context, delay time.Duration, start func() (*process, error)) *restartLoop {
	ctx, cancel := context.WithCancel(ctx)
	l := &restartLoop{cancel: cancel, done: make(chan struct{})}
	go func() { // stop waits for it
		defer close(l.done)
		l.err = l.run(ctx, delay, start)
	}()
	return l
}

func (l *restartLoop) run(ctx context.Context, delay time.Duration, start func() (*process, error)) error {
	for {
		program, err := start()
		if err != nil {
			return err
		}
		l.mutex.Lock()
		l.count++
		l.mutex.Unlock()
		select {
		case <-program.Done:
		case <-ctx.Done():
			return program.Stop(stopPatience)
		}
		if settled(ctx, delay) != nil {
			return nil
		}
	}
}

func (l *restartLoop) starts() (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.count, nil
}

func (l *restartLoop) stop() error {
	l.cancel()
	<-l.done
	return l.err
}
