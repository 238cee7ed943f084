package sync

import (
	"bytes"
	"context"
	"errors"

	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// Only what the API server says of the object itself takes away what was resolved before.
func TestFinalAnswers(t *testing.T) {
	configMaps := schema.GroupResource{Resource: "configmaps"}
	for _, row := range []struct {
		err   error
		final bool
	}{
		{apierrors.NewForbidden(configMaps, "a", errors.New("no")), true},
		{apierrors.NewNotFound(configMaps, "a"), true},
		{apierrors.NewBadRequest("what?"), true},
		{apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "a", nil), true},
		{apierrors.NewInternalError(errors.New("etcd")), false},
		{apierrors.NewTooManyRequests("later", 1), false},
		{apierrors.NewServiceUnavailable("later"), false},
		{apierrors.NewUnauthorized("who?"), false},
		{errors.New("connection refused"), false},
		{context.DeadlineExceeded, false},
	} {
		if final(row.err) != row.final {
			t.Errorf("%v is final: %t", row.err, !row.final)
		}
	}
}

// The exact words of the removed feature, whatever the words for people are.
func TestErrorsOfWhatCannotBeRead(t *testing.T) {
	source := &corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: "a", KubeletConfigKey: "kubelet"}
	if p := unreadable(source, errors.New("x")); p.Error != downloadError || p.Malformed {
		t.Errorf("of a ConfigMap: %+v", p)
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n1", errors.New("no"))
	v := &view{options: Options{NodeName: "n1"}, logger: zap.NewNop()}
	if retarget := v.sawNode(seen{err: forbidden}); retarget {
		t.Error("a Node that cannot be read has something else downloaded")
	}
	if update, known := v.update(); !known || update.Problem == nil || update.Problem.Error != internalError || update.Problem.Malformed {
		t.Errorf("of the Node: %+v, %t", update.Problem, known)
	}
}

// A value of just as many bytes as there may be is taken as it is.
func TestTextsThatAreJustShortEnough(t *testing.T) {
	long := strings.Repeat("x", maxAssignment)
	if retry := long[len(`""`):]; retryOf(retry) != retry {
		t.Errorf("a retry of %d bytes is %q", len(retry), retryOf(retry))
	}
	if got := fromAnnotation(long, nil).text; got != long {
		t.Errorf("an assignment of %d bytes is %q", len(long), got)
	}
	for name, source := range map[string]*corev1.ConfigMapNodeConfigSource{
		"annotation": nil,
		"field":      {Namespace: strings.Repeat("n", maxAssignment), Name: "a", KubeletConfigKey: "k"},
	} {
		text := long + "x"
		a := fromAnnotation(text, nil)
		if source != nil {
			a = fromField(&corev1.NodeConfigSource{ConfigMap: source}, nil)
		}
		if len(a.text) > maxAssignment || a.problem == nil {
			t.Errorf("%s: %d bytes go back onto the Node, %+v", name, len(a.text), a.problem)
		}
	}
}

// Each part of an update is news.
func TestWhatIsNews(t *testing.T) {
	for name, other := range map[string]Update{
		"Text": {Text: "x"}, "NodeUID": {NodeUID: "x"}, "Local": {Local: true}, "NodeGone": {NodeGone: true}, "Retry": {Retry: "x"},
		"Consent": {Consent: "x"}, "Shadowed": {Shadowed: true}, "Problem": {Problem: &Problem{Words: "x"}},
		"Source": {Source: &corev1.ConfigMapNodeConfigSource{Name: "x"}},
	} {
		if (Update{}).same(other) || other.same(Update{}) || !other.same(other) {
			t.Errorf("another %s is no news", name)
		}
	}
}

// answers is an API server that gives each request the same answer, and counts them.
type answers struct {
	code    int
	body    string
	headers http.Header
	asked   atomic.Int64
	last    atomic.Pointer[http.Request]
}

func (a *answers) RoundTrip(request *http.Request) (*http.Response, error) {
	a.asked.Add(1)
	a.last.Store(request)
	header := a.headers.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Type", "application/json")
	return &http.Response{StatusCode: a.code, Header: header, Body: io.NopCloser(bytes.NewReader([]byte(a.body)))}, nil
}

