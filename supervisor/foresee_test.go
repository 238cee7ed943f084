package supervisor

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
)

// What is certain holds, what is not is said, and a line is a line.
func TestForeseen(t *testing.T) {
	change := decide.Change{Content: "one"}
	be1, be2 := forecast.Loss{Namespace: "default", Name: "be1", Reason: "OutOfpods", Certain: true}, forecast.Loss{Namespace: "default", Name: "be2", Reason: "OutOfpods"}
	static := be1
	static.Static = true
	for _, row := range []struct {
		name           string
		f              forecast.Forecast
		troubles       []string
		lost           int
		words, unknown string
	}{
		{"nothing", forecast.Forecast{Running: 7}, nil, 0, "", ""},
		{"a pod", forecast.Forecast{Running: 7, Losses: []forecast.Loss{be1}, Least: 1, LeastOfAll: 1}, nil, 1, "1 of 7 running pods would be killed at the restart: default/be1 (OutOfpods)", ""},
		{"an uncertain pod", forecast.Forecast{Running: 7, Losses: []forecast.Loss{be2}}, nil, 0, "", "up to 1 of 7 running pods would be killed at the restart: default/be2 (OutOfpods?)"},
		{"a static pod", forecast.Forecast{Static: []forecast.Loss{static}}, nil, 1, "none of 0 running pods would be killed at the restart; of static pods: default/be1 (OutOfpods)", ""},
		{"by any restart", forecast.Forecast{Running: 7, Anyway: []forecast.Loss{be1}, LeastOfAll: 1}, nil, 1,
			"none of 7 running pods would be killed by the change; any restart would kill, with the configuration that runs too: default/be1 (OutOfpods)", ""},
		{"perhaps by any restart", forecast.Forecast{Running: 7, Anyway: []forecast.Loss{be2}}, nil, 0, "",
			"none of 7 running pods would be killed by the change; any restart would kill, with the configuration that runs too: default/be2 (OutOfpods?)"},
		{"an API server that is away", forecast.Forecast{}, []string{"reading Node n1: no\nanswer"}, 0, "", "reading Node n1: no answer"},
		{"what the kubelet does not tell", forecast.Forecast{Doubts: []forecast.Unknown{{What: "featureGates", Why: "X changes"}}}, nil, 0, "", "featureGates: X changes"},
	} {
		t.Run(row.name, func(t *testing.T) {
			want := decide.Foreseen{Change: change, Lost: row.lost, Words: row.words, Unknown: row.unknown}
			if got := foreseen(change, row.f, row.troubles); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
	long := forecast.Forecast{Losses: slices.Repeat([]forecast.Loss{{Namespace: "default", Name: strings.Repeat("x", 253), Reason: "OutOfpods", Certain: true}}, 9), Least: 9, LeastOfAll: 9}
	if got := foreseen(change, long, nil); len(got.Words) > foreseenLimit {
		t.Errorf("%d bytes: %s", len(got.Words), got.Words)
	}
}

func runningPod(name string, changes ...func(*corev1.Pod)) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	for _, change := range changes {
		change(&pod)
	}
	return pod
}

// A restart that was looked at is compared, whatever is looked at meanwhile, and each loss is told once.
func TestLostPods(t *testing.T) {
	pods := []corev1.Pod{runningPod("a"), runningPod("b"), runningPod("c", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }),
		runningPod("d", func(p *corev1.Pod) { now := metav1.Now(); p.DeletionTimestamp = &now }),
		runningPod("e", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} })}
	var l lostPods
	l.before(l.begin(), pods)
	if restart := l.take(); restart != 0 {
		t.Error("the pods of a kubelet that was not stopped for the change are looked for")
	}
	l.compare()
	l.before(l.begin(), nil) // a look that was given up, and comes late
	first := l.take()
	if again := l.take(); again != 0 {
		t.Error("a second start looks again")
	}
	if names, _ := l.miss(first, pods[:2], nil); names != nil {
		t.Errorf("nothing is gone, and missed are %v", names)
	}
	if !l.awaits("b") || l.awaits("c") {
		t.Error("what ran is not looked for, or what did not is")
	}
	refused := map[types.UID]string{"b": "OutOfpods", "x": "Evicted"}
	if names, news := l.miss(first, pods[:1], refused); !slices.Equal(names, []string{"default/b"}) || !maps.Equal(news, map[string]int{"OutOfpods": 1}) {
		t.Errorf("b was refused, and missed are %v, %v", names, news)
	}
	if names, _ := l.miss(first, pods[:1], refused); names != nil {
		t.Errorf("nothing is news, and missed are %v", names)
	}

	older, newer := l.begin(), l.begin()
	l.before(newer, append(pods, runningPod("f")))
	l.before(older, []corev1.Pod{runningPod("g")}) // begun earlier, and slower
	l.compare()
	second := l.take()
	if _, news := l.miss(first, nil, nil); !l.over(first, false) || len(news) > 0 {
		t.Error("two restarts are looked after at once")
	}
	if names, news := l.miss(second, []corev1.Pod{runningPod("f")}, map[types.UID]string{"b": ""}); !slices.Equal(names, []string{"default/a", "default/b"}) ||
		!maps.Equal(news, map[string]int{decide.PodGone: 1, "": 1}) {
		t.Errorf("a is gone and b has ended, and missed are %v, %v", names, news)
	}
	if names, _ := l.miss(second, nil, nil); !slices.Equal(names, []string{"default/a", "default/b", "default/f"}) {
		t.Errorf("f is gone later, and missed are %v", names)
	}
}

