//go:build linux

package supervisor

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
)

// leaseServer answers looks at the Lease of n1.
type leaseServer struct {
	lease  configsync.Lease
	cached configsync.Lease // what the API server remembers, where that is something else
	err    error
	looks  atomic.Int32
	asked  []bool // of each look: whether the memory will do
}

func (l *leaseServer) watch(trial time.Duration) *leaseWatch {
	w := newLeaseWatch(trial, func() (rest.Interface, string) { return (*rest.RESTClient)(nil), "n1" })
	w.look = func(_ context.Context, _ rest.Interface, nodeName string, cached bool) (configsync.Lease, error) {
		if nodeName != "n1" {
			return configsync.Lease{}, errors.New("of another Node")
		}
		l.looks.Add(1)
		l.asked = append(l.asked, cached)
		if cached && !l.cached.RenewTime.IsZero() {
			return l.cached, nil
		}
		return l.lease, l.err
	}
	return w
}

var (
	noLease   = apierrors.NewNotFound(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, "n1")
	leaseTime = time.Unix(1_000_000, 0)
)

// at is a Lease that was renewed so long after leaseTime.
func at(after time.Duration) configsync.Lease {
	return configsync.Lease{RenewTime: leaseTime.Add(after), Duration: 40 * time.Second}
}

func seen(renewed bool) core.LeaseSeen {
	return core.LeaseSeen{Reachable: true, Renewed: renewed, Duration: 40 * time.Second}
}

// A renewal is a renewTime that differs from the one before: whether it is earlier or later, or far from our own clock, says nothing.
func TestGlance(t *testing.T) {
	for name, test := range map[string]struct {
		first, second       configsync.Lease
		firstErr, secondErr error
		want                [2]core.LeaseSeen
	}{
		"renewed":                         {at(0), at(10 * time.Second), nil, nil, [2]core.LeaseSeen{seen(false), seen(true)}},
		"not renewed":                     {at(0), at(0), nil, nil, [2]core.LeaseSeen{seen(false), seen(false)}},
		"renewed, the clock was set back": {at(0), at(-10 * time.Minute), nil, nil, [2]core.LeaseSeen{seen(false), seen(true)}},
		"renewed, the clock was set on":   {at(0), at(24 * time.Hour), nil, nil, [2]core.LeaseSeen{seen(false), seen(true)}},
		"made":                            {at(0), at(0), noLease, nil, [2]core.LeaseSeen{{Reachable: true}, seen(true)}},
		"removed":                         {at(0), at(0), nil, noLease, [2]core.LeaseSeen{seen(false), {Reachable: true}}},
		"not allowed": {at(0), at(0), nil, apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "n1", errors.New("no")),
			[2]core.LeaseSeen{seen(false), {Problem: `leases "n1" is forbidden: no`}}},
		"the API server fails": {at(0), at(0), nil, apierrors.NewInternalError(errors.New("etcd is down")), [2]core.LeaseSeen{seen(false), {}}},
		"no answer at first":   {at(0), at(0), errors.New("connection refused"), nil, [2]core.LeaseSeen{{}, seen(false)}},
	} {
		t.Run(name, func(t *testing.T) {
			server := &leaseServer{lease: test.first, err: test.firstErr}
			w := server.watch(time.Hour)
			w.newChild(0)
			for i, want := range test.want {
				if diff := cmp.Diff(want, w.see(t.Context())); diff != "" {
					t.Errorf("look %d (-want +got):\n%s", i+1, diff)
				}
				server.lease, server.err = test.second, test.secondErr
			}
		})
	}
}

// The renewal by the kubelet before is not one by the next.
func TestTheReferenceIsOfTheChild(t *testing.T) {
	server := &leaseServer{lease: at(0)}
	w := server.watch(time.Hour)
	w.newChild(0)
	w.see(t.Context())
	w.newChild(0)
	server.lease = at(10 * time.Second) // the last one of the kubelet before
	if got := w.see(t.Context()); got.Renewed {
		t.Errorf("saw %+v", got)
	}
	server.lease = at(20 * time.Second)
	if got := w.see(t.Context()); !got.Renewed || got.RenewedBefore {
		t.Errorf("saw %+v", got)
	}
}

