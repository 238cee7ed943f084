//go:build linux

package pools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/scale/history"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/watch/dashboard"
)

// SoakOptions are those of Soak.
type SoakOptions struct {
	Time        time.Duration // how long there are rounds; the one that is under way is finished
	Seed        uint64        // of the sequence of acts
	Nodes       int           // but for the one with the real kubelet
	Machines    int           // of them: with a supervisor of their own, and a fake kubelet
	Controller  string
	Supervisor  string
	FakeKubelet string
	Watch       *dashboard.Options // a Prometheus reads the programs meanwhile, as these say; nil: none does, and nothing is told but by the real node
	Log         io.Writer
}

// A Soaked is what a soak has seen.
type Soaked struct {
	Seed     uint64         `json:"seed"`
	Took     time.Duration  `json:"took"`
	Nodes    int            `json:"nodes"`
	Machines int            `json:"machines"`
	Rounds   int            `json:"rounds"`  // each of which ended with all nodes on one good revision
	Longest  time.Duration  `json:"longest"` // that a round's end took to come
	Acts     map[string]int `json:"acts"`
	InVain   int            `json:"inVain"` // acts that the API server did not carry out, for it was away
	Ended    int            `json:"ended"`  // controllers that ended by themselves, and were started again
	// Spared: the first controller, the first supervisor above a fake kubelet and the one above the real kubelet are not killed or frozen, so that
	// growth in them can be seen. Runs of odd seeds are such.
	Spared bool `json:"spared"`

	Samples []Sample `json:"samples"`
	Minutes []Minute `json:"minutes"`

	Looked *dashboard.Looked `json:"-"` // nil: nobody watched, or there were no rounds

	history.Findings
}

const (
	hears         = 10 * time.Second // after which a controller has heard of everything, on a machine that is full
	actsEach      = 30               // in a round
	shortest      = 200 * time.Millisecond
	brief         = 4 * time.Second // from one act to the next, most of the time
	longest       = 20 * time.Second
	roundPatience = 6 * time.Minute
)

// soaker is a soak, under way.
type soaker struct {
	*rolling
	random  *rand.Rand
	watcher *dashboard.Dashboard // nil: nobody watches
	began   time.Time
	soaked  Soaked
	pods    int // of the next revision, so that each is another one
	beside  sync.WaitGroup

	mutex       sync.Mutex // guards what follows
	controllers [2]*cluster.Program
	frozen      [2]bool
	over        bool
}

// Soak lets a pool of nodes live through acts at random: revisions that are good, refused or deadly, people who interfere, and programs that are
// killed or frozen. Each round ends with all of that mended, and then one good revision has to come to every node. At the end all that the API
// server has noted is held against the rules of pools; what breaks one is among the findings.
func Soak(ctx context.Context, o SoakOptions) (*Soaked, error) {
	s := &soaker{random: rand.New(rand.NewPCG(o.Seed, 14)), pods: goodPods, soaked: Soaked{Seed: o.Seed, Nodes: o.Nodes + 1, Machines: o.Machines, Spared: o.Seed%2 == 1, Acts: map[string]int{}}}
	s.rolling = &rolling{measurement: &measurement{Options: Options{Nodes: o.Nodes + 1, Controller: o.Controller, Log: o.Log}, objects: true},
		options: RolloutOptions{Nodes: o.Nodes, Machines: o.Machines, Supervisor: o.Supervisor, FakeKubelet: o.FakeKubelet, Trial: 2 * time.Second, Metrics: o.machinePort(), Log: o.Log}}
	err := s.onCluster(ctx, "soak", func(ctx context.Context) (err error) {
		defer func() {
			s.endAll()
			if s.crew != nil {
				s.crew.end()
			}
			if s.machines != nil {
				err = errors.Join(err, s.machines.Stop())
			}
			if s.real != nil {
				err = errors.Join(err, s.real.stop())
			}
		}()
		s.keep = s.look
		if o.Watch != nil {
			s.watcher = dashboard.New(s.cluster, *o.Watch)
			defer s.watcher.Stop()
		}
		err = s.inTurn(ctx, []phase{
			{"manifests", s.install},
			{"Nodes", s.populate},
			{"the real kubelet", s.startReal},
			{"all speak", s.speak},
			{"the first revision", s.begin},
			{"rounds", func(ctx context.Context) error { return s.rounds(ctx, o.Time) }},
			{"the history", s.check},
		})
		return errors.Join(err, s.lookBack(ctx))
	})
	return &s.soaked, err
}

// begin makes the pool, and starts both controllers and who watches.
func (s *soaker) begin(ctx context.Context) (err error) {
	s.began = time.Now()
	s.pool.Spec.Rollout.ProgressDeadline = &metav1.Duration{Duration: 2 * time.Minute}
	for i := range s.controllers {
		if err := s.startController(i); err != nil {
			return err
		}
	}
	s.beside.Go(func() { s.watchControllers(ctx) })
	s.beside.Go(func() { s.sample(ctx) })
	if err := s.admin.Create(ctx, s.pool.DeepCopy()); err != nil {
		return err
	}
	if err := s.await(ctx, v1alpha1.ConditionReady, "Completed"); err != nil {
		return err
	}
	return s.startWatcher(ctx)
}

// rounds acts, and mends, until the time is over.
func (s *soaker) rounds(ctx context.Context, lasts time.Duration) error {
	defer func() { s.soaked.Took = time.Since(s.began) }()
	for ; time.Since(s.began) < lasts; s.soaked.Rounds++ {
		for range actsEach {
			if err := s.act(ctx); err != nil {
				return err
			}
			most := brief
			if s.random.IntN(3) == 0 {
				most = longest // so that some revisions come to a verdict
			}
			pause(ctx, shortest+time.Duration(s.random.Int64N(int64(most-shortest))))
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		begin := time.Now()
		if err := s.calm(ctx); err != nil {
			return fmt.Errorf("round %d of seed %d: %w", s.soaked.Rounds+1, s.soaked.Seed, err)
		}
		s.soaked.Longest = max(s.soaked.Longest, time.Since(begin))
		_, _ = fmt.Fprintf(s.Log, "%s round %d: all nodes run one revision after %.0f s\n", time.Since(s.began).Round(time.Second), s.soaked.Rounds+1, time.Since(begin).Seconds())
	}
	return nil
}

// check holds the history against the rules.
func (s *soaker) check(context.Context) error {
	log, err := os.Open(s.cluster.AuditLog())
	if err != nil {
		return err
	}
	defer log.Close()
	writes, err := history.Read(log)
	if err != nil {
		return err
	}
	s.soaked.Minutes = minutes(writes, s.began)
	s.soaked.Findings = *history.Check(writes, history.Options{Controller: controllerUser, Lag: hears, KindLabels: []string{gpuLabel, realLabel}})
	return nil
}
