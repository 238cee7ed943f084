package sync

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// The times and limits of docs/reference/contract.md.
func TestTimes(t *testing.T) {
	for name, row := range map[string][2]any{
		"requestsPerSecond": {requestsPerSecond, 50}, "requestsAtOnce": {requestsAtOnce, 100}, "maxAnswer": {maxAnswer, 16 << 20},
		"pollPeriod": {pollPeriod, time.Minute}, "pollsPerTry": {pollsPerTry, 10}, "minWatch": {minWatch, 5 * time.Minute}, "maxWatch": {maxWatch, 10 * time.Minute},
		"watchGrace": {watchGrace, 30 * time.Second}, "resumeWithin": {resumeWithin, 5 * time.Second}, "doubtFor": {doubtFor, 30 * time.Second},
		"steadyWatch": {steadyWatch, 10 * time.Second}, "maxAssignment": {maxAssignment, 1024}, "maxConsent": {maxConsent, 64}, "maxKeys": {maxKeys, 1024},
		"a line of foreign words": {len(oneLine(strings.Repeat("x", 1000))), 400},
	} {
		if row[0] != row[1] {
			t.Errorf("%s is %v, want %v", name, row[0], row[1])
		}
	}
}

func statusError(code int32, causes ...metav1.CauseType) error {
	status := metav1.Status{Code: code, Details: &metav1.StatusDetails{}}
	for _, cause := range causes {
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Type: cause})
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// From which ends of a watch the next one goes on, and from which it takes a LIST.
func TestEndsOfWatches(t *testing.T) {
	expired := apierrors.NewResourceExpired("too old")
	gone := statusError(http.StatusGone)
	for name, row := range map[string]struct {
		err       error
		resumable bool
		isFailure bool
	}{
		"in its time":              {nil, true, false},
		"asked for":                {errAskedAgain, false, false},
		"no answer":                {errNoAnswer, false, true},
		"the network":              {errors.New("connection refused"), true, true},
		"too many requests":        {statusError(429), true, true},
		"an internal error":        {statusError(500), true, true},
		"a time-out":               {statusError(504), true, true},
		"of a server that is new":  {statusError(504, metav1.CauseTypeResourceVersionTooLarge), false, true},
		"a forbidden one":          {statusError(403), true, true},
		"an unknown user":          {statusError(401), true, true},
		"a bad request":            {statusError(400), false, true},
		"not found":                {statusError(404), false, true},
		"an old place":             {expired, false, false},
		"an old place, by another": {gone, false, false},
	} {
		if got := resumable(row.err); got != row.resumable {
			t.Errorf("%s: resumable %t", name, got)
		}
		if got := ended(row.err); (got != nil) != row.isFailure || got != nil && !errors.Is(got, row.err) {
			t.Errorf("%s: a failure is %v", name, got)
		}
	}
}

// What a watch sends: what is told, how far it has come, and what ends it.
func TestEventsOfWatches(t *testing.T) {
	node := func(name, version string) runtime.Object {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
	}
	for name, row := range map[string]struct {
		kind   watch.EventType
		object runtime.Object
		told   string
		at     string
		fails  bool
	}{
		"a change":                  {watch.Modified, node("n1", "8"), "n1", "8", false},
		"a new one":                 {watch.Added, node("n1", "8"), "n1", "8", false},
		"its end":                   {watch.Deleted, node("n1", "8"), "gone", "8", false},
		"a bookmark":                {watch.Bookmark, node("", "8"), "", "8", false},
		"a bookmark with its name":  {watch.Bookmark, node("n1", "8"), "", "8", false},
		"another's change":          {watch.Modified, node("n2", "8"), "", "8", false},
		"without a version":         {watch.Modified, node("n1", ""), "n1", "7", false},
		"what is no object":         {watch.Modified, &metav1.Status{}, "", "7", false},
		"an error":                  {watch.Error, &metav1.Status{Code: 500}, "", "7", true},
		"an error that is a Node's": {watch.Error, node("n1", "8"), "", "7", true},
	} {
		told := ""
		o := &object{name: "n1", place: place{version: "7"}, found: func(_ context.Context, s seen) {
			told = "gone"
			if s.object != nil {
				told = s.object.GetName()
			}
		}}
		err := o.event(t.Context(), row.kind, row.object)
		if told != row.told || o.version != row.at || (err != nil) != row.fails {
			t.Errorf("%s: told %q, at %q, %v", name, told, o.version, err)
		}
	}
}

