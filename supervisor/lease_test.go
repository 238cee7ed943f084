package supervisor

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
)

// leaseServer answers looks at the Lease of n1.
type leaseServer struct {
	renewed time.Time
	cached  time.Time // what the API server remembers, where that is something else
	err     error
	looks   atomic.Int32
}

func (l *leaseServer) watch(trial time.Duration) *leaseWatch {
	w := newLeaseWatch(trial, func() (rest.Interface, string) { return (*rest.RESTClient)(nil), "n1" })
	w.look = func(_ context.Context, _ rest.Interface, nodeName string, cached bool) (time.Time, error) {
		if nodeName != "n1" {
			return time.Time{}, errors.New("of another Node")
		}
		l.looks.Add(1)
		if cached && !l.cached.IsZero() {
			return l.cached, nil
		}
		return l.renewed, l.err
	}
	return w
}

func TestGlance(t *testing.T) {
	lease := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	started := time.Unix(1_000_000, 0)
	for name, test := range map[string]struct {
		renewed time.Duration // after the child's start
		err     error
		want    decide.LeaseSeen
	}{
		"renewed by the child":                  {time.Second, nil, decide.LeaseSeen{Reachable: true, Renewed: true, Baseline: true}},
		"renewed by the one before":             {-30 * time.Second, nil, decide.LeaseSeen{Reachable: true, Baseline: true}},
		"not renewed by the one before, either": {-2 * time.Minute, nil, decide.LeaseSeen{Reachable: true}},
		"no Lease":                              {0, apierrors.NewNotFound(lease, "n1"), decide.LeaseSeen{Reachable: true}},
		"not allowed":                           {0, apierrors.NewForbidden(lease, "n1", errors.New("no")), decide.LeaseSeen{Problem: `leases.coordination.k8s.io "n1" is forbidden: no`}},
		"the API server fails":                  {0, apierrors.NewInternalError(errors.New("etcd is down")), decide.LeaseSeen{}},
		"no answer":                             {0, errors.New("connection refused"), decide.LeaseSeen{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := (&leaseServer{renewed: started.Add(test.renewed), err: test.err}).watch(time.Hour)
			w.newChild(started)
			if diff := cmp.Diff(test.want, w.glance(t.Context())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			test.want.Renewed = false // the same renewal is not another
			if diff := cmp.Diff(test.want, w.glance(t.Context())); diff != "" {
				t.Errorf("the second time (-want +got):\n%s", diff)
			}
		})
	}
}

// What the API server remembers may say that the Lease was renewed, but not that it was not: it may have lost etcd.
func TestARenewalIsMissedOnlyByEtcd(t *testing.T) {
	started := time.Unix(1_000_000, 0)
	for name, test := range map[string]struct {
		cached, renewed time.Duration // after the child's start
		err             error         // of the second look
		want            decide.LeaseSeen
		looks           int32
	}{
		"it remembers a renewal":                    {time.Second, 0, errors.New("not asked"), decide.LeaseSeen{Reachable: true, Renewed: true, Baseline: true}, 1},
		"it does not, but etcd does":                {-time.Second, time.Second, nil, decide.LeaseSeen{Reachable: true, Renewed: true, Baseline: true}, 2},
		"neither does":                              {-time.Second, -time.Second, nil, decide.LeaseSeen{Reachable: true, Baseline: true}, 2},
		"it does not, and etcd cannot be asked":     {-time.Second, 0, apierrors.NewInternalError(errors.New("etcd is down")), decide.LeaseSeen{}, 2},
		"it remembers what was two minutes ago, so": {-2 * time.Minute, 0, errors.New("no answer"), decide.LeaseSeen{}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			server := &leaseServer{cached: started.Add(test.cached), renewed: started.Add(test.renewed), err: test.err}
			w := server.watch(time.Hour)
			w.newChild(started)
			if diff := cmp.Diff(test.want, w.glance(t.Context())); diff != "" || server.looks.Load() != test.looks {
				t.Errorf("%d looks (-want +got):\n%s", server.looks.Load(), diff)
			}
		})
	}
}

func TestGlanceWithoutAConnection(t *testing.T) {
	w := newLeaseWatch(time.Hour, func() (rest.Interface, string) { return nil, "" })
	if seen := w.glance(t.Context()); seen != (decide.LeaseSeen{}) {
		t.Errorf("saw %+v", seen)
	}
}

func TestTheLeaseIsLookedAtOnlyWhenAsked(t *testing.T) {
	for name, test := range map[string]struct{ trial, interval time.Duration }{
		"a usual trial":      {10 * time.Minute, 10 * time.Second},
		"a short trial":      {30 * time.Second, 3 * time.Second},
		"a very short trial": {time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &leaseServer{err: errors.New("no answer")}
				w := server.watch(test.trial)
				var told atomic.Int32
				ctx, stop := context.WithCancel(t.Context())
				over := make(chan struct{})
				go func() {
					defer close(over)
					w.run(ctx, func(decide.LeaseSeen) { told.Add(1) })
				}()
				expect := func(when string, want int32) {
					t.Helper()
					synctest.Wait()
					if looks := server.looks.Load(); looks != want || told.Load() != want {
						t.Errorf("%s: %d looks, %d told, want %d", when, looks, told.Load(), want)
					}
				}
				pass := func(d time.Duration) { <-time.After(d) }
				pass(time.Hour)
				expect("off", 0)
				pass(test.interval / 2) // between two ticks
				w.turn(true)
				expect("at once when turned on", 1)
				w.turn(true)
				expect("on already", 1)
				pass(3 * test.interval)
				expect("each interval", 4)
				w.newChild(time.Now())
				expect("at once for another child", 5)
				w.turn(false)
				pass(time.Hour)
				expect("off again", 5)
				stop()
				<-over
			})
		})
	}
}
