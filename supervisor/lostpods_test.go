//go:build linux

package supervisor

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

func runningPod(name string, changes ...func(*corev1.Pod)) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	for _, change := range changes {
		change(&pod)
	}
	return pod
}

func sightOf(pods []corev1.Pod) sight { return sight{pods: runningOf(pods, nil)} }

func rejected(name, reason string) forecast.End {
	return forecast.End{UID: types.UID(name), Reason: reason, Rejected: true}
}

// A restart that was looked at is compared, whatever is looked at meanwhile, and each loss is reported once.
func TestLostPods(t *testing.T) {
	pods := []corev1.Pod{runningPod("a"), runningPod("b"), runningPod("c", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }),
		runningPod("d", func(p *corev1.Pod) { now := metav1.Now(); p.DeletionTimestamp = &now }),
		runningPod("e", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} })}
	var l lostPods
	l.before(l.begin(), sightOf(pods), 0)
	if restart := l.take(); restart != 0 {
		t.Error("the pods of a kubelet that was not stopped for the change are looked for")
	}
	if !l.compare(0) {
		t.Error("a look has known the pods, and they are read again")
	}
	l.before(l.begin(), sightOf([]corev1.Pod{}), 0) // of the next change
	first := l.take()
	if again := l.take(); again != 0 {
		t.Error("a second start looks again")
	}
	if !l.awaits("b") || l.awaits("c") || l.awaits("d") || l.awaits("e") {
		t.Error("what ran is not looked for, or what did not is")
	}
	if names, _ := l.miss(first, []forecast.End{{UID: "a"}, {UID: "b", Reason: "Evicted"}, rejected("c", "OutOfpods")}); names != nil {
		t.Errorf("one has succeeded, one was evicted later, one did not run, and missed are %v", names)
	}
	refused := []forecast.End{rejected("b", "OutOfpods"), rejected("x", "OutOfcpu")}
	if names, news := l.miss(first, refused); !slices.Equal(names, []string{"default/b"}) || !maps.Equal(news, map[string]int{"OutOfpods": 1}) {
		t.Errorf("b was rejected, and missed are %v, %v", names, news)
	}
	if names, _ := l.miss(first, refused); names != nil {
		t.Errorf("nothing is news, and missed are %v", names)
	}

	older, newer := l.begin(), l.begin()
	l.before(newer, sightOf(append(pods, runningPod("f"))), 0)
	l.before(older, sightOf([]corev1.Pod{runningPod("g")}), 0) // begun earlier, and slower
	l.compare(0)
	second := l.take()
	if _, news := l.miss(first, []forecast.End{rejected("f", "OutOfpods")}); !l.over(first, false) || len(news) > 0 {
		t.Error("two restarts are looked after at once")
	}
	if names, news := l.miss(second, []forecast.End{rejected("a", ""), rejected("b", "OutOfpods"), rejected("g", "OutOfpods")}); !slices.Equal(names, []string{"default/a", "default/b"}) ||
		!maps.Equal(news, map[string]int{"OutOfpods": 1, "": 1}) {
		t.Errorf("a and b were rejected, and missed are %v, %v", names, news)
	}
	if names, _ := l.miss(second, []forecast.End{rejected("f", "OutOfpods")}); !slices.Equal(names, []string{"default/a", "default/b", "default/f"}) {
		t.Errorf("f is rejected later, and missed are %v", names)
	}
}

// A pod that the API calls Pending and of which a container runs, or the container runtime has a ready sandbox, ran before the restart.
func TestLostPodsThatWerePending(t *testing.T) {
	pending := func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }
	facts := forecast.Facts{Now: &forecast.Configuration{}, Then: &forecast.Configuration{}, Sandboxes: []forecast.Sandbox{{Namespace: "default", Name: "a", UID: "a", Source: "api"}},
		Pods: []corev1.Pod{runningPod("a", pending), runningPod("b", pending, func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		}), runningPod("c", pending)}}
	var l lostPods
	l.before(l.begin(), inquiry{}.seenIn(facts, forecast.Forecast{}), 0)
	l.compare(0)
	names, _ := l.miss(l.take(), []forecast.End{rejected("a", "OutOfpods"), rejected("b", "OutOfpods"), rejected("c", "OutOfpods")})
	if !slices.Equal(names, []string{"default/a", "default/b"}) {
		t.Errorf("missed are %v", names)
	}
}

