//go:build linux

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakeruntime"
)

// answers of an API server, by path: a status, or a document.
type answers map[string]any

const (
	nodeAnswer = `{"metadata":{"name":"n1","uid":"u"},"status":{"capacity":{"cpu":"4","memory":"8Gi","pods":"110"},"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}`
	podsAnswer = `{"items":[{"metadata":{"namespace":"default","name":"a","uid":"ua","creationTimestamp":"2026-01-01T00:00:00Z"},"status":{"phase":"Running"}},` +
		`{"metadata":{"namespace":"default","name":"b","uid":"ub","creationTimestamp":"2026-01-01T00:01:00Z"},"status":{"phase":"Running"}}]}`
)

// looking is a loop that knows what runs and what is to run, with maxPods 1, and asks such an API server.
func looking(t *testing.T, api answers, pods ...fakeruntime.Pod) (*loop, core.Foresee) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch answer := api[r.URL.Path].(type) {
		case int:
			w.WriteHeader(answer)
		case string:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(answer))
		case nil:
			panic(http.ErrAbortHandler) // the connection breaks
		}
	}))
	t.Cleanup(server.Close)
	client, err := configsync.NewClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	l := wire(Options{})
	l.Logger = zap.NewNop()
	l.Arguments = []string{"--root-dir=" + t.TempDir()}
	l.Standalone, l.api.client, l.api.nodeName = false, client, "n1"
	socket := filepath.Join(t.TempDir(), "runtime.sock")
	stop, err := fakeruntime.Serve(socket, pods...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	whole := func(maxPods int) kubeletconfig.Effective {
		return toldOf(t, map[string]any{"maxPods": maxPods, "cpuManagerPolicy": "none", "memoryManagerPolicy": "None", "containerRuntimeEndpoint": "unix://" + socket})
	}
	l.prover.effectives.keep("runs", kubeletconfig.Identity{}, whole(110), false)
	l.prover.effectives.keep("one", kubeletconfig.Identity{}, whole(1), false)
	l.prover.effectives.begin("runs", kubeletconfig.Identity{})
	return l, core.Foresee{Change: core.Change{Runs: "runs", Content: "one"}, Version: &core.Version{Content: "one"}, RunsVersion: &core.Version{Content: "runs"}, MayAsk: true}
}

// A look without an answer of the API server knows of no loss, and is none that knows: who has not answered is waited for.
func TestWhoHasNotAnswered(t *testing.T) {
	const node, pods = "/api/v1/nodes/n1", "/api/v1/pods"
	for name, row := range map[string]struct {
		api      answers
		waitsFor string // what is in it
		change   func(l *loop)
	}{
		"both have":              {answers{node: nodeAnswer, pods: podsAnswer}, "", nil},
		"the pods: 429":          {answers{node: nodeAnswer, pods: http.StatusTooManyRequests}, "listing the pods of Node n1", nil},
		"the pods: 500":          {answers{node: nodeAnswer, pods: http.StatusInternalServerError}, "listing the pods of Node n1", nil},
		"the pods: 403":          {answers{node: nodeAnswer, pods: http.StatusForbidden}, "listing the pods of Node n1", nil},
		"the pods: 401":          {answers{node: nodeAnswer, pods: http.StatusUnauthorized}, "listing the pods of Node n1", nil},
		"a list that is cut off": {answers{node: nodeAnswer, pods: podsAnswer[:len(podsAnswer)-9]}, "reading a list", nil},
		"the Node: 404":          {answers{node: http.StatusNotFound, pods: podsAnswer}, "reading Node n1", nil},
		"the Node: 503":          {answers{node: http.StatusServiceUnavailable, pods: podsAnswer}, "reading Node n1", nil},
		"nobody":                 {answers{}, "reading Node n1", nil},
		"the runtime": {answers{node: nodeAnswer, pods: podsAnswer}, "asking the container runtime", func(l *loop) {
			silent := toldOf(t, map[string]any{"maxPods": 110, "cpuManagerPolicy": "none", "memoryManagerPolicy": "None", "containerRuntimeEndpoint": "unix:///none.sock"})
			l.prover.effectives.keep("runs", kubeletconfig.Identity{}, silent, false)
			l.prover.effectives.keep("one", kubeletconfig.Identity{}, silent, false)
			l.prover.effectives.begin("runs", kubeletconfig.Identity{})
		}},
		"no connection": {answers{}, errOffline.Error(), func(l *loop) { l.api.client = nil }},
		"what runs was forgotten": {answers{node: nodeAnswer, pods: podsAnswer}, "the configuration that runs: " + errNeverTold.Error(), func(l *loop) {
			l.prover.effectives.begin("another", kubeletconfig.Identity{})
			l.prover.effectives.list = l.prover.effectives.list[1:]
		}},
		"the files of static pods": {answers{node: nodeAnswer, pods: podsAnswer}, "static pods", func(l *loop) {
			path := filepath.Join(t.TempDir(), "loop")
			if err := os.Symlink(path, path); err != nil {
				t.Fatal(err)
			}
			unreadable := toldOf(t, map[string]any{"maxPods": 110, "cpuManagerPolicy": "none", "memoryManagerPolicy": "None", "containerRuntimeEndpoint": "unix:///none.sock", "staticPodPath": path})
			l.prover.effectives.keep("runs", kubeletconfig.Identity{}, unreadable, false)
			l.prover.effectives.keep("one", kubeletconfig.Identity{}, unreadable, false)
			l.prover.effectives.begin("runs", kubeletconfig.Identity{})
		}},
		"it lacks its defaults": {answers{node: nodeAnswer, pods: podsAnswer}, "the configuration that is to run: it is without the kubelet's defaults", func(l *loop) {
			l.prover.effectives.keep("one", kubeletconfig.Identity{}, toldOf(t, map[string]any{"maxPods": 1}), false)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l, do := looking(t, row.api)
			if row.change != nil {
				row.change(l)
				if strings.Contains(name, "forgotten") {
					do.RunsKubelet.Binary = "before"
				}
			}
			found := l.foresight.foresee(t.Context(), do)
			if row.waitsFor == "" {
				if !found.Known || found.Lost != 1 || len(found.Losses) != 1 || found.Losses[0].Pod != "default/b" || found.Losses[0].UID != "ub" {
					t.Errorf("found %+v", found)
				}
				return
			}
			if found.Known || found.Lost > 0 || !strings.Contains(found.WaitsFor, row.waitsFor) {
				t.Errorf("found %+v", found)
			}
			if strings.Contains(name, "forgotten") && found.WaitsFor != row.waitsFor {
				t.Errorf("nothing else is missing: %s", found.WaitsFor)
			}
		})
	}
}

