//go:build linux

package pools

import (
	"context"
	"fmt"
	"io"
	"slices"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/scale"
)

const (
	apiServer = "kube-apiserver"
	cohorts   = 4               // kinds of nodes, by their versions and architectures; each has a canary of its own in the first wave
	tail      = 3 * time.Second // after the last word, for what is still under way
	again     = 5 * time.Second // until a controller that has ended is started again: RestartSec of its unit
)

// RolloutOptions are those of MeasureRollout.
type RolloutOptions struct {
	Nodes       int
	Machines    int           // of them: with a real supervisor and a fake kubelet. The others are puppets
	Controller  string        // the shipped program
	Host        string        // what test/scale/scalehost builds
	Supervisor  string        // the shipped program: each machine's supervisor is a process of it. "": all of them are in one process of Host
	FakeKubelet string        // what test/fakekubelet builds
	Trial       time.Duration // of all nodes
	Settle      time.Duration // of the rollout by waves
	Refusals    int           // how many revisions a node refuses in the middle of them
	News        int           // how often a Node changes while decisions are measured
	Metrics     int           // of the machines, as scale.Options has it
	Log         io.Writer     // one line per step
}

// A Rollout is what was measured.
type Rollout struct {
	Nodes, Machines int
	Waves           Stage         // by the default waves, with the API server killed in the middle of one
	Restarts        int           // of the controller: it ends when it cannot renew its Lease for 10 s
	Away            time.Duration // from the API server's end until it noted the next assignment
	Together        Stage         // its canaries, and then all as fast as the controller sends
	Back            Stage         // the same, after the refused ones
	Refusals        []Refusal
	Decide          Decide
	Leader          cluster.Usage // after all that
	Most            float64       // MiB that the leader had resident at any time
}

// A Refusal is of a revision that a node refuses while it is assigned to all.
type Refusal struct {
	Assigned int           // to so many nodes
	After    int           // of these, when the API server had answered the verdict
	Last     time.Duration // from that answer until the last of them was received; 0: none was
}

// rolling is a measurement of rollouts, under way.
type rolling struct {
	*measurement
	options  RolloutOptions
	machines *scale.Machines
	real     *realNode // nil: there is none
	crew     *crew
	noted    noted
	names    []string // of all Nodes
	killed   time.Time
	rollout  Rollout
}

// MeasureRollout measures one pool over so many nodes, while its revisions are rolled out.
func MeasureRollout(ctx context.Context, o RolloutOptions) (*Rollout, error) {
	r := &rolling{measurement: &measurement{Options: Options{Nodes: o.Nodes, Controller: o.Controller, News: o.News, Log: o.Log}}, options: o,
		rollout: Rollout{Nodes: o.Nodes, Machines: o.Machines}}
	return &r.rollout, r.onCluster(ctx, "rollout", func(ctx context.Context) (err error) {
		defer func() {
			if r.crew != nil {
				r.crew.end()
			}
			if r.machines != nil {
				if stopped := r.machines.Stop(); err == nil {
					err = stopped
				}
			}
		}()
		r.noted.path, r.keep = r.cluster.AuditLog(), r.revive
		return r.inTurn(ctx, []phase{
			{"manifests", r.install},
			{"Nodes", r.populate},
			{"all speak", r.speak},
			{"by waves, with the API server killed", r.byWaves},
			{"together", r.together},
			{"decisions", r.decide},
			{"refused revisions", r.refusals},
			{"the way back", func(ctx context.Context) error { return r.revise(ctx, &r.rollout.Back, 300) }},
			{"memory", r.memory},
		})
	})
}

// populate makes all Nodes, Ready, and members of the pool.
func (r *rolling) populate(ctx context.Context) (err error) {
	r.pool = newPool()
	puppets := r.options.Nodes - r.options.Machines
	if r.machines, err = scale.MakeMachines(ctx, r.cluster, scale.Options{Nodes: r.options.Machines, Host: r.options.Host, Processes: r.options.Supervisor != "", Binary: r.options.Supervisor, FakeKubelet: r.options.FakeKubelet,
		Namespace: rollout.Namespace, Trial: r.options.Trial, Metrics: r.options.Metrics, Log: r.options.Log}); err != nil {
		return err
	}
	for i := range puppets {
		r.names = append(r.names, node(i).Name)
	}
	for name := range r.machines.Logs() {
		r.names = append(r.names, name)
	}
	slices.Sort(r.names[puppets:])
	return r.each(ctx, r.options.Nodes, func(ctx context.Context, i int) error {
		n := node(i)
		n.Name = r.names[i]
		if i < puppets {
			return r.admin.Create(ctx, n)
		}
		bare := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
		if err := r.admin.Patch(ctx, n.DeepCopy(), client.StrategicMergeFrom(bare)); err != nil {
			return err
		}
		return r.admin.Status().Patch(ctx, n, client.StrategicMergeFrom(bare))
	})
}

