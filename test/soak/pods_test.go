//go:build linux

package main

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

var podStarted = metav1.NewTime(time.Unix(1_000_000, 0))

func podOf(name, container string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid"},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{
				ContainerID: container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: podStarted}},
			}},
		},
	}
}

func nobody(string) bool { return false }

// Only a pod that a hold has named which was approved may end, and only where its word was spent.
func TestPodsThatMayEnd(t *testing.T) {
	ended := podOf("guaranteed", "container")
	ended.Status.Phase = corev1.PodFailed
	var all []corev1.Pod
	for name, w := range workloads {
		if pod := podOf(w.apiName(name), name); name != "guaranteed" {
			all = append(all, pod)
		}
	}
	all = append(all, ended)
	spent := view{status: nodev1.Status{Approval: "0123456789ab"}}
	for name, test := range map[string]struct {
		consent *consent
		v       view
		may     bool
	}{
		"nobody approved":           {nil, spent, false},
		"it was named":              {&consent{word: "0123456789ab", pods: []string{"guaranteed"}}, spent, true},
		"another was":               {&consent{word: "0123456789ab", pods: []string{"best-effort-1"}}, spent, false},
		"any":                       {&consent{word: "0123456789ab", any: true}, spent, true},
		"the word was not spent":    {&consent{word: "0123456789ab", any: true}, view{}, false},
		"another word was, earlier": {&consent{word: "ffffffffffff", any: true}, spent, false},
	} {
		p := podSet{known: map[string]instance{"guaranteed": instanceOf(podOf("guaranteed", "container"))}, lost: map[string]bool{}}
		may := test.consent.spentBy(test.v)
		if err := p.touched(all, may); (err == nil) != test.may {
			t.Errorf("%s: %v", name, err)
		}
		if !test.may {
			continue
		}
		if err := p.complete(all, world{}, may); err != nil || !p.lost["guaranteed"] || p.running() != len(workloads) {
			t.Errorf("%s: %v; lost are %v, %d run", name, err, p.lost, p.running())
		}
		if err := p.touched(all, nobody); err != nil {
			t.Errorf("%s: a round later: %v", name, err)
		}
	}
}

func TestPodsThatWereTouched(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*corev1.Pod)
		touched bool
	}{
		"nothing":               {func(*corev1.Pod) {}, false},
		"not ready":             {func(p *corev1.Pod) { p.Status.Conditions = nil }, false},
		"no status yet":         {func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }, false},
		"another container":     {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ContainerID = "other" }, true},
		"started again":         {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 1 }, true},
		"another pod":           {func(p *corev1.Pod) { p.UID = "other" }, true},
		"no longer running":     {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State.Running = nil }, true},
		"refused and ended":     {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, true},
		"deleted by somebody":   {func(p *corev1.Pod) { p.DeletionTimestamp = &podStarted }, true},
		"another name: it went": {func(p *corev1.Pod) { p.Name = "b" }, true},
	} {
		p := podSet{known: map[string]instance{"a": instanceOf(podOf("a", "container"))}}
		now := podOf("a", "container")
		test.change(&now)
		if err := p.touched([]corev1.Pod{now}, nobody); (err != nil) != test.touched {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A pod that was deleted is there until its container has ended. One that was made and ended by itself was touched.
func TestPodsThatAreNotKnown(t *testing.T) {
	ended := podOf("a", "container")
	ended.Status.Phase = corev1.PodSucceeded
	p := podSet{known: map[string]instance{}}
	if err := p.touched([]corev1.Pod{ended}, nobody); err == nil {
		t.Error("a pod that ended by itself was not noticed")
	}
	ended.DeletionTimestamp = &podStarted
	if err := p.touched([]corev1.Pod{ended}, nobody); err != nil {
		t.Error(err)
	}
}

func TestPodsThatAreThere(t *testing.T) {
	var all []corev1.Pod
	for name, w := range workloads {
		all = append(all, podOf(w.apiName(name), name))
	}
	without := slices.DeleteFunc(slices.Clone(all), func(p corev1.Pod) bool { return p.Name == wholeCPUs })
	unready := slices.Clone(all)
	unready[0].Status.Conditions = nil
	for name, test := range map[string]struct {
		pods     []corev1.Pod
		noPod    bool
		complete bool
	}{
		"all":                         {all, false, true},
		"one is missing":              {without, false, false},
		"one was deleted":             {without, true, true},
		"it was deleted and is there": {all, true, false},
		"one is not ready":            {unready, false, false},
		"one too many":                {append(slices.Clone(all), podOf("other", "other")), false, false},
	} {
		p := podSet{known: map[string]instance{}}
		if err := p.complete(test.pods, world{noPod: test.noPod}, nobody); (err == nil) != test.complete {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// At least ten pods, of each QoS class; two static, one with a readiness probe, one with whole processors.
func TestWorkloads(t *testing.T) {
	static, probed, classes := 0, 0, map[string]int{}
	for name, w := range workloads {
		content, err := json.Marshal(manifest(name, w))
		if err != nil {
			t.Fatal(err)
		}
		var pod corev1.Pod
		if err := json.Unmarshal(content, &pod); err != nil {
			t.Fatal(err)
		}
		container := pod.Spec.Containers[0]
		switch requests, limits := container.Resources.Requests, container.Resources.Limits; {
		case len(requests) == 0:
			classes["BestEffort"]++
		case len(limits) == 2 && maps.EqualFunc(requests, limits, func(a, b resource.Quantity) bool { return a.Equal(b) }):
			classes["Guaranteed"]++
		default:
			classes["Burstable"]++
		}
		if w.static {
			static++
		}
		if container.ReadinessProbe != nil {
			probed++
		}
	}
	if len(workloads) < 10 || static != 2 || probed != 1 || len(classes) != 3 || workloads[wholeCPUs].limits != workloads[wholeCPUs].requests {
		t.Errorf("%d pods, %d static, %d probed, %v", len(workloads), static, probed, classes)
	}
}

// Where the kubelet ends between a container's creation and its start, the next one makes another. That is nobody's harm: the pod did not run yet.
func TestAPodThatWasJustMadeMayBeStartedTwice(t *testing.T) {
	pod := podOf("a", "container")
	pod.Status.ContainerStatuses[0].RestartCount = 1
	p := podSet{known: map[string]instance{}}
	if err := p.touched([]corev1.Pod{pod}, nobody); err != nil {
		t.Error(err)
	}
	p.known["a"] = instanceOf(pod)
	pod.Status.ContainerStatuses[0].RestartCount = 2
	if p.touched([]corev1.Pod{pod}, nobody) == nil {
		t.Error("a pod that ran was started again, and nothing is said")
	}
}

// A pod that was made again is another one than the hold has named; of what comes from a file that cannot be told.
func TestPodsThatWereMadeAgain(t *testing.T) {
	p := newPodSet(nil)
	p.known["guaranteed"], p.known["static-burstable"] = instance{UID: "2"}, instance{UID: "2"}
	for pod, want := range map[string]bool{"default/guaranteed": true, "default/static-burstable": false, "default/gone": false} {
		if p.renewed([]nodev1.Loss{{Pod: pod, UID: "1"}}) != want || p.renewed([]nodev1.Loss{{Pod: pod, UID: "2"}}) {
			t.Errorf("%s: not %v", pod, want)
		}
	}
}