// What was told while the kubelet or the node's own files changed is of no kubelet that would be started: it is asked again, and the core hears of it.
func TestFilesThatChangeDuringALook(t *testing.T) {
	for name, row := range map[string]struct {
		change func(do *core.Foresee)
		want   bool
	}{
		"none does":       {func(*core.Foresee) {}, false},
		"the kubelet":     {func(do *core.Foresee) { do.Kubelet.Binary = "before" }, true},
		"the local files": {func(do *core.Foresee) { do.Local = "before" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			l, do := looking(t, answers{"/api/v1/nodes/n1": nodeAnswer, "/api/v1/pods": podsAnswer})
			l.events, l.Kubelet = make(chan core.Event, 1), "/proc/self/exe"
			now, err := l.lookLocal()
			if err != nil {
				t.Fatal(err)
			}
			do.Kubelet, do.Local = now.Kubelet, now.Local
			row.change(&do)
			l.prover.effectives.keep("one", do.Kubelet, l.prover.effectives.find("one", kubeletconfig.Identity{}), false)
			found := l.foresight.foresee(t.Context(), do)
			if found.Known == row.want || strings.Contains(found.WaitsFor, errChanged.Error()) != row.want || len(l.events) > 0 != row.want {
				t.Errorf("%d events; found %+v", len(l.events), found)
			}
			if row.want && <-l.events != core.Event(now) {
				t.Error("another event than what the files are now")
			}
		})
	}
}

// What the local command line was before is not asked of the one that is there now.
func TestLocalOfBeforeIsNotAsked(t *testing.T) {
	l, do := looking(t, nil)
	do.Local = "now"
	if told, err := l.prover.askedEffective(t.Context(), do, nil, "before"); !errors.Is(err, errNeverTold) || told.Known() {
		t.Errorf("told %v, %v", told, err)
	}
	do.MayAsk = false
	if told, err := l.prover.askedEffective(t.Context(), do, nil, "now"); err == nil || err.Error() != errPastCheck.Error() || told.Known() {
		t.Errorf("told %v, %v", told, err)
	}
}

