//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	healthyWithin = time.Minute     // of the last fault's end
	trueWithin    = 5 * time.Minute // backoff to the API server grows to 2 minutes, a control may take twice a life
	pollInterval  = 50 * time.Millisecond
	reviveAfter   = 5 * time.Second // what is not ready by then may have ended
	steadyFor     = time.Second     // what is true has to stay so
	lastSteps     = 30              // are told when something fails
)

type options struct {
	Time      time.Duration // the round that is under way is finished
	Rounds    int           // at least so many, however long they take
	Seed      uint64
	Clock     bool   // jump the machine's clock
	HugePages bool   // add huge pages to the machine, and take them away
	Binary    string // the supervisor
	Commit    string // of what is soaked, for the result
	Result    string // a file to which the result is added, a line of JSON; "": none
	Log       io.Writer
}

// A soaker is one soak.
type soaker struct {
	options
	cluster  *cluster.Cluster
	node     *node
	pods     *podSet
	disk     *hangingDisk
	gateway  *gateway
	service  *service
	observer *observer
	plan     *plan
	ledger   ledger
	pages    hugePages

	truth   truth        // at the last quiescent moment
	held    *nodev1.Hold // then; nil: nothing was
	consent *consent     // to it, in this round; nil: none
	words   []string     // that were valid once
	starts  int          // of kubelets, until then
	first   size         // of this life
	jumped  time.Duration
	frozen  int             // pid of the kubelet
	harmed  map[string]harm // how, by part, last
	done    []string
	figures figures
}

// soak brings a cluster up, makes rounds for the time that the options give, and takes everything down. An error is a rule that was
// broken, with all that helps to see why.
func soak(ctx context.Context, o options) (err error) {
	if _, err := os.Stat(o.Binary); err != nil {
		return fmt.Errorf("looking for the supervisor (make build): %w", err)
	}
	c, err := cluster.Up(ctx, cluster.Options{Name: fmt.Sprintf("soak-%d", os.Getpid()), Log: o.Log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Down()) }()
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s, err := newSoaker(c, o, cancel)
	if err != nil {
		return err
	}
	if s.gateway, err = openGateway(ctx, c); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.gateway.close()) }()
	s.service.gateway = s.gateway.kubeconfig
	defer func() { err = errors.Join(err, s.removeHugePages()) }()
	if err := s.addHugePages(); err != nil {
		return err
	}
	defer s.putClockBack()
	_, _ = fmt.Fprintf(o.Log, "seed %d\n", o.Seed)
	err = s.run(running, cancel)
	r := s.result()
	if r.Interrupted = ctx.Err() != nil; err != nil && !r.Interrupted {
		r.Broken, _, _ = strings.Cut(err.Error(), "\n")
	}
	_, _ = fmt.Fprint(o.Log, r.text())
	return errors.Join(err, r.add(o.Result))
}

func newSoaker(c *cluster.Cluster, o options, fail func(error)) (*soaker, error) {
	n, err := newNode(c)
	if err != nil {
		return nil, err
	}
	s := &soaker{options: o, cluster: c, node: n, pods: newPodSet(n), service: newService(c, o.Binary), plan: newPlan(o.Seed, o.Clock), harmed: map[string]harm{}}
	s.observer = newObserver(n, s.service, fail)
	s.pods.recount = s.countPages
	s.ledger.struck = map[payload]bool{}
	s.figures = newFigures()
	if s.disk, err = newDisk(s.service.disk()); err != nil {
		return nil, err
	}
	return s, os.WriteFile(c.KubeletConfigFile(), []byte(n.localText()), 0o600)
}

// run makes the rounds, between a start and an end that are checked as well.
func (s *soaker) run(ctx context.Context, fail func(error)) (err error) {
	if err := s.cluster.ReadConfigMapsRole(ctx, namespace, append([]string{absent}, configMaps...)...); err != nil {
		return err
	}
	if err := s.node.makeNamespace(ctx, mirrorless); err != nil {
		return err
	}
	if err := s.pods.createAll(ctx); err != nil {
		return err
	}
	if err := s.service.keep(ctx, fail); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	wait := s.observer.watch(watching)
	defer func() {
		stop()
		wait()
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, s.evidence(context.WithoutCancel(ctx)))
		}
		err = errors.Join(err, s.disk.thaw(), s.service.stop())
	}()
	s.figures.begin = time.Now()
	if err := s.settle(ctx, nil, nil, newWorld()); err != nil {
		return fmt.Errorf("at the beginning: %w", err)
	}
	for s.plan.rounds < s.Rounds || time.Since(s.figures.begin) < s.Time {
		if err := s.round(ctx); err != nil {
			return fmt.Errorf("round %d: %w", s.plan.rounds, err)
		}
	}
	return s.end(ctx)
}

// end counts the goroutines of the last supervisor, lets the next come to rest, and stops it.
func (s *soaker) end(ctx context.Context) error {
	last := step{name: "quit the supervisor", supervisor: "QUIT"}
	s.figures.count(last)
	if err := s.do(ctx, last); err != nil {
		return err
	}
	if err := s.settle(ctx, []step{last}, nil, s.plan.world.clone()); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	return s.service.stop()
}

// round makes one round and waits for its truth.
func (s *soaker) round(ctx context.Context) error {
	before := s.plan.world.clone()
	at := before.clone()
	steps, mending := s.plan.round()
	_, _ = fmt.Fprintf(s.Log, "round %d at %s\n", s.plan.rounds, time.Since(s.figures.begin).Round(time.Second))
	for _, one := range append(append([]step{}, steps...), mending...) {
		at.apply(one)
		if err := s.perform(ctx, one, at); err != nil {
			return err
		}
	}
	return s.settle(ctx, steps, mending, before)
}
