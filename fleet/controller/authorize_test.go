package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reviews is an API server that knows two people, one of whom may read the metrics.
func reviews(t *testing.T, asked *int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		decode := func(into any) {
			*asked++
			if err := json.NewDecoder(r.Body).Decode(into); err != nil {
				t.Error(err)
			}
		}
		switch {
		case strings.HasSuffix(r.URL.Path, "/tokenreviews"):
			var review authenticationv1.TokenReview
			decode(&review)
			name, known := map[string]string{"good": "prometheus", "poor": "somebody"}[review.Spec.Token]
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: known, User: authenticationv1.UserInfo{Username: name, Groups: []string{"g"}}}
			_ = json.NewEncoder(w).Encode(review)
		case strings.HasSuffix(r.URL.Path, "/subjectaccessreviews"):
			var review authorizationv1.SubjectAccessReview
			decode(&review)
			at := review.Spec.NonResourceAttributes
			review.Status.Allowed = review.Spec.User == "prometheus" && len(review.Spec.Groups) == 1 && at.Path == "/metrics" && at.Verb == "get"
			_ = json.NewEncoder(w).Encode(review)
		case r.URL.Path == "/apis/authentication.k8s.io/v1":
			_, _ = w.Write([]byte(`{"kind":"APIResourceList","groupVersion":"authentication.k8s.io/v1","resources":[{"name":"tokenreviews","namespaced":false,"kind":"TokenReview","verbs":["create"]}]}`))
		case r.URL.Path == "/apis/authorization.k8s.io/v1":
			_, _ = w.Write([]byte(`{"kind":"APIResourceList","groupVersion":"authorization.k8s.io/v1","resources":[{"name":"subjectaccessreviews","namespaced":false,"kind":"SubjectAccessReview","verbs":["create"]}]}`))
		case r.URL.Path == "/apis":
			_, _ = w.Write([]byte(`{"kind":"APIGroupList","groups":[{"name":"authentication.k8s.io","versions":[{"groupVersion":"authentication.k8s.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"authentication.k8s.io/v1","version":"v1"}},{"name":"authorization.k8s.io","versions":[{"groupVersion":"authorization.k8s.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"authorization.k8s.io/v1","version":"v1"}}]}`))
		default:
			_, _ = w.Write([]byte(`{"kind":"APIVersions","versions":[]}`))
		}
	})
}

// door is what stands in front of the metrics, and whom the API server was asked about.
type door struct {
	*testing.T
	asked   int
	clock   *testingclock.FakePassiveClock
	handler http.Handler
}

func newDoor(t *testing.T) *door {
	t.Helper()
	d := &door{T: t, clock: testingclock.NewFakePassiveClock(time.Unix(0, 0))}
	server := httptest.NewServer(reviews(t, &d.asked))
	t.Cleanup(server.Close)
	asks, err := client.New(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, client.Options{HTTPClient: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	d.handler, err = newReviewers(asks, d.clock).filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("metrics")) }))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// get is the code that a request from this address gets.
func (d *door) get(from, authorization string) int {
	request := httptest.NewRequestWithContext(d.Context(), http.MethodGet, "/metrics", nil)
	request.RemoteAddr = from
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	answer := httptest.NewRecorder()
	d.handler.ServeHTTP(answer, request)
	if (answer.Code == http.StatusOK) != (answer.Body.String() == "metrics") {
		d.Errorf("with %d it reads %q", answer.Code, answer.Body)
	}
	return answer.Code
}

const (
	scraper  = "10.0.0.1:1"
	attacker = "10.0.0.2:1"
)

// Metrics are for those whom the API server lets get them.
func TestWhoMayReadTheMetrics(t *testing.T) {
	d := newDoor(t)
	for authorization, want := range map[string]int{"": 401, "Basic x": 401, "Bearer ": 401, "Bearer bad": 401, "Bearer poor": 403, "Bearer good": 200} {
		for range 2 {
			if got := d.get(scraper, authorization); got != want {
				t.Errorf("%q gets %d, not %d", authorization, got, want)
			}
		}
	}
}

