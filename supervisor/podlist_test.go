//go:build linux

package supervisor

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/host"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
)

const tooLarge = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Timeout: Too large resource version: 9, current: 5","reason":"Timeout",
	"details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}`

// Each list of pods carries a resourceVersion, so that an API server before 1.31 reads nothing but its cache. What it has there is good enough if
// it has every pod that the container runtime runs, or where that does not answer, is as new as the Node; else the API server waits for it.
func TestNodePods(t *testing.T) {
	a, b, static := forecast.Sandbox{UID: "a", Source: "api"}, forecast.Sandbox{Namespace: "default", Name: "b", UID: "b", Source: "api"}, forecast.Sandbox{UID: "s", Source: "file"}
	list := func(version string, pods ...string) string {
		return fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"items":[%s]}`, version, strings.Join(pods, ","))
	}
	const podA, podB, endedB = `{"metadata":{"uid":"a"},"status":{"phase":"Running"}}`, `{"metadata":{"uid":"b"},"status":{"phase":"Running"}}`, `{"metadata":{"uid":"b"},"status":{"phase":"Succeeded"}}`
	for name, row := range map[string]struct {
		cached, waited string
		runtime        runtimeAnswer
		tries          int      // looks before this one that were not answered
		asked          []string // for which resourceVersions
		want           []string // uids
		err            string
	}{
		"as new as the Node":                         {cached: list("7", podA), runtime: runtimeAnswer{sandboxes: []forecast.Sandbox{a, static}}, asked: []string{"0"}, want: []string{"a"}},
		"as new, and the runtime does not answer":    {cached: list("7", podA), runtime: runtimeAnswer{err: errors.New("hangs")}, asked: []string{"0"}, want: []string{"a"}},
		"as new, without one that runs":              {cached: list("7", podA), waited: list("8", podA, podB), runtime: runtimeAnswer{sandboxes: []forecast.Sandbox{a, b}}, asked: []string{"0", "7"}, want: []string{"a", "b"}},
		"as new, without one that has ended since":   {cached: list("7", podA), waited: list("8", podA, endedB), runtime: runtimeAnswer{sandboxes: []forecast.Sandbox{a, b}}, asked: []string{"0", "7"}, want: []string{"a"}},
		"as new, and one is missing":                 {cached: list("7", podA), waited: list("7", podA), runtime: runtimeAnswer{sandboxes: []forecast.Sandbox{a, b}}, asked: []string{"0", "7"}, err: "does not list pod default/b, which runs"},
		"as new, and one is missing again":           {cached: list("7", podA), waited: list("7", podA), runtime: runtimeAnswer{sandboxes: []forecast.Sandbox{a, b}}, tries: 1, asked: []string{"0", "7"}, err: "does not list pod default/b, which runs"},
		"as new, and one is missing for long":        {cached: list("7", podA), waited: list("7", podA), runtime: runtimeAnswer{sandboxes: []forecast.Sandbox{a, b}}, tries: 2, asked: []string{"0", "7"}, want: []string{"a"}},
		"as new, without one, and no second answer":  {cached: list("7", podA), runtime: runtimeAnswer{sandboxes: []forecast.Sandbox{a, b}}, tries: 2, asked: []string{"0", "7"}, err: "listing the pods"},
		"older, with all that runs":                  {cached: list("5", podA, endedB), runtime: runtimeAnswer{sandboxes: []forecast.Sandbox{a, b, static}}, asked: []string{"0"}, want: []string{"a"}},
		"older, without one that runs":               {cached: list("5", podA), waited: list("7", podA, podB), runtime: runtimeAnswer{sandboxes: []forecast.Sandbox{a, b}}, asked: []string{"0", "7"}, want: []string{"a", "b"}},
		"older, and the next one lacks it too":       {cached: list("5", podA), waited: list("7", podA), runtime: runtimeAnswer{sandboxes: []forecast.Sandbox{a, b}}, asked: []string{"0", "7"}, err: "does not list pod default/b, which runs"},
		"older, and it stays so":                     {cached: list("5", podA), waited: tooLarge, runtime: runtimeAnswer{sandboxes: []forecast.Sandbox{a, b}}, asked: []string{"0", "7"}, err: "does not list pod default/b, which runs"},
		"older, and the runtime does not answer":     {cached: list("5", podA), waited: list("7", podA), runtime: runtimeAnswer{err: errors.New("hangs")}, asked: []string{"0", "7"}, want: []string{"a"}},
		"older, it stays so, and there is no CRI":    {cached: list("5", podA), waited: tooLarge, runtime: runtimeAnswer{err: host.ErrNoCRI}, asked: []string{"0", "7"}, want: []string{"a"}},
		"versions that are no numbers":               {cached: list("x", podA), waited: list("y", podA), asked: []string{"0", "7"}, want: []string{"a"}},
		"no answer":                                  {cached: "", asked: []string{"0"}, err: "listing the pods"},
		"no answer after the first":                  {cached: list("5"), waited: "", asked: []string{"0", "7"}, err: "listing the pods"},
		"a list that was cut":                        {cached: `{"metadata":{"resourceVersion":"7"},"items":[` + podA, asked: []string{"0"}, err: "reading a list of 1 pods"},
		"a list without metadata, as of old proxies": {cached: `{"items":[]}`, waited: list("7"), asked: []string{"0", "7"}, want: []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				query := r.URL.Query()
				if query.Get("resourceVersionMatch") != "NotOlderThan" || query.Get("fieldSelector") != "spec.nodeName=n1" {
					t.Errorf("the query is %v", query)
				}
				version := query.Get("resourceVersion")
				asked = append(asked, version)
				answer := map[string]string{"0": row.cached, "7": row.waited}[version]
				w.Header().Set("Content-Type", "application/json")
				if answer == "" {
					w.WriteHeader(http.StatusInternalServerError)
				} else if answer == tooLarge {
					w.WriteHeader(http.StatusGatewayTimeout)
				}
				_, _ = fmt.Fprint(w, answer)
			}))
			t.Cleanup(server.Close)
			client, err := configsync.NewClient(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}}
			got, err := inquiry{client: client, nodeName: "n1", tries: row.tries}.nodePods(t.Context(), node, func() runtimeAnswer { return row.runtime })
			if !slices.Equal(asked, row.asked) {
				t.Errorf("asked for were %v, want %v", asked, row.asked)
			}
			if row.err != "" {
				if err == nil || !strings.Contains(err.Error(), row.err) || got.pods != nil {
					t.Errorf("%+v, %v, want an error with %q", got.pods, err, row.err)
				}
				return
			}
			uids := []string{}
			for _, pod := range got.pods {
				uids = append(uids, string(pod.UID))
			}
			if err != nil || got.pods == nil || !slices.Equal(uids, row.want) {
				t.Errorf("%v, %v, want %v", uids, err, row.want)
			}
		})
	}
}
