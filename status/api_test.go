package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// fakeAPI holds one Node and events. It is a transport without a network, so that tests run on the clock of
// testing/synctest. Its merging of patches knows only what the publisher sends.
type fakeAPI struct {
	mutex    sync.Mutex
	node     *corev1.Node
	cached   *corev1.Node // what it has in memory, where that is not what etcd has
	keeps    bool         // spec.configSource and status.config
	events   []corev1.Event
	requests []string             // "get", "patch", "post"
	patches  []string             // bodies
	fail     map[string]error     // by request; a code is answered, another error is no answer
	after    func(request string) // called with the lock held, before the answer goes out
	lost     error                // in place of each answer, of what was done all the same
	silent   map[string]bool      // requests that get no answer
	again    string               // the header Retry-After of each code
}

type code int

func (c code) Error() string { return fmt.Sprintf("code %d", int(c)) }

func newFakeAPI() *fakeAPI {
	return &fakeAPI{node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "node-uid", Annotations: map[string]string{"foreign": "stays"}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True"}}}}, fail: map[string]error{}}
}

func (f *fakeAPI) client(t *testing.T) rest.Interface {
	t.Helper()
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Node{}, &corev1.Event{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	client, err := rest.RESTClientFor(&rest.Config{Host: "http://api.test", Transport: f, QPS: -1, APIPath: "/api", ContentConfig: rest.ContentConfig{
		GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion()}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (f *fakeAPI) change(do func()) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	do()
}

// asked gives the requests since the last call.
func (f *fakeAPI) asked() string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	asked := strings.Join(f.requests, " ")
	f.requests = nil
	return asked
}

// RoundTrip answers one request.
func (f *fakeAPI) RoundTrip(request *http.Request) (*http.Response, error) {
	verb := strings.ToLower(request.Method)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.requests = append(f.requests, verb)
	if f.silent[verb] {
		f.mutex.Unlock()
		<-request.Context().Done()
		f.mutex.Lock()
	}
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	if err := f.fail[verb]; err != nil {
		c, answered := err.(code)
		if !answered {
			return nil, err
		}
		status := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: int32(c), Reason: reasons[c], Message: c.Error()}
		response := answer(int(c), status)
		if c == http.StatusTooManyRequests {
			status.Details = &metav1.StatusDetails{RetryAfterSeconds: 30}
			response = answer(int(c), status)
		}
		if f.again != "" {
			response.Header.Set("Retry-After", f.again)
		}
		return response, nil
	}
	var body []byte
	if request.Body != nil {
		body, _ = io.ReadAll(request.Body)
	}
	switch path := verb + " " + request.URL.Path; {
	case path == "post /api/v1/namespaces/default/events":
		var event corev1.Event
		if err := json.Unmarshal(body, &event); err != nil {
			return nil, err
		}
		f.events = append(f.events, event)
		if f.after != nil {
			f.after(verb)
		}
		return answer(http.StatusCreated, event), nil
	case path != "get /api/v1/nodes/n1" && path != "patch /api/v1/nodes/n1/status":
		return nil, fmt.Errorf("unexpected request %s", path)
	case f.node == nil:
		return answer(404, metav1.Status{Status: "Failure", Code: 404, Reason: metav1.StatusReasonNotFound}), nil
	case verb == "patch":
		if got := request.URL.Query().Get("fieldManager") + " " + request.Header.Get("Content-Type"); got != "kubelet-supervisor application/strategic-merge-patch+json" {
			return nil, fmt.Errorf("patched by %s", got)
		}
		f.patches = append(f.patches, string(body))
		if err := f.merge(body); err != nil {
			return nil, err
		}
	}
	if f.after != nil {
		f.after(verb)
	}
	if f.lost != nil {
		return nil, f.lost
	}
	node := f.node.DeepCopy()
	if f.cached != nil && request.URL.Query().Has("resourceVersion") {
		node = f.cached.DeepCopy()
	}
	node.APIVersion, node.Kind = "v1", "Node"
	return answer(200, node), nil
}

var reasons = map[code]metav1.StatusReason{400: metav1.StatusReasonBadRequest, 401: metav1.StatusReasonUnauthorized, 403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound, 409: metav1.StatusReasonAlreadyExists,
	429: metav1.StatusReasonTooManyRequests, 500: metav1.StatusReasonInternalError}

func answer(status int, body any) *http.Response {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(raw))}
}

func (f *fakeAPI) merge(body []byte) error {
	var patch struct {
		Metadata struct{ Annotations map[string]*string }
		Status   struct {
			Conditions []corev1.NodeCondition
			Config     map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &patch); err != nil {
		return err
	}
	for key, value := range patch.Metadata.Annotations {
		if delete(f.node.Annotations, key); value != nil {
			f.node.Annotations[key] = *value
		}
	}
	for _, condition := range patch.Status.Conditions {
		if old := nodev1.ConditionOf(f.node); old != nil {
			*old = condition
		} else {
			f.node.Status.Conditions = append(f.node.Status.Conditions, condition)
		}
	}
	if f.keeps && patch.Status.Config != nil {
		raw, err := json.Marshal(patch.Status.Config) // every field is in it, so that there is nothing to merge with
		if err != nil {
			return err
		}
		f.node.Status.Config = &corev1.NodeConfigStatus{}
		return json.Unmarshal(raw, f.node.Status.Config)
	}
	return nil
}