// A token that the API server has refused is refused from memory, for a while; one that it has let through is let through so, for a shorter while.
func TestAnswersFromMemory(t *testing.T) {
	for token, test := range map[string]struct {
		code, asks int
		lasts      time.Duration
	}{"bad": {401, 1, unknownFor}, "poor": {403, 2, forbiddenFor}, "good": {200, 2, allowedFor}} {
		d := newDoor(t)
		look := func(when string, asks int) {
			if got := d.get(scraper, "Bearer "+token); got != test.code || d.asked != asks {
				t.Errorf("%s, %s: %d, and the API server was asked %d times, not %d", token, when, got, d.asked, asks)
			}
		}
		look("first", test.asks)
		d.clock.SetTime(d.clock.Now().Add(test.lasts - time.Second))
		look("from memory", test.asks)
		d.clock.SetTime(d.clock.Now().Add(2 * time.Second))
		look("forgotten", 2*test.asks)
	}
}

// While junk floods, each time another, the API server is asked about little of it, and a scraper is not kept out: neither one that comes for the
// first time, nor one that is known, even from the address of the flood.
func TestJunkKeepsNoScraperOut(t *testing.T) {
	d := newDoor(t)
	junk := 0
	flood := func() (put int) {
		for range 10 * remembered {
			junk++
			if d.get(attacker, fmt.Sprintf("Bearer junk %d", junk)) == http.StatusTooManyRequests {
				put++
			}
		}
		return put
	}
	if put := flood(); put != 10*remembered-reviewBurst || d.asked != reviewBurst {
		t.Errorf("%d were put off, and the API server was asked %d times", put, d.asked)
	}
	if got := d.get(scraper, "Bearer good"); got != http.StatusOK {
		t.Errorf("the scraper gets %d", got)
	}
	d.clock.SetTime(d.clock.Now().Add(time.Minute))
	flood()
	if got := d.get(attacker, "Bearer good"); got != http.StatusOK {
		t.Errorf("a token that is known gets %d", got)
	}
}

// Reviews wait for each other, strangers for strangers.
func TestFewReviewsAtOnce(t *testing.T) {
	now, most := 0, 0
	var mu sync.Mutex
	count := func(by int) {
		mu.Lock()
		defer mu.Unlock()
		now += by
		most = max(most, now)
	}
	of := newReviewers(slowReviews(func() {
		count(1)
		time.Sleep(10 * time.Millisecond)
		count(-1)
	}), clock.RealClock{})
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
			request.RemoteAddr = fmt.Sprintf("[2001:db8:%x::1]:1", i)
			request.Header.Set("Authorization", fmt.Sprintf("Bearer %d", i))
			if code, err := of.code(request); err != nil || code != http.StatusUnauthorized {
				t.Errorf("%d, %v", code, err)
			}
		})
	}
	all.Wait()
	if most > reviewsAtOnce {
		t.Errorf("there were %d at once", most)
	}
}

// slowReviews knows nobody, after a while.
type slowReviews func()

func (s slowReviews) Create(context.Context, client.Object, ...client.CreateOption) error {
	s()
	return nil
}

// A token that was good is not refused for a minute because the API server could not tell for a moment.
func TestAMomentWithoutAnAnswer(t *testing.T) {
	d := newDoor(t)
	of := asked{path: "/metrics", verb: "get"}
	r := newReviewers(nil, d.clock)
	r.remember(of, http.StatusOK, false)
	r.remember(of, http.StatusUnauthorized, true)
	if _, is := r.refused.Get(of); is {
		t.Error("it is refused from memory")
	}
	r.remember(of, http.StatusUnauthorized, false)
	if _, is := r.refused.Get(of); !is {
		t.Error("it is asked about for ever")
	}
}