// A pod that runs and that the API server does not list is waited for by two looks, and is a doubt after that. One that the API server calls
// Pending, and that runs, is a loss.
func TestPodsThatTheAPIServerDoesNotShow(t *testing.T) {
	pending := strings.ReplaceAll(podsAnswer, "Running", "Pending")
	api := answers{"/api/v1/nodes/n1": nodeAnswer, "/api/v1/pods": pending}
	a, b := fakeruntime.Pod{Namespace: "default", Name: "a", UID: "ua"}, fakeruntime.Pod{Namespace: "default", Name: "b", UID: "ub"}
	l, do := looking(t, api, a, b)
	if found := l.foresight.foresee(t.Context(), do); !found.Known || found.Lost != 1 || len(found.Losses) != 1 || found.Losses[0].Pod != "default/b" {
		t.Errorf("found %+v", found)
	}
	l, do = looking(t, api, a, b, fakeruntime.Pod{Namespace: "default", Name: "c", UID: "uc"})
	for ; do.Tries < 2; do.Tries++ {
		if found := l.foresight.foresee(t.Context(), do); found.Known || !strings.Contains(found.WaitsFor, "does not list pod default/c") {
			t.Errorf("after %d looks: %+v", do.Tries, found)
		}
	}
	if found := l.foresight.foresee(t.Context(), do); !found.Known || found.Lost != 1 || !strings.Contains(found.Warning, "pod default/c: it runs") {
		t.Errorf("after %d looks: %+v", do.Tries, found)
	}
}

// A node without an API server, or whose kubelet must not be asked, can never tell: nobody is waited for.
func TestWhatNobodyCanSay(t *testing.T) {
	t.Run("no kubeconfig", func(t *testing.T) {
		l, do := looking(t, nil)
		l.Standalone, l.api.client = true, nil
		if found := l.foresight.foresee(t.Context(), do); found.Known || found.WaitsFor != "" || found.Warning != errStandalone.Error() {
			t.Errorf("found %+v", found)
		}
	})
	t.Run("a kubelet that must not be asked", func(t *testing.T) {
		l, do := looking(t, answers{"/api/v1/nodes/n1": nodeAnswer, "/api/v1/pods": podsAnswer})
		do.Content, do.MayAsk = "two", false
		if found := l.foresight.foresee(t.Context(), do); found.Known || found.WaitsFor != "" || !strings.Contains(found.Warning, errPastCheck.Error()) {
			t.Errorf("found %+v", found)
		}
	})
}

// Which kubelets are asked again for what they run with, and which can never tell.
func TestAskEffective(t *testing.T) {
	t.Parallel()
	const accepts = `echo 'I0101 00:00:00.000000 1 server.go:1] "Kubelet version" kubeletVersion="v1.%d.0"' >&2; ` +
		`echo 'Error: failed to run Kubelet: cannot exit on lock file contention: no lock file specified'; exit 1`
	for name, row := range map[string]struct {
		script string
		mode   string
		words  string
		never  bool
	}{
		"killed":                {"kill -9 $$", kubelet.PreflightAlways, "was killed by a signal", false},
		"refused":               {"echo 'panic: no'; exit 2", kubelet.PreflightAlways, "panic: no", false},
		"exit code 0":           {"exit 0", kubelet.PreflightAlways, "exited with 0", true},
		"past the check":        {"echo '\"Acquiring file lock\" path=\"/l\"'; exec sleep 600", kubelet.PreflightAlways, "went on to start", true},
		"a script":              {"exit 1", kubelet.PreflightAuto, "is not an ELF executable", true},
		"never":                 {"exit 1", kubelet.PreflightNever, "turned off", true},
		"an old one":            {fmt.Sprintf(accepts, 25), kubelet.PreflightAlways, "kubelet 1.25 does not tell it", true},
		"a new one":             {fmt.Sprintf(accepts, 26), kubelet.PreflightAlways, errNotTold.Error(), false},
		"one without a version": {"echo 'Error: failed to run Kubelet: cannot exit on lock file contention: no lock file specified'; exit 1", kubelet.PreflightAlways, errNotTold.Error(), false},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.write("bin/kubelet", "#!/bin/sh\n"+row.script+"\n")
			n.options.Preflight, n.options.Logger = row.mode, zap.NewNop()
			l, err := newLoop(n.options)
			if err != nil {
				t.Fatal(err)
			}
			defer l.close()
			now, err := l.lookLocal()
			if err != nil {
				t.Fatal(err)
			}
			_, err = l.prover.askEffective(t.Context(), core.Prove{Alone: true, Kubelet: now.Kubelet, Local: now.Local})
			if _, never := err.(unknowable); err == nil || never != row.never || !strings.Contains(err.Error(), row.words) {
				t.Errorf("got %v, for ever: %v", err, never)
			}
			ctx, stop := context.WithCancel(t.Context())
			stop()
			if _, err := l.prover.askEffective(ctx, core.Prove{Alone: true}); !errors.Is(err, context.Canceled) || !errors.As(err, new(unanswered)) {
				t.Errorf("given up: %v", err)
			}
		})
	}
}
