package sync

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	stdsync "sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// fakeAPI speaks as much of the API as a follower needs: GET, LIST and watch of Nodes and ConfigMaps by name. It is a
// transport without a network, so that tests run on the clock of testing/synctest.
type fakeAPI struct {
	mutex    stdsync.Mutex
	version  int
	objects  map[string]metav1.Object // by path
	fail     map[string]func() error  // by "verb resource": an apiFailure is answered, another error is no answer
	watchers map[*fakeWatcher]bool
	history  []fakeChange // what watches can go on from
	oldest   int          // version from which the history goes
	deaf     bool         // watches send nothing and never end, as on a connection that died
	requests []string
}

// errHang makes a request get no answer, until whoever asked gives up.
var errHang = errors.New("no answer")

type apiFailure struct {
	code       int
	message    string
	retryAfter int
}

func (a apiFailure) Error() string { return a.message }

func (a apiFailure) causes() []metav1.StatusCause {
	if strings.HasPrefix(a.message, "Too large resource version") {
		return []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: a.message}}
	}
	return nil
}

type fakeChange struct {
	version    int
	kind, path string
	object     metav1.Object
}

type fakeWatcher struct {
	path         string
	metadataOnly bool
	events       chan []byte // closed: the server ends the watch
}

func newFakeAPI() *fakeAPI {
	return &fakeAPI{version: 100, objects: map[string]metav1.Object{}, fail: map[string]func() error{}, watchers: map[*fakeWatcher]bool{}}
}

func (f *fakeAPI) client(t *testing.T) rest.Interface {
	t.Helper()
	client, err := NewClient(&rest.Config{Host: "http://api.test", Transport: f, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func pathOf(object metav1.Object) string {
	if object.GetNamespace() == "" {
		return "/api/v1/nodes/" + object.GetName()
	}
	return "/api/v1/namespaces/" + object.GetNamespace() + "/configmaps/" + object.GetName()
}

// set creates or replaces an object; it gets a new resourceVersion, and a uid unless it has one.
func (f *fakeAPI) set(object metav1.Object) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.version++
	object.SetResourceVersion(strconv.Itoa(f.version))
	kind := "MODIFIED"
	if f.objects[pathOf(object)] == nil {
		kind = "ADDED"
	}
	if object.GetUID() == "" {
		object.SetUID(types.UID("uid-" + object.GetName()))
	}
	f.objects[pathOf(object)] = object
	f.publish(kind, object)
}

func (f *fakeAPI) remove(object metav1.Object) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.version++
	object.SetResourceVersion(strconv.Itoa(f.version))
	delete(f.objects, pathOf(object))
	f.publish("DELETED", object)
}

// failWith makes requests such as "list configmaps" fail; nil heals them.
func (f *fakeAPI) failWith(err error, what ...string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, what := range what {
		f.fail[what] = func() error { return err }
	}
}

// endWatches ends all watches as an API server that is shut down does.
func (f *fakeAPI) endWatches() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for w := range f.watchers {
		close(w.events)
		delete(f.watchers, w)
	}
}

// compact forgets the history, and bookmark tells the watches how far they have come.
func (f *fakeAPI) compact() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.history, f.oldest = nil, f.version
}

func (f *fakeAPI) bookmark() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.version += 100
	for w := range f.watchers {
		w.events <- encode(map[string]any{"type": "BOOKMARK", "object": map[string]any{"apiVersion": "v1", "kind": "Node",
			"metadata": map[string]any{"resourceVersion": strconv.Itoa(f.version)}}})
	}
}

// expired is how an API server answers a watch from too old a version.
const expired = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old resource version"}}` + "\n"

// sendRaw writes a line into all watches.
func (f *fakeAPI) sendRaw(line string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for w := range f.watchers {
		w.events <- []byte(line + "\n")
	}
}

// asked gives the requests since the last call, such as "list nodes".
func (f *fakeAPI) asked() []string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	asked := f.requests
	f.requests = nil
	return asked
}

func (f *fakeAPI) publish(kind string, object metav1.Object) {
	f.history = append(f.history, fakeChange{f.version, kind, pathOf(object), object})
	for w := range f.watchers {
		if w.path == pathOf(object) {
			w.events <- event(kind, object, w.metadataOnly)
		}
	}
}

func event(kind string, object metav1.Object, metadataOnly bool) []byte {
	if metadataOnly {
		partial := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}}
		partial.Name, partial.Annotations, partial.UID, partial.ResourceVersion = object.GetName(), object.GetAnnotations(), object.GetUID(), object.GetResourceVersion()
		object = partial
	}
	return encode(map[string]any{"type": kind, "object": object})
}

func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return append(raw, '\n')
}

