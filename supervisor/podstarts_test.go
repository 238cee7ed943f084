//go:build linux

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// Which pods say something of sandboxes: those that wait for nothing else.
func TestReadPodStarts(t *testing.T) {
	const noSandbox, sandbox = `{"type":"PodReadyToStartContainers","status":"False"}`, `{"type":"PodReadyToStartContainers","status":"True"}`
	pod := func(spec, status string) string {
		return fmt.Sprintf(`{"metadata":{"namespace":"a","name":"b","uid":"u"},"spec":{%s},"status":{%s}}`, spec, status)
	}
	pending := func(spec string) string { return pod(spec, `"phase":"Pending","conditions":[`+noSandbox+`]`) }
	for name, test := range map[string]struct {
		pod            string
		started, waits bool
	}{
		"no sandbox yet":      {pending(""), false, true},
		"nothing is said":     {pod("", `"phase":"Pending","conditions":[{"type":"PodScheduled","status":"True"}]`), false, false},
		"a sandbox":           {pod("", `"phase":"Pending","conditions":[`+sandbox+`]`), true, false},
		"it runs":             {pod("", `"phase":"Running"`), true, false},
		"it has run":          {pod("", `"phase":"Succeeded","conditions":[`+noSandbox+`]`), true, false},
		"it was refused":      {pod("", `"phase":"Failed","reason":"OutOfpods","conditions":[`+noSandbox+`]`), false, false},
		"it is being removed": {strings.Replace(pending(""), `"uid":`, `"deletionTimestamp":"2026-01-01T00:00:00Z","uid":`, 1), false, false},
		"volumes that wait for nobody": {pending(`"volumes":[{"emptyDir":{}},{"downwardAPI":{}},{"hostPath":{"path":"/"}},{"projected":{"sources":[{"serviceAccountToken":{}},` +
			`{"configMap":{"name":"kube-root-ca.crt"}},{"downwardAPI":{}}]}}]`), false, true},
		"a ConfigMap":                  {pending(`"volumes":[{"name":"c","configMap":{"name":"c"}}]`), false, false},
		"a Secret, projected":          {pending(`"volumes":[{"projected":{"sources":[{"serviceAccountToken":{}},{"secret":{"name":"s"}}]}}]`), false, false},
		"another ConfigMap, projected": {pending(`"volumes":[{"projected":{"sources":[{"configMap":{"name":"c"}}]}}]`), false, false},
		"a claim":                      {pending(`"volumes":[{"emptyDir":{}},{"persistentVolumeClaim":{"claimName":"c"}}]`), false, false},
		"a path of a kind":             {pending(`"volumes":[{"hostPath":{"path":"/x","type":"Socket"}}]`), false, false},
		"a runtime class":              {pending(`"runtimeClassName":"gvisor"`), false, false},
		"users of its own":             {pending(`"hostUsers":false`), false, false},
		"the host's users":             {pending(`"hostUsers":true`), false, true},
		"a device that is claimed":     {pending(`"resourceClaims":[{"name":"gpu"}]`), false, false},
	} {
		pods, err := readPodStarts(strings.NewReader(`{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[` + test.pod + `]}`))
		want := []podStart{{uid: "u", name: "a/b", started: test.started, waits: test.waits}}
		if diff := cmp.Diff(want, pods, cmp.AllowUnexported(podStart{})); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for _, broken := range []string{"", "[]", `{"items":7}`, `{"items":[{]}`, `{"items":[{}`, `{"items":[{"spec":{"volumes":7}}]}`} {
		if pods, err := readPodStarts(strings.NewReader(broken)); err == nil {
			t.Errorf("%q is read as %v", broken, pods)
		}
	}
}

func FuzzReadPodStarts(f *testing.F) {
	f.Add(`{"items":[{"metadata":{"uid":"u"},"spec":{"volumes":[{"projected":{"sources":[{}]}}]},"status":{"phase":"Pending","conditions":[{"type":"PodReadyToStartContainers","status":"False"}]}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		pods, err := readPodStarts(strings.NewReader(text))
		for _, p := range pods {
			if p.started && p.waits {
				t.Errorf("%+v both waits and was started", p)
			}
		}
		if err == nil {
			var s podStarts
			s.look(nil, 0)
			s.look(pods, 1)
		}
	})
}

// What the pods that come in a trial say of it.
func TestPodStarts(t *testing.T) {
	p := func(name string, started, waits bool) podStart {
		return podStart{uid: types.UID("of-" + name), name: name, started: started, waits: waits}
	}
	fine := core.PodStarts{Known: true}
	for name, test := range map[string]struct {
		looks [][]podStart // the first one is of the pods of before; each is 40 s later
		want  core.PodStarts
	}{
		"the first look":                   {[][]podStart{{p("a", true, false)}}, fine},
		"none came":                        {[][]podStart{{p("a", true, false)}, {p("a", true, false)}}, fine},
		"one came and was started":         {[][]podStart{{}, {p("b", true, false)}}, core.PodStarts{Known: true, Started: true}},
		"one came and waits":               {[][]podStart{{p("a", true, false)}, {p("a", true, false), p("b", false, true)}}, core.PodStarts{Known: true, Waiting: "b"}},
		"and waits":                        {[][]podStart{{}, {p("b", false, true)}, {p("b", false, true)}}, core.PodStarts{Known: true, Waiting: "b"}},
		"for long":                         {[][]podStart{{}, {p("b", false, true)}, {p("b", false, true)}, {p("b", false, true)}}, core.PodStarts{Known: true, Waiting: "b", Failing: true}},
		"another one since a moment":       {[][]podStart{{}, {p("b", false, true)}, {p("b", false, true)}, {p("c", false, true), p("b", false, true)}}, core.PodStarts{Known: true, Waiting: "b, c", Failing: true}},
		"another one, in its place":        {[][]podStart{{}, {p("b", false, true)}, {p("b", false, true)}, {p("c", false, true)}}, core.PodStarts{Known: true, Waiting: "c"}},
		"one waits, and one was started":   {[][]podStart{{}, {p("b", false, true)}, {p("b", false, true), p("c", true, false)}, {p("b", false, true)}}, core.PodStarts{Known: true, Started: true}},
		"it was started in the end":        {[][]podStart{{}, {p("b", false, true)}, {p("b", false, true)}, {p("b", false, true)}, {p("b", true, false)}}, core.PodStarts{Known: true, Started: true}},
		"one of before waits, too":         {[][]podStart{{p("a", false, true)}, {p("a", false, true), p("b", false, true)}, {p("a", false, true), p("b", false, true)}, {p("a", false, true), p("b", false, true)}}, fine},
		"one of before was started since":  {[][]podStart{{p("a", false, true)}, {p("a", true, false), p("b", false, true)}}, core.PodStarts{Known: true, Started: true}},
		"what ran before says nothing":     {[][]podStart{{p("a", true, false)}, {p("a", true, false), p("b", false, true)}, {p("a", true, false), p("b", false, true)}, {p("b", false, true)}}, core.PodStarts{Known: true, Waiting: "b", Failing: true}},
		"one that waits for somebody else": {[][]podStart{{}, {p("b", false, false)}, {p("b", false, false)}, {p("b", false, false)}}, fine},
		"many": {[][]podStart{{}, {p("b", false, true), p("c", false, true), p("d", false, true), p("e", false, true), p("f", false, true), p("g", false, true), p("h", false, true)}},
			core.PodStarts{Known: true, Waiting: "b, c, d, e, f and 2 more"}},
	} {
		t.Run(name, func(t *testing.T) {
			var s podStarts
			var got core.PodStarts
			for i, pods := range test.looks {
				got = s.look(pods, time.Hour+time.Duration(i)*40*time.Second)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The pods are looked at in a trial alone, and remembered over the restarts of what is on trial and over a reload.
func TestLooksAtPods(t *testing.T) {
	server := &nodeServer{node: posted(0), now: time.Hour}
	w := server.watch()
	w.newChild("on trial")
	see := func(onTrial bool) core.PodStarts {
		w.ask(onTrial)
		<-w.asked
		return w.see(t.Context()).Pods
	}
	if got := see(false); got.Known {
		t.Errorf("without a trial it saw %+v", got)
	}
	see(true)
	server.pods = []podStart{{uid: "u", name: "a/b", waits: true}}
	see(true)
	server.now += podPatience
	w.newChild("on trial")
	next := server.watch()
	next.inherit(w.handOver())
	w = next
	if got, want := see(true), (core.PodStarts{Known: true, Waiting: "a/b", Failing: true}); got != want {
		t.Errorf("after a restart and a reload: %+v", got)
	}
	server.listErr = errors.New("no")
	if got := see(true); got.Known {
		t.Errorf("of no answer: %+v", got)
	}
	server.listErr = nil
	read := w.list
	w.list = func(ctx context.Context, client rest.Interface, name string) ([]podStart, error) {
		w.newChild("a third")
		return read(ctx, client, name)
	}
	if got := see(true); got.Known {
		t.Errorf("over a start: %+v", got)
	}
	w.list = read
	w.newChild("another")
	if got, want := see(true), (core.PodStarts{Known: true}); got != want {
		t.Errorf("of another configuration: %+v", got)
	}
	server.pods[0].started, server.pods[0].waits = true, false
	see(true)
	server.listErr = errors.New("not asked any more")
	if got := see(true); !got.Started {
		t.Errorf("after a start of a pod: %+v", got)
	}
}