// In a namespace that is not allowed nothing is asked for.
func TestNothingIsAskedForElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.set(assigned("default/a/kubelet"))
		follow(t, api, nil)
		expectAsked(t, api, "list nodes", "watch nodes metadata")
	})
}

// Of a Node that is gone no ConfigMap is followed.
func TestNothingIsFollowedForANodeThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.set(configMap("a", "ua", "one"))
		api.set(assigned("kube-system/a/kubelet"))
		f := follow(t, api, nil)
		synctest.Wait()
		api.remove(assigned("kube-system/a/kubelet"))
		f.expect(t, "source kube-system/a/kubelet ua@101 = one", "gone")
		if open := api.open(); open != 1 {
			t.Errorf("%d watches are open, and there is no assignment", open)
		}
	})
}

// Whoever asks to look again is heard in every pause, and the pauses after it begin anew.
func TestReconsiderInEveryPause(t *testing.T) {
	refused := errors.New("connection refused")
	forbidden := apiFailure{code: 403, message: "no"}
	for name, row := range map[string]struct {
		before func(api *fakeAPI)
		want   string // is asked for at once
		tries  int    // in the 9 s after that: 1 s, 2 s, 4 s, ±20 %
	}{
		"after failures": {func(api *fakeAPI) {
			api.failWith(refused, "list nodes", "watch nodes")
			api.endWatches()
			elapse(time.Hour)
		}, "list nodes", 3},
		"before a watch goes on": {func(api *fakeAPI) { elapse(time.Minute); api.endWatches() }, "list nodes", 0},
		"after a watch that could not go on": {func(api *fakeAPI) {
			elapse(time.Minute)
			api.failWith(refused, "watch nodes")
			api.endWatches()
			elapse(resumeWithin + 30*time.Second)
		}, "list nodes", 0},
		"while a watch is forbidden": {func(api *fakeAPI) {
			elapse(time.Minute)
			api.failWith(forbidden, "watch nodes")
			api.endWatches()
			elapse(resumeWithin + 2*doubtFor)
		}, "list nodes", 0},
		"between two looks": {func(api *fakeAPI) {
			api.failWith(forbidden, "watch nodes", "list nodes")
			elapse(time.Minute)
			api.endWatches()
			elapse(5 * time.Minute)
			api.failWith(nil, "watch nodes", "list nodes")
		}, "list nodes", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.set(node(nil))
			f := follow(t, api, nil)
			synctest.Wait()
			row.before(api)
			synctest.Wait()
			api.asked()
			f.Reconsider()
			synctest.Wait()
			if asked := strings.Join(api.asked(), ", "); !strings.Contains(asked, row.want) {
				t.Errorf("%s: asked for %q at once, want %s", name, asked, row.want)
			}
			elapse(9 * time.Second)
			if tries := len(api.asked()); tries < row.tries {
				t.Errorf("%s: %d tries in the 9 s after it", name, tries)
			}
		})
	}
}

// emptyWatches is an API server whose watches end at once, and well.
type emptyWatches struct {
	*fakeAPI
	watches []time.Time
	status  int
	retry   string
}