// RoundTrip answers one request.
func (f *fakeAPI) RoundTrip(request *http.Request) (*http.Response, error) {
	path, query, verb := request.URL.Path, request.URL.Query(), "get"
	if selector := query.Get("fieldSelector"); selector != "" {
		verb = "list"
		path += "/" + strings.TrimPrefix(selector, "metadata.name=")
	}
	if query.Has("watch") {
		verb = "watch"
	}
	resource := "configmaps"
	if strings.HasPrefix(path, "/api/v1/nodes/") {
		resource = "nodes"
	}

	f.mutex.Lock()
	defer f.mutex.Unlock()
	metadataOnly := strings.Contains(request.Header.Get("Accept"), "PartialObjectMetadata")
	if metadataOnly {
		f.requests = append(f.requests, verb+" "+resource+" metadata")
	} else {
		f.requests = append(f.requests, verb+" "+resource)
	}
	if fail := f.fail[verb+" "+resource]; fail != nil {
		if err := fail(); err != nil {
			return f.failure(err, request)
		}
	}
	object := f.objects[path]
	switch {
	case verb == "watch":
		return f.watch(request, path, metadataOnly)
	case verb == "list":
		return ok(f.listOf(resource, object)), nil
	case object == nil:
		return f.failure(apiFailure{code: http.StatusNotFound, message: resource + " not found"}, request)
	}
	return ok(encode(object)), nil
}

func (f *fakeAPI) listOf(resource string, object metav1.Object) []byte {
	items := []any{}
	if object != nil {
		items = append(items, object)
	}
	kind := map[string]string{"nodes": "NodeList", "configmaps": "ConfigMapList"}[resource]
	return encode(map[string]any{"apiVersion": "v1", "kind": kind, "items": items,
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(f.version)}})
}

func (f *fakeAPI) watch(request *http.Request, path string, metadataOnly bool) (*http.Response, error) {
	w := &fakeWatcher{path: path, metadataOnly: metadataOnly, events: make(chan []byte, 100)}
	f.watchers[w] = true
	since, _ := strconv.Atoi(request.URL.Query().Get("resourceVersion"))
	for _, change := range f.history {
		if change.path == path && change.version > since {
			w.events <- event(change.kind, change.object, metadataOnly)
		}
	}
	if since < f.oldest {
		w.events <- []byte(expired)
	}
	seconds, _ := strconv.Atoi(request.URL.Query().Get("timeoutSeconds"))
	if f.deaf {
		delete(f.watchers, w)
		seconds *= 1000
	}
	reader, writer := io.Pipe()
	go f.serve(request.Context(), w, writer, time.Duration(seconds)*time.Second)
	response := ok(nil)
	response.Body = reader
	return response, nil
}

// open is how many watches are.
func (f *fakeAPI) open() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return len(f.watchers)
}

func (f *fakeAPI) serve(ctx context.Context, w *fakeWatcher, body *io.PipeWriter, length time.Duration) {
	defer func() {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		delete(f.watchers, w)
	}()
	timeout := time.NewTimer(length)
	defer timeout.Stop()
	defer body.Close()
	for {
		select {
		case <-ctx.Done():
			body.CloseWithError(ctx.Err())
			return
		case <-timeout.C:
			return
		case raw, open := <-w.events:
			if !open {
				return
			}
			if _, err := body.Write(raw); err != nil {
				return
			}
		}
	}
}

func ok(body []byte) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body))}
}

func (f *fakeAPI) failure(err error, request *http.Request) (*http.Response, error) {
	if errors.Is(err, errHang) {
		f.mutex.Unlock()
		defer f.mutex.Lock()
		<-request.Context().Done()
		return nil, request.Context().Err()
	}
	answer, isAnswer := err.(apiFailure)
	if !isAnswer {
		return nil, fmt.Errorf("dial %s: %w", request.URL.Host, err)
	}
	reason := map[int]metav1.StatusReason{403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound, 410: metav1.StatusReasonExpired,
		429: metav1.StatusReasonTooManyRequests, 500: metav1.StatusReasonInternalError}[answer.code]
	response := ok(encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: int32(answer.code),
		Reason: reason, Message: answer.message, Details: &metav1.StatusDetails{RetryAfterSeconds: int32(answer.retryAfter), Causes: answer.causes()}}))
	response.StatusCode = answer.code
	return response, nil
}

// Objects of the tests.

func node(annotations map[string]string) *corev1.Node {
	return &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "node-uid", Annotations: annotations}}
}

func assigned(text string) *corev1.Node {
	return node(map[string]string{nodev1.ConfigSourceAnnotation: text})
}

func assignedByField(source *corev1.NodeConfigSource) *corev1.Node {
	n := node(nil)
	n.Spec.ConfigSource = source
	return n
}

func configMap(name, uid, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, UID: types.UID(uid)}, Data: map[string]string{"kubelet": value}}
}