func (a *answers) client(t *testing.T) rest.Interface {
	t.Helper()
	client, err := NewClient(&rest.Config{Host: "http://api.test", Transport: a, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// A request is one request: retries are the callers', who have backoffs of their own.
func TestARequestIsOneRequest(t *testing.T) {
	for name, ask := range map[string]func(context.Context, rest.Interface) error{
		"the Lease": func(ctx context.Context, client rest.Interface) error {
			_, err := ReadLease(ctx, client, "n1", false)
			return err
		},
		"the Node": func(ctx context.Context, client rest.Interface) error {
			_, err := ReadNode(ctx, client, "n1")
			return err
		},
		"a list": func(ctx context.Context, client rest.Interface) error {
			_, _, err := (&object{client: client, resource: "nodes", name: "n1", reached: &atomic.Bool{}}).list(ctx)
			return err
		},
		"a get": func(ctx context.Context, client rest.Interface) error {
			_, _, err := (&object{client: client, resource: "nodes", name: "n1", reached: &atomic.Bool{}}).get(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &answers{code: http.StatusTooManyRequests, body: `{"kind":"Status","apiVersion":"v1","code":429}`, headers: http.Header{"Retry-After": {"1"}}}
				if err := ask(t.Context(), api.client(t)); err == nil {
					t.Error("no error")
				}
				if asked := api.asked.Load(); asked != 1 {
					t.Errorf("%d requests", asked)
				}
			})
		})
	}
}

func TestReadNode(t *testing.T) {
	node, err := ReadNode(t.Context(), (&answers{code: 200, body: `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1"}}`}).client(t), "n1")
	if err != nil || node == nil || node.Name != "n1" {
		t.Errorf("got %+v, %v", node, err)
	}
	node, err = ReadNode(t.Context(), (&answers{code: 500, body: "{}"}).client(t), "n1")
	if err == nil || node != nil || !strings.Contains(err.Error(), "reading Node n1: ") {
		t.Errorf("of an answer that is none: %+v, %v", node, err)
	}
}

// What an answer of another kind gives is an error, and no object.
func TestAnswersOfAnotherKind(t *testing.T) {
	reached := &atomic.Bool{}
	o := &object{client: (&answers{code: 200, body: `{"kind":"Status","apiVersion":"v1","status":"Success"}`}).client(t), resource: "nodes", name: "n1", reached: reached}
	if found, _, err := o.list(t.Context()); err == nil || found != nil || !strings.Contains(err.Error(), "instead of a list of nodes") {
		t.Errorf("a list: %v, %v", found, err)
	}
	if !reached.Load() {
		t.Error("the API server answered, and counts as away")
	}
	reached.Store(false)
	if found, _, err := o.get(t.Context()); err == nil || found != nil || !strings.Contains(err.Error(), "instead of nodes") {
		t.Errorf("a get: %v, %v", found, err)
	}
	if !reached.Load() {
		t.Error("the API server answered, and counts as away")
	}
	o.client = (&answers{code: 404, body: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`}).client(t)
	if found, _, err := o.get(t.Context()); err != nil || found != nil {
		t.Errorf("an object that is not there: %v, %v", found, err)
	}
}

// When a permission is taken for lost, and when it is not.
func TestWhenAPermissionIsLost(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n1", errors.New("no"))
	away := errors.New("connection refused")
	for name, steps := range map[string][]struct {
		answer error
		after  time.Duration
		lost   bool
	}{
		"never had":                               {{forbidden, 0, true}, {forbidden, 0, true}},
		"had, and not for a while":                {{nil, 0, false}, {forbidden, 0, false}, {forbidden, doubtFor - 1, false}, {forbidden, 1, true}},
		"had, and given back in between":          {{nil, 0, false}, {forbidden, 0, false}, {nil, doubtFor - 1, false}, {forbidden, 2, false}},
		"had, and the API server was away":        {{nil, 0, false}, {away, 0, false}, {forbidden, time.Hour, false}, {forbidden, doubtFor, true}},
		"had by a watch that was asked to end":    {{errAskedAgain, 0, false}, {forbidden, 0, false}},
		"an API server that is away grants none":  {{away, 0, false}, {forbidden, 0, true}},
		"lost for good: it has to be had anew":    {{nil, 0, false}, {forbidden, 0, false}, {forbidden, doubtFor, true}, {away, 0, false}, {forbidden, 0, true}},
		"lost, and had again":                     {{nil, 0, false}, {forbidden, 0, false}, {forbidden, doubtFor, true}, {nil, 0, false}, {forbidden, 0, false}},
		"the time begins with the first refusal":  {{nil, time.Hour, false}, {forbidden, 0, false}, {forbidden, doubtFor - 1, false}},
		"and anew after an answer in between":     {{nil, 0, false}, {forbidden, 0, false}, {away, doubtFor / 2, false}, {forbidden, 0, false}, {forbidden, doubtFor - 1, false}},
		"what was had before the outage is still": {{nil, 0, false}, {away, 0, false}, {away, 0, false}, {forbidden, 0, false}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var g grant
				for i, step := range steps {
					time.Sleep(step.after) // of the bubble
					if got := g.lost(step.answer); got != step.lost {
						t.Fatalf("answer %d: lost is %t", i+1, got)
					}
				}
			})
		})
	}
}

// The settings of the caller are not touched, and those of the package are its own.
func TestNewClientLeavesItsConfig(t *testing.T) {
	api := &answers{code: 200, body: `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1"}}`, headers: http.Header{"Warning": {`299 - "deprecated"`}}}
	warned := 0
	config := &rest.Config{Host: "http://api.test", Transport: api, Timeout: time.Second, UserAgent: "somebody", WarningHandler: warnings{&warned},
		ContentConfig: rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf", AcceptContentTypes: "application/cbor"}}
	client, err := NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	if config.UserAgent != "somebody" || config.Timeout != time.Second || config.WrapTransport != nil || config.GroupVersion != nil || config.QPS != 0 {
		t.Errorf("the caller's settings are %+v", config)
	}
	if client.Client.Timeout != 0 {
		t.Errorf("a watch would end after %s", client.Client.Timeout)
	}
	if _, err := ReadNode(t.Context(), client, "n1"); err != nil || warned > 0 {
		t.Errorf("%v, %d warnings of the API server are passed on", err, warned)
	}
	if accept := api.last.Load().Header.Get("Accept"); accept != "application/json" {
		t.Errorf("accepts %q", accept)
	}
	client.Patch("application/merge-patch+json").Resource("nodes").Name("n1").Body([]byte("{}")).Do(t.Context())
	_ = client.Post().Resource("events").Body(&corev1.Event{}).Do(t.Context())
	if is := api.last.Load().Header.Get("Content-Type"); is != "application/json" {
		t.Errorf("writes %q", is)
	}
}

type warnings struct{ counted *int }

func (w warnings) HandleWarningHeader(int, string, string) { *w.counted++ }

// The limits of requests are the package's own only where the caller has none.
func TestLimitsOfRequests(t *testing.T) {
	own := flowcontrol.NewFakeAlwaysRateLimiter()
	for name, row := range map[string]struct {
		config rest.Config
		want   float32
		own    bool
	}{
		"none":            {rest.Config{}, requestsPerSecond, false},
		"the caller's":    {rest.Config{QPS: 7, Burst: 9}, 7, false},
		"its own limiter": {rest.Config{RateLimiter: own}, 1, true},
	} {
		row.config.Host = "http://api.test"
		client, err := NewClient(&row.config)
		if err != nil {
			t.Fatal(err)
		}
		if limiter := client.GetRateLimiter(); limiter.QPS() != row.want || (limiter == own) != row.own {
			t.Errorf("%s: %v requests a second", name, limiter.QPS())
		}
	}
	limiter := func() flowcontrol.RateLimiter {
		client, err := NewClient(&rest.Config{Host: "http://api.test"})
		if err != nil {
			t.Fatal(err)
		}
		return client.GetRateLimiter()
	}()
	atOnce := 0
	for limiter.TryAccept() {
		atOnce++
	}
	if atOnce < requestsAtOnce || atOnce > requestsAtOnce+requestsPerSecond {
		t.Errorf("%d requests at once", atOnce)
	}
}

func TestBoundedAnswersWithoutABody(t *testing.T) {
	response, err := boundedAnswers{answerer(func(*http.Request) *http.Response { return &http.Response{} })}.RoundTrip(httptest.NewRequest(http.MethodGet, "http://api/", nil))
	if err != nil || response.Body != nil {
		t.Errorf("got %+v, %v", response, err)
	}
}

// What is asked for before the follower runs is done when it does.
func TestReconsiderBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.set(node(nil))
		asked := func(before func(*Follower)) []string {
			f := NewFollower(Options{Client: api.client(t), NodeName: "n1"})
			before(f)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = f.Run(ctx, func(Update) {})
			}()
			synctest.Wait()
			cancel()
			<-done
			return slices.DeleteFunc(api.asked(), func(request string) bool { return request != "list nodes" })
		}
		for name, before := range map[string]func(*Follower){"Reconsider": (*Follower).Reconsider, "Refresh": (*Follower).Refresh} {
			if lists := asked(before); len(lists) != 2 {
				t.Errorf("%s before Run: %d lists", name, len(lists))
			}
		}
	})
}

