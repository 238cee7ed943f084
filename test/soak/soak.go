package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
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
	Time   time.Duration // the round that is under way is finished
	Seed   uint64
	Clock  bool   // jump the machine's clock
	Binary string // the supervisor
	Log    io.Writer
}

// A soaker is one soak.
type soaker struct {
	options
	cluster  *cluster.Cluster
	node     *node
	service  *service
	observer *observer
	plan     *plan
	ledger   ledger

	truth   truth // at the last quiescent moment
	starts  int   // of kubelets, until then
	first   size  // of this life
	jumped  time.Duration
	frozen  int // pid of the kubelet
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
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s, err := newSoaker(c, o, cancel)
	if err != nil {
		return err
	}
	defer s.putClockBack()
	_, _ = fmt.Fprintf(o.Log, "seed %d\n", o.Seed)
	if err := s.run(ctx, cancel); err != nil {
		return err
	}
	return s.report(o.Log)
}

func newSoaker(c *cluster.Cluster, o options, fail func(error)) (*soaker, error) {
	n, err := newNode(c)
	if err != nil {
		return nil, err
	}
	s := &soaker{options: o, cluster: c, node: n, service: newService(c, o.Binary), plan: newPlan(o.Seed, o.Clock)}
	s.observer = newObserver(n, s.service, fail)
	s.ledger.struck = map[payload]bool{}
	s.figures = newFigures()
	return s, nil
}

// run makes the rounds, between a start and an end that are checked as well.
func (s *soaker) run(ctx context.Context, fail func(error)) (err error) {
	if err := s.cluster.ReadConfigMapsRole(ctx, namespace, append([]string{absent}, configMaps...)...); err != nil {
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
		err = errors.Join(err, s.service.stop())
	}()
	s.figures.begin = time.Now()
	if err := s.settle(ctx, nil, nil, newWorld()); err != nil {
		return fmt.Errorf("at the beginning: %w", err)
	}
	for time.Since(s.figures.begin) < s.Time {
		if err := s.round(ctx); err != nil {
			return fmt.Errorf("round %d: %w", s.plan.rounds, err)
		}
	}
	return s.end(ctx)
}