func (e *emptyWatches) RoundTrip(request *http.Request) (*http.Response, error) {
	if !request.URL.Query().Has("watch") {
		return e.fakeAPI.RoundTrip(request)
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.watches = append(e.watches, time.Now())
	response := ok(nil)
	if e.status != 0 {
		response.StatusCode, response.Body = e.status, io.NopCloser(strings.NewReader("Too many requests, please try again later."))
		response.Header.Set("Retry-After", e.retry)
	}
	return response, nil
}

// Watches that end at once are put off more and more, beginning with a second; and for as long as an API server asks for.
func TestWatchesThatEndAtOnce(t *testing.T) {
	for range 20 { // the pauses are random
		synctest.Test(t, func(t *testing.T) {
			api := &emptyWatches{fakeAPI: newFakeAPI()}
			api.set(node(nil))
			followOf(t, api)
			elapse(10 * time.Minute)
			if n := len(api.watches); n > 30 || n < 8 {
				t.Errorf("%d watches in 10 min", n)
			}
			if pause := api.watches[1].Sub(api.watches[0]); pause > 1200*time.Millisecond || pause < 800*time.Millisecond {
				t.Errorf("the first pause is %s", pause)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		api := &emptyWatches{fakeAPI: newFakeAPI(), status: http.StatusTooManyRequests, retry: "60"}
		api.set(node(nil))
		followOf(t, api)
		elapse(10 * time.Minute)
		for i := range 5 {
			if pause := api.watches[i+1].Sub(api.watches[i]); pause < time.Minute-time.Second {
				t.Errorf("pause %d is %s, and a minute was asked for", i+1, pause)
			}
		}
	})
}

func followOf(t *testing.T, transport http.RoundTripper) {
	t.Helper()
	client, err := NewClient(restConfig(transport))
	if err != nil {
		t.Fatal(err)
	}
	f := NewFollower(Options{Client: client, NodeName: "n1"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = f.Run(ctx, func(Update) {})
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// A place that is too old is no failure: the LIST comes at once.
func TestAnOldPlaceTakesAListAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.set(node(nil))
		follow(t, api, nil)
		elapse(time.Minute)
		api.set(node(map[string]string{"x": "y"}))
		synctest.Wait()
		api.compact()
		api.version += 100
		api.oldest = api.version
		api.asked()
		api.endWatches()
		for range 6000 {
			elapse(time.Millisecond)
			if asked := strings.Join(api.asked(), " "); strings.Contains(asked, "watch") {
				if !strings.Contains(asked, "list nodes") {
					t.Errorf("asked for %s, and no list", asked)
				}
				return
			}
		}
		t.Error("it did not go on")
	})
}

// Forbidden is not believed for a while, and not asked for every second of it.
func TestTheDoubtIsCheap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.set(node(nil))
		f := follow(t, api, nil)
		elapse(time.Minute)
		api.failWith(apiFailure{code: 403, message: "no"}, "list nodes", "watch nodes", "get nodes")
		f.Reconsider()
		elapse(doubtFor - time.Second)
		if asked := api.asked(); len(asked) > 10 {
			t.Errorf("%d requests in %s: %v", len(asked), doubtFor, asked)
		}
	})
}

// Where an object is polled, a look that fails is tried again soon, with growing pauses.
func TestAPollThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.set(node(nil))
		api.failWith(apiFailure{code: 403, message: "no"}, "list nodes", "watch nodes")
		follow(t, api, nil)
		elapse(3*pollPeriod + pollPeriod/2) // in a row of ten looks
		var looks []time.Time
		api.mutex.Lock()
		api.fail["get nodes"] = func() error {
			looks = append(looks, time.Now())
			return errors.New("connection refused")
		}
		api.mutex.Unlock()
		elapse(5 * time.Minute)
		if len(looks) < 5 || len(looks) > 12 {
			t.Fatalf("%d looks in 5 min", len(looks))
		}
		for i, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			if pause := looks[i+1].Sub(looks[i]); pause < want*8/10 || pause > want*12/10 {
				t.Errorf("pause %d is %s, want %s", i+1, pause, want)
			}
		}
	})
}

// A list of pods is one request, handed over as it comes.
func TestOpenPods(t *testing.T) {
	api := &answers{code: 200, body: `{"items":[]}`}
	list, err := OpenPods(t.Context(), api.client(t), "n1", "77")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(list); err != nil || string(text) != api.body || list.Close() != nil {
		t.Errorf("it is %q, %v", text, err)
	}
	if query := api.last.Load().URL.Query(); query.Get("fieldSelector") != "spec.nodeName=n1" || query.Get("resourceVersion") != "77" || query.Get("resourceVersionMatch") != "NotOlderThan" {
		t.Errorf("asked for %v", query)
	}
	if CacheIsBehind(errors.New("x")) || CacheIsBehind(statusError(504)) || !CacheIsBehind(statusError(504, metav1.CauseTypeResourceVersionTooLarge)) {
		t.Error("a cache that is behind is not known by its answer alone")
	}
	api = &answers{code: 429, body: "{}", headers: http.Header{"Retry-After": {"1"}}}
	if list, err := OpenPods(t.Context(), api.client(t), "n1", "77"); err == nil || list != nil || !strings.Contains(err.Error(), "listing the pods of Node n1: ") || api.asked.Load() != 1 {
		t.Errorf("got %v, %v after %d requests", list, err, api.asked.Load())
	}
}

// Where a watch is forbidden, the object is listed once a minute, and a watch is tried once in ten.
func TestAForbiddenWatchIsSeldomTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.set(node(nil))
		api.failWith(apiFailure{code: 403, message: "no"}, "watch nodes")
		follow(t, api, nil)
		elapse(time.Hour)
		watches, lists := 0, 0
		for _, request := range api.asked() {
			if strings.HasPrefix(request, "watch") {
				watches++
			} else {
				lists++
			}
		}
		if watches > 8 || watches < 5 || lists > 70 || lists < 50 {
			t.Errorf("%d watches and %d lists in an hour", watches, lists)
		}
	})
}
