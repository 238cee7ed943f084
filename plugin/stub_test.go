package plugin

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/thief"
)

// A stub is an API server that has some objects, asks for the token, and hands on what a kubelet answers. Other than client-go's fakes it is
// asked by HTTP, so that the whole way of a request is tried.
type stub struct {
	*httptest.Server
	base map[string][]byte // by key

	mutex   sync.Mutex
	kubelet http.HandlerFunc
	objects map[string][]byte
	asked   []string // of the API server
	proxied int      // what was asked of kubelets
	warns   []string // headers of each answer of the API server
}

// stubKinds are the kinds it knows, by the resource.
var stubKinds = map[string]string{"nodes": "Node", "pods": "Pod", "configmaps": "ConfigMap", "events": "Event", "roles": "Role", "rolebindings": "RoleBinding",
	"kubeletpools": "KubeletPool", "kubeletrolloutbudgets": "KubeletRolloutBudget", "controllerrevisions": "ControllerRevision", "leases": "Lease",
	"subjectaccessreviews": "SubjectAccessReview", "selfsubjectreviews": "SelfSubjectReview"}

func newStub(t *testing.T, objects ...runtime.Object) *stub {
	t.Helper()
	s := &stub{base: map[string][]byte{}}
	for _, object := range objects {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		var content map[string]any
		if err := json.Unmarshal(text, &content); err != nil {
			t.Fatal(err)
		}
		if kinds, _, err := scheme.Scheme.ObjectKinds(object); err == nil {
			content["apiVersion"], content["kind"] = kinds[0].GroupVersion().String(), kinds[0].Kind
		}
		s.base[stubKeyOf(content)], _ = json.Marshal(content)
	}
	s.behind(nil)
	s.Server = httptest.NewTLSServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// behind puts a kubelet behind it, and everything else back to what it was.
func (s *stub) behind(kubelet http.HandlerFunc) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.kubelet, s.objects, s.asked, s.proxied = kubelet, maps.Clone(s.base), nil, 0
}

// heard is what was asked of the API server, and how often a kubelet was.
func (s *stub) heard() (asked []string, proxied int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.asked), s.proxied
}

func (s *stub) serve(w http.ResponseWriter, r *http.Request) {
	code, answer := http.StatusUnauthorized, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":401,"reason":"Unauthorized"}`)
	if r.Header.Get("Authorization") == "Bearer "+thief.Token {
		s.mutex.Lock()
		proxied, kubelet := strings.Contains(r.URL.Path, "/proxy/"), s.kubelet
		if proxied {
			s.proxied++
		} else {
			s.asked = append(s.asked, r.Method+" "+r.URL.Path)
			code, answer = s.answer(r)
		}
		s.mutex.Unlock()
		if proxied {
			kubelet(w, r)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header()["Warning"] = s.warns
	w.WriteHeader(code)
	_, _ = w.Write(answer)
}

// stubKeyOf is what an object is kept by: version, namespace, resource and name.
func stubKeyOf(content map[string]any) string {
	meta, _ := content["metadata"].(map[string]any)
	for resource, kind := range stubKinds {
		if kind == content["kind"] {
			return stubKey(content["apiVersion"], meta["namespace"], resource, meta["name"])
		}
	}
	panic(fmt.Sprintf("a stub knows nothing of the kind %v", content["kind"]))
}

func stubKey(version, namespace, resource, name any) string {
	if namespace == nil {
		namespace = ""
	}
	return fmt.Sprintf("%v %v %v/%v", version, namespace, resource, name)
}

func (s *stub) answer(r *http.Request) (code int, answer []byte) {
	parts := strings.Split(strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/"), "/api/"), "/")
	version := parts[0]
	if strings.HasPrefix(r.URL.Path, "/apis/") && len(parts) > 1 {
		version, parts = version+"/"+parts[1], parts[1:]
	}
	parts = append(parts[1:], "", "")
	namespace := ""
	if parts[0] == "namespaces" && len(parts) > 4 {
		namespace, parts = parts[1], parts[2:]
	}
	resource, at := parts[0], stubKey(version, namespace, parts[0], parts[1])
	kind, known := stubKinds[resource]
	if !known {
		return http.StatusNotFound, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound","message":"no such kind"}`)
	}
	found, is := s.objects[at]
	body, _ := io.ReadAll(r.Body)
	switch {
	case resource == "subjectaccessreviews":
		return http.StatusCreated, []byte(`{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`)
	case r.Method == http.MethodPost:
		return http.StatusCreated, asJSON(body)
	case r.Method == http.MethodGet && parts[1] == "":
		return http.StatusOK, s.list(version, namespace, resource, kind)
	case !is:
		return http.StatusNotFound, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound","message":"it is not there"}`)
	case r.Method == http.MethodPatch:
		return s.patch(at, found, body)
	}
	return http.StatusOK, found
}

// asJSON is an object that was sent as protobuf, as clients of Kubernetes' own kinds do, or as JSON.
func asJSON(body []byte) []byte {
	object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return body
	}
	object.GetObjectKind().SetGroupVersionKind(*kind)
	body, _ = json.Marshal(object)
	return body
}

func (s *stub) list(version, namespace, resource, kind string) []byte {
	var items []string
	for _, at := range slices.Sorted(maps.Keys(s.objects)) {
		if key := strings.Fields(strings.Replace(at, "  ", " - ", 1)); key[0] == version && (namespace == "" || key[1] == namespace) && strings.HasPrefix(key[2], resource+"/") {
			items = append(items, string(s.objects[at]))
		}
	}
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"7"},"items":[%s]}`, version, kind+"List", strings.Join(items, ","))
}

func (s *stub) patch(at string, before, body []byte) (code int, answer []byte) {
	change, err := yaml.YAMLToJSON(body)
	if err == nil {
		answer, err = jsonpatch.MergePatch(before, change)
	}
	if err != nil {
		return http.StatusBadRequest, fmt.Appendf(nil, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":400,"message":%q}`, err)
	}
	s.objects[at] = answer
	return http.StatusOK, answer
}