// A look without an answer takes the place of none, and where no look knows, the pods are read at the stop.
func TestLostPodsThatNoLookHasSeen(t *testing.T) {
	lost := []forecast.End{rejected("a", "OutOfpods")}
	for name, row := range map[string]struct {
		look func(*lostPods)
		knew bool
		read []corev1.Pod // at the stop
		late bool         // it takes until the next kubelet is healthy
		want bool
	}{
		"a look without an answer after one with": {look: func(l *lostPods) {
			l.before(l.begin(), sightOf([]corev1.Pod{runningPod("a")}), 0)
			l.before(l.begin(), sight{}, time.Minute)
		}, knew: true, want: true},
		"no look":                              {look: func(*lostPods) {}, read: []corev1.Pod{runningPod("a")}, want: true},
		"no look, and a slow API server":       {look: func(*lostPods) {}, read: []corev1.Pod{runningPod("a")}, late: true, want: true},
		"no look, and no answer":               {look: func(*lostPods) {}},
		"a look without an answer":             {look: func(l *lostPods) { l.before(l.begin(), sight{}, 0) }, read: []corev1.Pod{runningPod("a")}, want: true},
		"a look that was too long ago":         {look: func(l *lostPods) { l.before(l.begin(), sightOf([]corev1.Pod{runningPod("a")}), -seenFor) }, read: []corev1.Pod{runningPod("b")}},
		"the look at a change that was made":   {look: func(l *lostPods) { l.before(l.begin(), sightOf([]corev1.Pod{runningPod("a")}), 0); l.compare(0) }, read: []corev1.Pod{}},
		"a look that has seen no pod that ran": {look: func(l *lostPods) { l.before(l.begin(), sightOf([]corev1.Pod{}), 0) }, knew: true},
	} {
		t.Run(name, func(t *testing.T) {
			var l lostPods
			row.look(&l)
			if knew := l.compare(time.Minute); knew != row.knew {
				t.Errorf("it knows what ran: %v, want %v", knew, row.knew)
			}
			if !row.knew && !row.late {
				l.add(row.read)
			}
			restart := l.take()
			if row.late {
				l.add(row.read)
			}
			if names, _ := l.miss(restart, lost); (names != nil) != row.want {
				t.Errorf("missed are %v", names)
			}
		})
	}
}

// A kubelet that forgets its reason had the one that was foreseen.
// What ran at the stop is what was read first: the next kubelet may have started pods since.
func TestLostPodsAreReadOnce(t *testing.T) {
	var l lostPods
	if l.compare(0) {
		t.Error("no look has known the pods, and they are not read")
	}
	l.add([]corev1.Pod{runningPod("a")})
	l.add([]corev1.Pod{runningPod("b")})
	if l.take() == 0 || !l.awaits("a") || l.awaits("b") {
		t.Errorf("looked for are %v", l.awaited)
	}
}

func TestLostPodsHaveTheForeseenReason(t *testing.T) {
	facts := forecast.Facts{Then: &forecast.Configuration{}, Pods: []corev1.Pod{runningPod("a"), runningPod("b")}}
	f := forecast.Forecast{Losses: []forecast.Loss{{UID: "a", Reason: "OutOfpods"}, {UID: "b", Reason: "OutOfpods"}, {UID: "ended", Reason: "OutOfpods"}}}
	var l lostPods
	l.before(l.begin(), inquiry{}.seenIn(facts, f), 0)
	l.compare(0)
	if _, news := l.miss(l.take(), []forecast.End{rejected("a", ""), rejected("b", "Evicted"), rejected("ended", "")}); !maps.Equal(news, map[string]int{"OutOfpods": 1, "Evicted": 1}) {
		t.Errorf("the reasons are %v", news)
	}
}

func TestLostWords(t *testing.T) {
	if got := lostWords([]string{"default/a"}); got != "running pods lost at the restart: 1: default/a" {
		t.Error(got)
	}
	if got := lostWords(strings.Split("a b c d e f", " ")); got != "running pods lost at the restart: 6: a, b, c, d, e…" {
		t.Error(got)
	}
}

// Offline nothing is told, and the supervisor's end is not held up.
func TestCountLostEnds(t *testing.T) {
	l := wire(Options{})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	l.foresight.lost.before(l.foresight.lost.begin(), sightOf([]corev1.Pod{runningPod("a")}), 0)
	l.foresight.lost.compare(0)
	restart := l.foresight.lost.take()
	l.foresight.countLost(ctx, restart)
	l.foresight.lostAfter, l.Logger = 0, zap.NewNop()
	l.foresight.countLost(t.Context(), restart)
	if len(l.events) > 0 {
		t.Errorf("the loop heard %v", <-l.events)
	}
}

// podsServer answers each list of pods with the next of these, and the last one for ever; "" is an error.
func podsServer(t *testing.T, lists ...string) (*loop, *atomic.Int32) {
	t.Helper()
	asked := &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		list := lists[min(int(asked.Add(1)), len(lists))-1]
		if list == "" {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, list)
	}))
	t.Cleanup(server.Close)
	client, err := configsync.NewClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	l := wire(Options{Logger: zap.NewNop()})
	l.foresight.lostAfter, l.api.client, l.api.nodeName = 0, client, "n1"
	return l, asked
}