// speak starts puppets and supervisors, and waits until each has published that it runs its own configuration.
func (r *rolling) speak(ctx context.Context) (err error) {
	if r.crew, err = newCrew(ctx, r.cluster, r.names[:r.options.Nodes-r.options.Machines], r.options.Trial); err != nil {
		return err
	}
	if err := r.machines.Start(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		silent, err := r.unlike(ctx, func(n *rollout.Node) bool { return n.Supervised && n.Layered && n.Reason == "Local" })
		if err != nil || len(silent) == 0 {
			return err
		}
		pause(ctx, time.Second)
	}
}

// unlike names the Nodes that are not so.
func (r *rolling) unlike(ctx context.Context, is func(*rollout.Node) bool) (names []string, err error) {
	var all corev1.NodeList
	if err := r.admin.List(ctx, &all); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if n := rollout.ReadNode(&all.Items[i]); !is(&n) {
			names = append(names, n.Name)
		}
	}
	return names, nil
}

// byWaves makes the pool, with its waves and its budget as they are by default.
func (r *rolling) byWaves(ctx context.Context) (err error) {
	r.pool.Spec.Rollout.Settle = &metav1.Duration{Duration: r.options.Settle}
	if r.first, err = r.launch("first", metricsPort); err != nil {
		return err
	}
	n := r.options.Nodes
	err = r.stage(ctx, &r.rollout.Waves, limits{waves: []int{cohorts, (n + 9) / 10, (n + 1) / 2, n}, unavailable: max(1, n/10), settle: r.options.Settle},
		func(ctx context.Context) error {
			if err := r.admin.Create(ctx, r.pool.DeepCopy()); err != nil {
				return err
			}
			return r.kill(ctx, n*3/10) // in the middle of the third wave
		})
	if later := since(r.noted.assignments, r.killed); len(later) > 0 {
		r.rollout.Away = later[0].received.Sub(r.killed)
	}
	return err
}

// kill kills the API server when so many Nodes have been assigned to, and starts it again at once.
func (r *rolling) kill(ctx context.Context, assigned int) error {
	waits, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for begin := len(r.noted.assignments); len(r.noted.assignments)-begin < assigned; pause(waits, 50*time.Millisecond) {
		if err := r.noted.readOn(); err != nil {
			return err
		}
		if waits.Err() != nil {
			return fmt.Errorf("waiting for %d assignments, of which %d came: %w", assigned, len(r.noted.assignments)-begin, context.Cause(waits))
		}
	}
	r.killed = time.Now()
	if err := r.cluster.Signal(apiServer, syscall.SIGKILL); err != nil {
		return err
	}
	r.cluster.End(apiServer)
	return r.cluster.StartAPIServer(ctx)
}

// revive starts a controller again that has ended, as systemd does.
func (r *rolling) revive(ctx context.Context) (err error) {
	select {
	case <-r.first.Done:
	default:
		return nil
	}
	pause(ctx, again)
	r.rollout.Restarts++
	r.first, err = r.launch("first", metricsPort)
	return err
}

// together lets the pool have its canaries, and all others at once from now on.
func (r *rolling) together(ctx context.Context) error {
	body := []byte(`{"spec":{"rollout":{"settle":"0s","maxUnavailable":"100%","waves":[{"nodes":1},{"nodes":"100%"}]}}}`)
	if err := r.admin.Patch(ctx, &v1alpha1.KubeletPool{ObjectMeta: r.pool.ObjectMeta}, client.RawPatch(types.MergePatchType, body)); err != nil {
		return err
	}
	return r.revise(ctx, &r.rollout.Together, goodPods-1)
}

// revise rolls out another revision.
func (r *rolling) revise(ctx context.Context, s *Stage, pods int) error {
	n := r.options.Nodes
	return r.stage(ctx, s, limits{waves: []int{cohorts, n}, unavailable: n}, func(ctx context.Context) error { return r.setMaxPods(ctx, pods) })
}

// memory looks at the leader's.
func (r *rolling) memory(context.Context) (err error) {
	if r.rollout.Leader, err = cluster.UsageOf(r.first.PID()); err != nil {
		return err
	}
	r.rollout.Decide = r.figures.Decide
	r.rollout.Most, err = mostResident(r.first.PID())
	return err
}