// end counts the goroutines of the last supervisor, lets the next come to rest, and stops it.
func (s *soaker) end(ctx context.Context) error {
	last := step{name: "quit the supervisor", supervisor: "QUIT"}
	if err := s.do(ctx, last); err != nil {
		return err
	}
	if err := s.settle(ctx, []step{last}, nil, s.plan.world.clone()); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	s.figures.took = time.Since(s.figures.begin)
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

// perform does one step, and then its pause. at is the world after it.
func (s *soaker) perform(ctx context.Context, one step, at world) error {
	_, _ = fmt.Fprintf(s.Log, "  %s\n", one)
	s.done = append(s.done, fmt.Sprintf("round %d, %s: %s", s.plan.rounds, time.Now().Format("15:04:05.000"), one))
	s.done = s.done[max(0, len(s.done)-lastSteps):]
	s.figures.count(one)
	if err := s.node.change(ctx, one, at); err != nil {
		return fmt.Errorf("%s: %w", one, err)
	}
	if err := s.do(ctx, one); err != nil {
		return fmt.Errorf("%s: %w", one, err)
	}
	if one.harm == mended && at.reachable() && !at.broken["containerd"] {
		if err := s.node.insist(ctx, func() error { return s.revived(ctx, at) }); err != nil {
			return fmt.Errorf("%s: %w", one, err)
		}
	}
	select {
	case <-time.After(one.pause):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// revived waits a moment for the cluster to be ready. A part may have ended only now, of its signal or for want of another, and is
// started again when this is asked once more.
func (s *soaker) revived(ctx context.Context, at world) error {
	for _, part := range parts {
		if part == network || at.broken[part] {
			continue
		}
		if err := s.cluster.Revive(part); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, reviveAfter)
	defer cancel()
	return s.cluster.Ready(ctx)
}

// do does to processes, network and clock what a step does.
func (s *soaker) do(ctx context.Context, one step) error {
	switch {
	case one.supervisor == "HUP":
		return s.reload()
	case one.supervisor != "":
		return s.service.signal(ctx, one.supervisor)
	case one.kubelet != "":
		s.signalKubelet(one.kubelet)
	case one.part == network:
		return s.switchNetwork(one.harm)
	case one.harm == mended:
		return s.cluster.Revive(one.part)
	case one.harm != "":
		// One that was started before its time may have ended by itself.
		_ = s.cluster.Signal(one.part, systemSignals[signalName(one.harm)])
	case one.jump != 0:
		return s.jump(one.jump)
	}
	return nil
}

// reload sends SIGHUP to a supervisor that says it is there, as the command does: one that has just begun would die of it. It is
// not noted as a signal that ends it.
func (s *soaker) reload() error {
	record, running, _ := supervisor.ReadRecord(s.service.runDir())
	if running && record.Supervisor.PID == s.service.pid() {
		_ = syscall.Kill(record.Supervisor.PID, syscall.SIGHUP)
	}
	return nil
}

// signalKubelet signals whatever kubelet there is; there may be none just now.
func (s *soaker) signalKubelet(what signalName) {
	if what == "CONT" {
		_ = syscall.Kill(s.frozen, syscall.SIGCONT)
		return
	}
	for _, pid := range s.node.processTable().kubelets() {
		_ = syscall.Kill(pid, systemSignals[what])
		if what == "STOP" {
			s.frozen = pid
		}
	}
}

// switchNetwork takes the namespace's links down, or up. All there is in it is cut from all the rest, also the kubelet from its healthz.
func (s *soaker) switchNetwork(h harm) error {
	lines := "link set lo down\nlink set node down\n"
	if h == mended {
		lines = "link set lo up\nlink set node up\nroute replace default dev node\n"
	}
	ip := s.cluster.Command("ip", "-batch", "-")
	ip.Stdin = strings.NewReader(lines)
	if output, err := ip.CombinedOutput(); err != nil {
		return fmt.Errorf("switching the network with ip: %w: %s", err, output)
	}
	return nil
}

// settle waits until the node is healthy and the Node says the truth, checks that it is the whole truth, and notes it.
func (s *soaker) settle(ctx context.Context, steps, mending []step, before world) error {
	all := append(append([]step{}, steps...), mending...)
	begin := time.Now()
	excused := s.ledger.round(s.truth, before, all, begin)
	if err := s.service.rested(ctx); err != nil {
		return err
	}
	if err := await(ctx, healthyWithin, "healthy again after the last fault", func() error { return s.checkHealthy(ctx) }); err != nil {
		return err
	}
	healthy := time.Since(begin)
	want := expect(s.truth, before, steps)
	v, err := s.awaitTruth(ctx, want, excused)
	if err != nil {
		return err
	}
	s.figures.settled(all, healthy, time.Since(begin))
	if err := s.checkStarts(want, steps, excused); err != nil {
		return err
	}
	s.truth = v.truth
	if v.condition.Reason == "Active" {
		s.ledger.acquit(v.assigned)
	}
	return s.checkGrowth()
}

// awaitTruth waits for the expected truth, which then has to hold for a while. A good configuration that may have been rejected for
// what was done to its kubelets is asked for again, once.
func (s *soaker) awaitTruth(ctx context.Context, want expectation, excused bool) (view, error) {
	var since time.Time
	var v view
	err := await(ctx, trueWithin, fmt.Sprintf("the Node says the truth: %+v", want), func() error {
		var err error
		if v, err = s.node.view(ctx); err == nil {
			err = s.check(ctx, v, want)
		}
		if err != nil {
			since = time.Time{}
			if excused && v.stuck(want) {
				excused = false
				s.figures.retries++
				s.ledger.acquit(v.assigned)
				s.ledger.acquit(v.lastKnownGood)
				return errors.Join(err, s.node.change(ctx, step{retry: true}, world{}))
			}
			return err
		}
		if since.IsZero() {
			since = time.Now()
		}
		if time.Since(since) < steadyFor {
			return errors.New("true, for a moment so far")
		}
		return nil
	})
	return v, err
}

// stuck: rejected, as only somebody's word can change.
func (v view) stuck(want expectation) bool {
	switch reason := v.condition.Reason; {
	case v.observed != want.observed:
		return false
	case reason == "Rejected" && want.reason == "Active", reason == "LastKnownGoodFailed":
		return true
	default: // behind an error of the assignment
		return reason == want.reason && v.assigned.quality == good && v.active != v.assigned
	}
}

func (s *soaker) check(ctx context.Context, v view, want expectation) error {
	if unmet := want.unmet(v.truth, v.observed, v.condition.Reason, v.config.Error); unmet != "" {
		return fmt.Errorf("%s: %+v, observed %q, %s: %s, error %q", unmet, v.truth, v.observed, v.condition.Reason, v.condition.Message, v.config.Error)
	}
	if !v.ready {
		return errors.New("the Node is not Ready")
	}
	if err := s.checkHealthy(ctx); err != nil {
		return err
	}
	return s.checkTruth(ctx, v)
}

// checkStarts compares the number of kubelets that were started with what the step makes necessary.
func (s *soaker) checkStarts(want expectation, steps []step, excused bool) error {
	if err := s.service.log.follow(); err != nil {
		return err
	}
	made := s.service.log.starts - s.starts
	s.starts = s.service.log.starts
	if excused || want.starts == nil {
		return nil
	}
	s.figures.counted++
	for _, starts := range want.starts {
		if made == starts {
			return nil
		}
	}
	return fmt.Errorf("%d kubelets were started by %q, want %v", made, steps, want.starts)
}

// checkGrowth compares the supervisor's size with that at the first quiescent moment of its life.
func (s *soaker) checkGrowth() error {
	z, err := s.measure()
	if err != nil {
		return err
	}
	if z.life != s.first.life {
		s.first = z
	}
	s.figures.measured(z)
	if what := grown(s.first, z); what != "" {
		return fmt.Errorf("growth: %s", what)
	}
	return s.figures.goroutines(s.service.log.goroutines)
}

// await polls until seen returns nil; the error has what was seen last.
func await(ctx context.Context, patience time.Duration, description string, seen func() error) error {
	deadline := time.Now().Add(patience)
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := seen()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not within %s; last seen: %w", description, patience, err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}