// A look at the pods that got no answer does not take the place of one that did: the pods that a restart costs are counted all the same.
func TestALookWithoutAnAnswerForgetsNoPods(t *testing.T) {
	var l lostPods
	l.before(l.begin(), []corev1.Pod{runningPod("a")})
	l.before(l.begin(), nil)
	l.compare()
	restart := l.take()
	if restart == 0 {
		t.Fatal("nothing is looked for after the restart")
	}
	if names, _ := l.miss(restart, []corev1.Pod{}, map[types.UID]string{"a": "OutOfpods"}); !slices.Equal(names, []string{"default/a"}) {
		t.Errorf("missed are %v", names)
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
	l := &loop{events: make(chan decide.Event, 1), lostAfter: lostAfter}
	l.api = &apiSession{loop: l}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	l.lost.before(l.lost.begin(), []corev1.Pod{runningPod("a")})
	l.lost.compare()
	restart := l.lost.take()
	l.countLost(ctx, restart)
	l.lostAfter, l.Logger = 0, zap.NewNop()
	l.countLost(t.Context(), restart)
	if len(l.events) > 0 {
		t.Errorf("the loop heard %v", <-l.events)
	}
}

// The reason of a loss is what the status of the pod says, in the list that tells of the loss.
func TestCountLostTellsWhy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"items":[{"metadata":{"uid":"a"},"status":{"phase":"Running"}},{"metadata":{"uid":"b"},"status":{"phase":"Failed","reason":"OutOfpods"}},
			{"metadata":{"uid":"x"},"status":{"phase":"Failed","reason":"Evicted"}}]}`))
	}))
	t.Cleanup(server.Close)
	client, err := configsync.NewClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	l := &loop{events: make(chan decide.Event, lostLooks)}
	l.Logger = zap.NewNop()
	l.api = &apiSession{loop: l, client: client, nodeName: "n1"}
	l.lost.before(l.lost.begin(), []corev1.Pod{runningPod("a"), runningPod("b"), runningPod("c")})
	l.lost.compare()
	l.countLost(t.Context(), l.lost.take())
	if len(l.events) != 1 {
		t.Fatalf("%d events were told", len(l.events))
	}
	told, is := (<-l.events).(decide.PodsLost)
	if want := map[string]int{"OutOfpods": 1, decide.PodGone: 1}; !is || !maps.Equal(told.New, want) || told.Words != "running pods lost at the restart: 2: default/b, default/c" {
		t.Errorf("told was %+v, want %v", told, want)
	}
}
