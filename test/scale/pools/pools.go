//go:build linux

package pools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// patience is for what takes some minutes.
const patience = 15 * time.Minute

// Options of Measure.
type Options struct {
	Nodes      int
	Controller string        // the shipped program
	Steady     time.Duration // how long nothing but heartbeats happens
	News       int           // how often a Node changes while decisions are measured
	Stops      int           // how many revisions are refused, so that the status has much to say
	Log        io.Writer     // one line per step
}

// Figures are what was measured.
type Figures struct {
	Nodes           int
	Leader, Standby cluster.Usage
	Most            float64 // MiB that the leader had resident at any time
	Steady          Steady
	Decide          Decide
	Status          int // bytes of JSON
	Stops, Failures int // that it names
}

// Steady is a time in which nothing but heartbeats happens.
type Steady struct {
	Took, Processor time.Duration // of the leader
	Heartbeats      int
	Requests        cluster.Requests // of both controllers
	Renewals        int              // of the Lease
	Writes          int              // but for these
}

// Decide is what the leader's metrics tell.
type Decide struct {
	Decisions int
	Mean      time.Duration
	// Processor is the leader's time for each decision, all of its turn and the news of it.
	Processor time.Duration
}

// measurement is one, under way.
type measurement struct {
	Options
	cluster *cluster.Cluster
	admin   client.WithWatch
	folder  string
	first   *cluster.Program
	second  *cluster.Program
	objects bool                        // the audit log has them
	keep    func(context.Context) error // looks after the first one while something is awaited; nil: nobody does
	pool    *v1alpha1.KubeletPool
	good    rollout.Write // what a node with the pool's first revision has
	figures Figures
}

// Measure measures the controller with so many Nodes.
func Measure(ctx context.Context, o Options) (*Figures, error) {
	m := &measurement{Options: o, figures: Figures{Nodes: o.Nodes}}
	return &m.figures, m.onCluster(ctx, "pools", func(ctx context.Context) error {
		answering, stop := context.WithCancel(ctx)
		var beside sync.WaitGroup
		defer beside.Wait()
		defer stop()
		return m.inTurn(ctx, []phase{
			{"manifests", m.install},
			{"Nodes", m.makeNodes},
			{"the revision completed", func(ctx context.Context) error {
				beside.Go(func() { m.answer(answering) })
				return m.complete(ctx)
			}},
			{"refused revisions", m.refuse},
			{"nodes that fail", m.fail},
			{"steady", m.steady},
			{"decisions", m.decide},
			{"status", m.status},
		})
	})
}

// onCluster brings a cluster up, measures, and takes it down together with the controllers.
func (m *measurement) onCluster(ctx context.Context, name string, measure func(context.Context) error) (err error) {
	name = fmt.Sprintf("%s-%d-%d", name, os.Getpid(), m.Nodes)
	if m.cluster, err = cluster.Up(ctx, cluster.Options{Name: name, Audit: true, Objects: m.objects, Log: m.Log}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.cluster.Down()) }()
	if m.folder, err = os.MkdirTemp("", "kubelet-supervisor-pools-"); err != nil {
		return err
	}
	defer os.RemoveAll(m.folder)
	defer m.end()
	return measure(ctx)
}

// A phase begins where the one before ended.
type phase struct {
	name string
	do   func(context.Context) error
}

func (m *measurement) inTurn(ctx context.Context, phases []phase) error {
	for _, phase := range phases {
		begin := time.Now()
		if err := phase.do(ctx); err != nil {
			return fmt.Errorf("%d nodes, %s: %w%s", m.Nodes, phase.name, err, m.words())
		}
		_, _ = fmt.Fprintf(m.Log, "%d nodes, %s: %.1f s\n", m.Nodes, phase.name, time.Since(begin).Seconds())
	}
	return nil
}

// complete starts the controllers, and waits until the pool is completed: all nodes have its revision, and say so.
func (m *measurement) complete(ctx context.Context) (err error) {
	if m.first, err = m.launch("first", metricsPort); err != nil {
		return err
	}
	if err := m.admin.Create(ctx, m.pool.DeepCopy()); err != nil {
		return err
	}
	if err := m.await(ctx, v1alpha1.ConditionReady, rollout.ReasonCompleted); err != nil {
		return err
	}
	m.second, err = m.launch("second", "0")
	return err
}

// refuse lets one revision after the other be refused by a node, and goes back to the first.
func (m *measurement) refuse(ctx context.Context) error {
	for i := range m.Stops {
		if err := m.setMaxPods(ctx, 1000+i); err != nil {
			return err
		}
		if err := m.await(ctx, v1alpha1.ConditionStalled, rollout.ReasonStopped); err != nil {
			return err
		}
	}
	if err := m.setMaxPods(ctx, goodPods); err != nil {
		return err
	}
	return m.await(ctx, v1alpha1.ConditionReady, rollout.ReasonCompleted)
}

func (m *measurement) setMaxPods(ctx context.Context, pods int) error {
	body := fmt.Appendf(nil, `{"spec":{"layers":[{"name":"density","inline":{"maxPods":%d}}]}}`, pods)
	return m.admin.Patch(ctx, &v1alpha1.KubeletPool{ObjectMeta: m.pool.ObjectMeta}, client.RawPatch(types.MergePatchType, body))
}

// await waits until the pool's newest generation has such a condition, and all nodes are known to it. The API server may be away meanwhile.
func (m *measurement) await(ctx context.Context, condition, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var p v1alpha1.KubeletPool
	for {
		if m.keep != nil {
			if err := m.keep(ctx); err != nil {
				return err
			}
		}
		err := m.admin.Get(ctx, client.ObjectKeyFromObject(m.pool), &p)
		if ctx.Err() != nil {
			return fmt.Errorf("waiting until %s is %s, and it is %+v: %w", condition, reason, p.Status.Conditions, errors.Join(ctx.Err(), err))
		}
		is := meta.FindStatusCondition(p.Status.Conditions, condition)
		if err == nil && p.Status.ObservedGeneration == p.Generation && is != nil && is.Reason == reason && int(p.Status.Nodes.Selected) == m.Nodes {
			return nil
		}
		pause(ctx, 100*time.Millisecond)
	}
}

func pause(ctx context.Context, for_ time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(for_):
	}
}

// status looks at the status as the API server has it.
func (m *measurement) status(ctx context.Context) error {
	var p v1alpha1.KubeletPool
	if err := m.admin.Get(ctx, client.ObjectKeyFromObject(m.pool), &p); err != nil {
		return err
	}
	text, err := json.Marshal(p.Status)
	m.figures.Status, m.figures.Stops, m.figures.Failures = len(text), len(p.Status.Stops), len(p.Status.Failures)
	return err
}
