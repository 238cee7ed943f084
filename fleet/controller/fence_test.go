package controller

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// fakeLock is an election that always says what it is told.
type fakeLock struct {
	resourcelock.Interface
	err   error
	takes time.Duration
}

func (fakeLock) Identity() string { return "me" }

func (l *fakeLock) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	time.Sleep(l.takes)
	return l.err
}

func newTestLease(lock *fakeLock) *lease {
	begun := time.Now()
	return &lease{Interface: lock, duration: 15 * time.Second, monotonic: func() time.Duration { return time.Since(begun) }}
}

// A Lease is held until its duration after it was last asked for, and is not held any more before others are told.
func TestALeaseCountsFromTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := &fakeLock{takes: 4 * time.Second}
		l := newTestLease(lock)
		mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
		if l.outlasts(0) || l.waits() == 0 {
			t.Error("it leads before it was elected")
		}
		if err := l.Update(t.Context(), mine); err != nil {
			t.Fatal(err)
		}
		if got := l.waits(); got != requestTime {
			t.Errorf("a new leader waits %v", got)
		}
		if !l.outlasts(10*time.Second) || l.outlasts(11*time.Second) {
			t.Error("it does not count from the request")
		}
		time.Sleep(requestTime)
		if got := l.waits(); got != 0 {
			t.Errorf("after its time it waits %v", got)
		}
		lock.err = errors.New("no answer")
		_ = l.Update(t.Context(), mine)
		if l.outlasts(requestTime) { // 13 s after the request that was answered
			t.Error("a renewal that failed counts")
		}
		lock.err, lock.takes = nil, 0
		if err := l.Update(t.Context(), mine); err != nil || !l.outlasts(requestTime) || l.waits() != 0 {
			t.Errorf("renewed in time: outlasts %v, waits %v", l.outlasts(requestTime), l.waits())
		}
		lock.takes, lock.err = time.Second, errors.New("no answer")
		_ = l.Update(t.Context(), resourcelock.LeaderElectionRecord{})
		if l.outlasts(0) {
			t.Error("a Lease that is being given up is held")
		}
	})
}

// A Lease that has run out is taken anew: somebody else may have led in between.
func TestALeaseThatHasRunOutIsANewOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTestLease(&fakeLock{})
		mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
		for range 2 {
			if err := l.Update(t.Context(), mine); err != nil {
				t.Fatal(err)
			}
			if got := l.waits(); got != requestTime {
				t.Errorf("it waits %v", got)
			}
			time.Sleep(16 * time.Second)
		}
	})
}

// A Lease that somebody else has written is given up, and whoever takes it again waits: of two processes of the same identity neither writes.
func TestAConflictIsSomebodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := &fakeLock{}
		l := newTestLease(lock)
		mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
		if err := l.Update(t.Context(), mine); err != nil {
			t.Fatal(err)
		}
		time.Sleep(requestTime)
		lock.err = apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, Name, errors.New("changed"))
		if err := l.Update(t.Context(), mine); err == nil || l.outlasts(0) {
			t.Errorf("it leads after %v", err)
		}
		lock.err = nil
		if err := l.Update(t.Context(), mine); err != nil || l.waits() != requestTime {
			t.Errorf("taken again, it waits %v, %v", l.waits(), err)
		}
	})
}

// A pod is one holder of the Lease, whichever process is in it. Outside of pods each process is one.
func TestIdentity(t *testing.T) {
	if a, b := identityOf("host", "uid"), identityOf("host", "uid"); a != b || a != "host_uid" {
		t.Errorf("%s, %s", a, b)
	}
	if a, b := identityOf("host", ""), identityOf("host", ""); a == b {
		t.Errorf("two processes are %s", a)
	}
}

// What writes is sent only while the Lease outlasts it, and tells the API server when to give up.
func TestTheFence(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.RawQuery)
	}))
	defer server.Close()
	leads := &fakeLeader{true}
	client := http.Client{Transport: &fence{http.DefaultTransport, leads}}
	send := func(method string) error {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+"?fieldManager=x", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err == nil {
			_ = answer.Body.Close()
		}
		return err
	}
	for _, leading := range []bool{true, false} {
		leads.leads = leading
		for _, method := range []string{http.MethodGet, http.MethodPatch, http.MethodPost, http.MethodDelete} {
			err := send(method)
			if passes := leading || method == http.MethodGet; passes != (err == nil) || !passes && !errors.Is(err, errFenced) {
				t.Errorf("%s, leading %v: %v", method, leading, err)
			}
		}
	}
	if len(asked) != 5 || asked[0] != "GET fieldManager=x" || asked[1] != "PATCH fieldManager=x&timeout=5s" {
		t.Errorf("the API server was asked %q", asked)
	}
}

// The API server's time goes on between its answers, and its next answer counts.
func TestServerTime(t *testing.T) {
	elapsed := time.Duration(0)
	clock := &serverClock{monotonic: func() time.Duration { return elapsed }}
	if !clock.now().IsZero() {
		t.Error("it knows the time before it was told")
	}
	date := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", date.Format(http.TimeFormat))
	}))
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := dated{http.DefaultTransport, clock}.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	elapsed += 90 * time.Second
	if got := clock.now(); !got.Equal(date.Add(90 * time.Second)) {
		t.Errorf("it is %v", got)
	}
}