// slowToEnd is a transport that takes a second to end when it is told to.
type slowToEnd struct{}

func (s *slowToEnd) RoundTrip(request *http.Request) (*http.Response, error) {
	<-request.Context().Done()
	<-time.After(time.Second)
	return nil, request.Context().Err()
}

// Run returns when all that it has begun has ended.
func TestRunWaitsForWhatItBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.set(assigned("kube-system/a/kubelet"))
		for name, transport := range map[string]http.RoundTripper{
			"the Node":      &slowToEnd{},
			"the ConfigMap": onlyNodes{api},
		} {
			client, err := NewClient(&rest.Config{Host: "http://api.test", Transport: transport, QPS: -1})
			if err != nil {
				t.Fatal(err)
			}
			f := NewFollower(Options{Client: client, NodeName: "n1", Namespaces: []string{"*"}})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan time.Time)
			go func() {
				_ = f.Run(ctx, func(Update) {})
				done <- time.Now()
			}()
			synctest.Wait()
			began := time.Now()
			cancel()
			if took := (<-done).Sub(began); took < time.Second {
				t.Errorf("%s: Run returned after %s, and a request was under way", name, took)
			}
		}
	})
}

// onlyNodes has Nodes, and takes a second to end a request for a ConfigMap.
type onlyNodes struct{ *fakeAPI }