// But it tells that the one before renewed the Lease, whichever of the two it was, also over one that was never looked at.
func TestARenewalOverTheEndOfAKubelet(t *testing.T) {
	for name, test := range map[string]struct {
		after time.Duration
		want  bool
	}{"renewed": {10 * time.Second, true}, "not renewed": {0, false}} {
		t.Run(name, func(t *testing.T) {
			server := &leaseServer{lease: at(0)}
			w := server.watch(time.Hour)
			w.newChild(0)
			if got := w.see(t.Context()); got.RenewedBefore {
				t.Errorf("at first it saw %+v", got)
			}
			w.newChild(0)
			w.newChild(0)
			server.lease = at(test.after)
			if got := w.see(t.Context()); got.Renewed || got.RenewedBefore != test.want {
				t.Errorf("saw %+v", got)
			}
		})
	}
}

// What the API server remembers may say that the Lease was renewed later. It says nothing else: it may be behind, or have lost etcd.
func TestARenewalIsMissedOnlyByEtcd(t *testing.T) {
	for name, test := range map[string]struct {
		cached, stored configsync.Lease
		err            error // of etcd
		want           core.LeaseSeen
		asked          []bool // after the reference
	}{
		"it remembers a renewal":                {at(10 * time.Second), at(0), errors.New("not asked"), seen(true), []bool{true}},
		"it does not, but etcd does":            {at(0), at(10 * time.Second), nil, seen(true), []bool{true, false}},
		"neither does":                          {at(0), at(0), nil, seen(false), []bool{true, false}},
		"it is behind":                          {at(-10 * time.Second), at(0), nil, seen(false), []bool{true, false}},
		"it does not, and etcd cannot be asked": {at(0), at(0), apierrors.NewInternalError(errors.New("etcd is down")), core.LeaseSeen{}, []bool{true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			server := &leaseServer{lease: at(0)}
			w := server.watch(time.Hour)
			w.newChild(0)
			w.see(t.Context())
			if !slices.Equal(server.asked, []bool{false}) {
				t.Errorf("the reference is asked from memory: %v", server.asked)
			}
			server.asked, server.cached, server.lease, server.err = nil, test.cached, test.stored, test.err
			if diff := cmp.Diff(test.want, w.see(t.Context())); diff != "" || !slices.Equal(server.asked, test.asked) {
				t.Errorf("asked %v (-want +got):\n%s", server.asked, diff)
			}
		})
	}
}

func TestGlanceWithoutAConnection(t *testing.T) {
	w := newLeaseWatch(time.Hour, func() (rest.Interface, string) { return nil, "" })
	if seen := w.see(t.Context()); seen != (core.LeaseSeen{}) {
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
					w.run(ctx, func(core.LeaseSeen) { told.Add(1) })
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
				w.newChild(0)
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

// A kubelet that is started again and again costs one look at the Lease each time.
func TestOneLookAStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &leaseServer{lease: at(0)}
		w := server.watch(10 * time.Minute)
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			w.run(ctx, func(core.LeaseSeen) {})
		}()
		const starts = 5
		for range starts {
			w.turn(false)
			synctest.Wait()
			w.newChild(0)
			w.turn(true)
			synctest.Wait()
			w.turn(false)
			w.turn(true)
			synctest.Wait()
		}
		if looks := server.looks.Load(); looks != starts {
			t.Errorf("%d looks at %d starts", looks, starts)
		}
		stop()
		<-over
	})
}

// Kubelets up to 1.33 leave the duration of a Lease that is there as it was: what their configuration says counts as well.
func TestTheDurationOfAnotherConfiguration(t *testing.T) {
	server := &leaseServer{lease: at(0)}
	w := server.watch(time.Hour)
	w.newChild(5 * time.Minute)
	for look := range 2 {
		if got := w.see(t.Context()).Duration; got != 5*time.Minute {
			t.Errorf("look %d: a Lease of %s", look+1, got)
		}
	}
	w.newChild(20 * time.Second)
	if got := w.see(t.Context()).Duration; got != 40*time.Second {
		t.Errorf("the next kubelet: a Lease of %s", got)
	}
}
