package sync

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// What a Node's annotations and field say goes back onto the Node: it has to be short, and fit for people.
func FuzzAssignmentOf(f *testing.F) {
	f.Add("kube-system/a/kubelet", "", "kube-system", "a", "kubelet", "now")
	f.Add("local", "uid", "", "", "..", strings.Repeat("\x7f", 2_000))
	f.Fuzz(func(t *testing.T, annotation, uid, namespace, name, key, retry string) {
		source := &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{Namespace: namespace, Name: name, KubeletConfigKey: key}}
		source.ConfigMap.UID = "u"
		if uid == "" {
			source.ConfigMap.UID = ""
		}
		for _, a := range []assignment{
			assignmentOf(&annotation, source, []string{"kube-system"}),
			assignmentOf(nil, source, []string{"kube-system"}),
			assignmentOf(&annotation, nil, []string{"*"}),
		} {
			if len(a.text) > maxAssignment+len("…") {
				t.Errorf("an assignment of %d bytes is kept", len(a.text))
			}
			if a.problem == nil {
				continue
			}
			for _, words := range []string{a.problem.Error, a.problem.Words} {
				if len(words) > 4096 || !utf8.ValidString(words) || strings.Contains(words, "\n") {
					t.Errorf("unfit for people: %q", words)
				}
			}
		}
		if kept := retryOf(retry); len(kept) > maxAssignment {
			t.Errorf("a retry of %d bytes is kept", len(kept))
		}
	})
}

// An answer that is no Node or ConfigMap, from whatever answers in the API server's place, is a failure to look and nothing worse.
func FuzzAnswers(f *testing.F) {
	const kubelet = `{"metadata":{"name":"a","uid":"u","resourceVersion":"1"},"data":{"kubelet":"x"},"binaryData":{"b":"/w=="}}`
	const node = `{"metadata":{"name":"n1","uid":"n","annotations":{"` + nodev1.ConfigSourceAnnotation + `":"kube-system/a/kubelet"}}}`
	f.Add(200, []byte(`{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[`+node+`]}`), []byte(`{"kind":"ConfigMapList","apiVersion":"v1","items":[`+kubelet+`]}`))
	f.Add(200, []byte(`{"kind":"NodeList","apiVersion":"v1","items":[`+node+`]}`), []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":403}`))
	f.Add(500, []byte("oh"), []byte(`{"kind":"ConfigMapList","apiVersion":"v1","items":[{"metadata":null}]}`))
	f.Fuzz(func(t *testing.T, code int, nodes, configMaps []byte) {
		if code < 100 || code > 999 {
			code = http.StatusOK
		}
		client, err := NewClient(&rest.Config{Host: "http://api", QPS: -1, Transport: answerer(func(request *http.Request) *http.Response {
			body := nodes
			if strings.Contains(request.URL.Path, "configmaps") {
				body = configMaps
			}
			return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(body))), Request: request}
		})})
		if err != nil {
			t.Fatal(err)
		}
		follower := NewFollower(Options{Client: client, NodeName: "n1", Namespaces: []string{"*"}})
		v := &view{options: follower.options, logger: zap.NewNop()}
		look := func(o *object) seen {
			o.client, o.reached, o.logger = client, &follower.reachable, zap.NewNop()
			found, _, err := o.list(t.Context())
			return seen{found, err}
		}
		v.sawNode(look(follower.nodeObject()))
		if wanted := v.download(); wanted != nil {
			v.sawPayload(look(&object{resource: "configmaps", namespace: wanted.Namespace, name: wanted.Name}))
		}
		update, news := v.news()
		if news && update.Source != nil && (update.Source.UID == "" || update.Source.ResourceVersion == "") {
			t.Errorf("a source that names no version: %+v", update.Source)
		}
		if update.Problem != nil && (len(update.Problem.Words) > 4096 || !utf8.ValidString(update.Problem.Words)) {
			t.Errorf("unfit for people: %q", update.Problem.Words)
		}
	})
}
