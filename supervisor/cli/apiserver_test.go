//go:build linux

package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// apiServer serves one Node, ConfigMaps and the Node's Lease, renewed at every look, as far as a supervisor asks: hundreds of
// supervisors cannot share a real one in the time of a test.
type apiServer struct {
	url string

	mu         sync.Mutex
	version    int
	node       corev1.Node
	maps       map[string]corev1.ConfigMap // by name
	edits      map[string]int              // version of the newest edit of each
	changed    chan struct{}               // closed at each change
	heartbeats int64                       // of the kubelet
	pods       []corev1.Pod                // that run on the Node
	given      []string                    // approvals
	cgroup     string                      // of the node's system
}

const nodeUID = "uid-of-n1"

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	a := &apiServer{version: 1, maps: map[string]corev1.ConfigMap{}, edits: map[string]int{}, changed: make(chan struct{})}
	a.node = corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: nodeUID, ResourceVersion: "1", Annotations: map[string]string{}}}
	server := httptest.NewServer(a)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	a.url = server.URL
	return a
}

func (a *apiServer) change(what func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	what()
	a.version++
	a.node.ResourceVersion = strconv.Itoa(a.version)
	close(a.changed)
	a.changed = make(chan struct{})
}

// put creates or edits a ConfigMap in kube-system. Its uid is that of its name, its resourceVersion counts its edits.
func (a *apiServer) put(name, payload string) {
	a.change(func() {
		edit, _ := strconv.Atoi(a.maps[name].ResourceVersion)
		a.edits[name] = a.version + 1
		a.maps[name] = corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: map[string]string{"kubelet": payload},
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, UID: types.UID("uid-" + name), ResourceVersion: strconv.Itoa(edit + 1)}}
	})
}

// assign annotates the Node with a ConfigMap's name; "" takes the annotation away.
func (a *apiServer) assign(name string) {
	a.change(func() {
		if delete(a.node.Annotations, "kubelet-supervisor.io/config-source"); name != "" {
			a.node.Annotations["kubelet-supervisor.io/config-source"] = "kube-system/" + name + "/kubelet"
		}
	})
}

// run has pods run on the Node.
func (a *apiServer) run(count int) {
	for i := range count {
		name := fmt.Sprint("pod-", i+1)
		a.pods = append(a.pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name),
			CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC))}, Status: corev1.PodStatus{Phase: corev1.PodRunning}})
	}
}

// approve is a person who reads what a held change asks for, and writes it.
func (a *apiServer) approve() {
	a.mu.Lock()
	_, approval, asks := strings.Cut(a.message(), nodev1.AllowDisruptionAnnotation+"=")
	asks = asks && a.node.Annotations[nodev1.AllowDisruptionAnnotation] != approval
	a.mu.Unlock()
	if asks {
		a.change(func() {
			annotations := maps.Clone(a.node.Annotations) // watchers may be reading the old
			annotations[nodev1.AllowDisruptionAnnotation] = approval
			a.node.Annotations = annotations
			a.given = append(a.given, approval)
		})
	}
}

// message is the condition's.
func (a *apiServer) message() (message string) {
	for _, c := range a.node.Status.Conditions {
		message = c.Message
	}
	return message
}

// shown is the condition's reason and the names of what is assigned, active and last known good, with their resourceVersions.
func (a *apiServer) shown() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var status corev1.NodeConfigStatus
	if err := json.Unmarshal([]byte(a.node.Annotations["kubelet-supervisor.io/config-status"]), &status); err != nil {
		return "nothing"
	}
	name := func(s *corev1.NodeConfigSource) string {
		if s == nil {
			return "local"
		}
		return s.ConfigMap.Name + "@" + s.ConfigMap.ResourceVersion
	}
	reason := ""
	for _, c := range a.node.Status.Conditions {
		reason = c.Reason
	}
	return fmt.Sprintf("%s assigned=%s active=%s lkg=%s", reason, name(status.Assigned), name(status.Active), name(status.LastKnownGood))
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	path, query := request.URL.Path, request.URL.Query()
	switch {
	case request.Method == http.MethodPost: // events
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprint(w, "{}")
	case strings.Contains(path, "/leases/"):
		_, _ = fmt.Fprintf(w, `{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"renewTime": %q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
	case request.Method == http.MethodPatch:
		a.patch(w, request)
	case query.Has("watch"):
		a.watch(w, request, path, strings.TrimPrefix(query.Get("fieldSelector"), "metadata.name="), query.Get("resourceVersion"))
	case strings.HasSuffix(path, "/pods"):
		respond(w, corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: append([]corev1.Pod{}, a.pods...)})
	case query.Has("fieldSelector"):
		a.list(w, path, strings.TrimPrefix(query.Get("fieldSelector"), "metadata.name="))
	default:
		a.mu.Lock()
		defer a.mu.Unlock()
		a.heartbeats++ // at every look the kubelet has posted its conditions again
		node := a.node
		node.Status.Conditions = append(slices.Clone(node.Status.Conditions), corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
			LastHeartbeatTime: metav1.Unix(a.heartbeats, 0)})
		respond(w, node)
	}
}

func respond(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// find gives the object of a collection and its version; nil when there is none.
func (a *apiServer) find(collection, name string) (object any, version int) {
	if strings.HasSuffix(collection, "/nodes") {
		version, _ = strconv.Atoi(a.node.ResourceVersion)
		return a.node, version
	}
	found, exists := a.maps[name]
	if !exists {
		return nil, 0
	}
	return found, a.edits[name]
}

func (a *apiServer) list(w http.ResponseWriter, collection, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	kind := "ConfigMapList"
	if strings.HasSuffix(collection, "/nodes") {
		kind = "NodeList"
	}
	items := []any{}
	if object, _ := a.find(collection, name); object != nil {
		items = append(items, object)
	}
	respond(w, map[string]any{"apiVersion": "v1", "kind": kind, "items": items, "metadata": map[string]any{"resourceVersion": strconv.Itoa(a.version)}})
}

func (a *apiServer) watch(w http.ResponseWriter, request *http.Request, collection, name, since string) {
	told, _ := strconv.Atoi(since)
	w.Header().Set("Content-Type", "application/json")
	w.(http.Flusher).Flush()
	for {
		a.mu.Lock()
		object, version := a.find(collection, name)
		changed := a.changed
		if object != nil && version > told {
			told = version
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": object})
			w.(http.Flusher).Flush()
		}
		a.mu.Unlock()
		select {
		case <-changed:
		case <-request.Context().Done():
			return
		}
	}
}

// patch merges what a supervisor patches: annotations and its condition.
func (a *apiServer) patch(w http.ResponseWriter, request *http.Request) {
	var patch struct {
		Metadata struct{ Annotations map[string]*string }
		Status   struct{ Conditions []corev1.NodeCondition }
	}
	if err := json.NewDecoder(request.Body).Decode(&patch); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.change(func() {
		annotations := map[string]string{} // a new one: watchers may be reading the old
		for key, value := range a.node.Annotations {
			annotations[key] = value
		}
		for key, value := range patch.Metadata.Annotations {
			if delete(annotations, key); value != nil {
				annotations[key] = *value
			}
		}
		a.node.Annotations, a.node.Status.Conditions = annotations, patch.Status.Conditions
		respond(w, a.node)
	})
}