const (
	abRun    = `{"items":[{"metadata":{"namespace":"default","name":"a","uid":"a"},"status":{"phase":"Running"}},{"metadata":{"namespace":"default","name":"b","uid":"b"},"status":{"phase":"Running"}}]}`
	bIsLost  = `{"items":[{"metadata":{"uid":"a"},"status":{"phase":"Running"}},{"metadata":{"uid":"b"},"status":{"phase":"Failed","reason":"OutOfpods"}},{"metadata":{"uid":"x"},"status":{"phase":"Failed","reason":"OutOfcpu"}}]}`
	aWentOff = `{"items":[{"metadata":{"uid":"b"},"status":{"phase":"Succeeded"}}]}`
)

// The reason of a loss is what the status of the pod says. A container that ends slowly is seen at the second look, and there is no third. A pod
// that is deleted, or succeeds, within that time is not lost.
func TestCountLost(t *testing.T) {
	for name, row := range map[string]struct {
		lists []string
		asked int32
		want  map[string]int
	}{
		"at the first look":          {[]string{bIsLost}, 2, map[string]int{"OutOfpods": 1}},
		"at the second look":         {[]string{abRun, bIsLost}, 2, map[string]int{"OutOfpods": 1}},
		"after the second look":      {[]string{abRun, abRun, bIsLost}, 2, nil},
		"after an error":             {[]string{"", "", bIsLost}, 4, map[string]int{"OutOfpods": 1}},
		"an API server that is away": {[]string{""}, lostTries, nil},
		"deleted by a person":        {[]string{aWentOff}, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l, asked := podsServer(t, row.lists...)
			l.foresight.lost.before(l.foresight.lost.begin(), sightOf([]corev1.Pod{runningPod("a"), runningPod("b")}), 0)
			l.foresight.lost.compare(0)
			l.foresight.countLost(t.Context(), l.foresight.lost.take())
			if got := asked.Load(); got != row.asked {
				t.Errorf("the pods were asked for %d times, want %d", got, row.asked)
			}
			close(l.events)
			var told map[string]int
			for event := range l.events {
				told = event.(core.PodsLost).New
			}
			if !maps.Equal(told, row.want) {
				t.Errorf("told was %v, want %v", told, row.want)
			}
		})
	}
}

// Where the looks before a change had no answer, what a restart costs is found all the same.
func TestCountLostOfAChangeThatNoLookKnew(t *testing.T) {
	l, _ := podsServer(t, abRun, bIsLost)
	l.foresight.lost.before(l.foresight.lost.begin(), sight{}, 0)
	l.foresight.compareLost(t.Context())
	l.tasks.Wait()
	l.foresight.countLost(t.Context(), l.foresight.lost.take())
	if len(l.events) != 1 {
		t.Fatalf("%d events were told", len(l.events))
	}
	if told := (<-l.events).(core.PodsLost); told.Words != "running pods lost at the restart: 1: default/b" {
		t.Errorf("told was %+v", told)
	}
}

// A static pod is lost whose sandbox does not run any more, and whose file is as it was. The API has an object of its name all the while.
func TestCountLostStaticPods(t *testing.T) {
	for name, row := range map[string]struct {
		edit func(file string) error
		want map[string]int
	}{
		"ended by the restart": {func(string) error { return nil }, map[string]int{core.StaticPodEnded: 1}},
		"its file was edited": {func(file string) error {
			return os.WriteFile(file, []byte(strings.ReplaceAll(aManifest, "pause", "other")), 0o600)
		}, nil},
		"its file was taken away":  {os.Remove, nil},
		"another file came beside": {func(file string) error { return os.WriteFile(file+".backup", []byte(aManifest), 0o600) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := podsServer(t, `{"items":[]}`)
			folder, file := t.TempDir(), ""
			file = filepath.Join(folder, "s.yaml")
			if err := os.WriteFile(file, []byte(aManifest), 0o600); err != nil {
				t.Fatal(err)
			}
			c := &forecast.Configuration{StaticPodPath: folder, ContainerRuntimeEndpoint: "unix://" + filepath.Join(folder, ".runtime.sock")}
			fakenode.Runtime(t, filepath.Join(folder, ".runtime.sock")) // runs nothing
			files, err := manifests(c)
			if err != nil {
				t.Fatal(err)
			}
			facts := forecast.Facts{Now: c, Then: c, Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, Pods: []corev1.Pod{}, Manifests: files,
				Sandboxes: []forecast.Sandbox{{ID: "box", Namespace: "default", Name: "s-n1", UID: "hash", Source: "file"}}}
			l.foresight.lost.before(l.foresight.lost.begin(), inquiry{}.seenIn(facts, forecast.Forecast{}), 0)
			l.foresight.lost.compare(0)
			if err := row.edit(file); err != nil {
				t.Fatal(err)
			}
			l.foresight.countLost(t.Context(), l.foresight.lost.take())
			close(l.events)
			var told core.PodsLost
			for event := range l.events {
				told = event.(core.PodsLost)
			}
			if !maps.Equal(told.New, row.want) || row.want != nil && told.Words != "running pods lost at the restart: 1: default/s-n1" {
				t.Errorf("told was %+v, want %v", told, row.want)
			}
		})
	}
}

const aManifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: s}\nspec: {containers: [{name: main, image: pause}]}\n"