func (o onlyNodes) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.Contains(request.URL.Path, "configmaps") {
		return (&slowToEnd{}).RoundTrip(request)
	}
	return o.fakeAPI.RoundTrip(request)
}

// The time of a download is that of what was assigned, and of an edit that came by itself the time when it came.
func TestWhenADownloadWasAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &view{options: Options{NodeName: "n1", Namespaces: []string{"*"}, MaxPayload: DefaultMaxPayload}, logger: zap.NewNop()}
		asked := func() time.Duration { update, _ := v.update(); return time.Since(update.Asked) }
		found := configMap("a", "ua", "one")
		found.ResourceVersion = "1"
		v.sawNode(seen{object: node(map[string]string{nodev1.ConfigSourceAnnotation: "kube-system/a/kubelet"})})
		time.Sleep(time.Second)
		v.sawPayload(seen{object: found})
		if took := asked(); took != time.Second {
			t.Errorf("a download took %s", took)
		}
		time.Sleep(time.Minute)
		v.sawPayload(seen{object: found})
		if took := asked(); took != 0 {
			t.Errorf("an edit that was watched took %s", took)
		}
		v.sawPayload(seen{err: apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "a")})
		time.Sleep(time.Minute)
		v.sawPayload(seen{object: found})
		if took := asked(); took != 0 {
			t.Errorf("one that was made a minute after the assignment took %s", took)
		}
	})
}

func restConfig(transport http.RoundTripper) *rest.Config {
	return &rest.Config{Host: "http://api.test", Transport: transport, QPS: -1}
}
