package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1/nodetest"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// stage is a controller with all that it knows. Its tests run in bubbles of testing/synctest, so that time is theirs.
type stage struct {
	*testing.T
	*Controller
	api    *fakeAPI
	cache  *fakeCache
	leads  *fakeLeader
	events *record.FakeRecorder
	logs   logr.Logger // of the next process; none: that of the test, where it is verbose
	begun  time.Time
}

type fakeLeader struct{ leads bool }

func (l *fakeLeader) outlasts(time.Duration) bool { return l.leads }
func (l *fakeLeader) waits() time.Duration        { return 0 }

func newStage(t *testing.T) *stage {
	s := &stage{T: t, api: newFakeAPI(), leads: &fakeLeader{true}, begun: time.Now()}
	s.cache = &fakeCache{api: s.api}
	s.again()
	return s
}

// again is another process.
func (s *stage) again() {
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		s.Fatal(err)
	}
	log := s.logs
	if log.GetSink() == nil && testing.Verbose() {
		log = testr.New(s.T)
	}
	s.events = record.NewFakeRecorder(1000)
	s.Controller = newController(parts{cached: s.cache, live: s.api, writer: s.api, leader: s.leads, watches: &watchErrors{}, metrics: m, events: s.events,
		monotonic: func() time.Duration { return time.Since(s.begun) }, serverTime: func() time.Time { return time.Now().Truncate(time.Second) },
		log: log})
	s.Cleanup(s.Controller.drains.end)
}

// turn is one turn, on a cache that is as new as it may be.
func (s *stage) turn() (again time.Duration, err error) {
	s.Helper()
	s.cache.sync()
	result, err := s.Reconcile(s.Context(), reconcile.Request{})
	return result.RequeueAfter, err
}

// turns are n of them, with a second in between, and nodes that answer.
func (s *stage) turns(n int) {
	s.Helper()
	for range n {
		if _, err := s.turn(); err != nil {
			s.Log(err)
		}
		s.answer()
		time.Sleep(time.Second)
	}
}

// node makes a Node with a supervisor, old enough to be no new one.
func (s *stage) node(name string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": "a"},
		CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour))}}
	n.Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", Architecture: "amd64", BootID: "boot"}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	nodetest.Say(n, nodev1.Status{Reason: nodev1.ReasonLocal}, corev1.NodeConfigStatus{}, "")
	s.api.put(n)
	return n
}

func (s *stage) nodes(n int) {
	for i := range n {
		s.node(fmt.Sprintf("n%d", i+1))
	}
}

// pool makes the smallest pool, without settling.
func (s *stage) pool(change func(*v1alpha1.KubeletPool)) *v1alpha1.KubeletPool {
	p := &v1alpha1.KubeletPool{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 1}}
	p.Spec.Selector.MatchLabels = map[string]string{"pool": "a"}
	p.Spec.Layers = []v1alpha1.Layer{{Name: "fleet", Inline: &runtime.RawExtension{Raw: []byte(`{"maxPods":250}`)}}}
	p.Spec.Rollout.Settle = &metav1.Duration{}
	if change != nil {
		change(p)
	}
	s.api.put(p)
	return p
}

// atOnce is a pool with one wave and no limit.
func atOnce(p *v1alpha1.KubeletPool) {
	all := intstr.FromString("100%")
	p.Spec.Rollout.MaxUnavailable = &all
	p.Spec.Rollout.Waves = []v1alpha1.Wave{{Nodes: intstr.FromInt32(1)}, {Nodes: all}}
}

// answer lets every node say that it runs what it was assigned.
func (s *stage) answer() {
	for _, object := range s.api.stored {
		if n, is := object.(*corev1.Node); is && n.Annotations[nodev1.ConfigObservedAnnotation] != n.Annotations[nodev1.ConfigSourceAnnotation] {
			s.say(n.DeepCopy(), "Active")
		}
	}
}

// say lets a node answer to its assignment.
func (s *stage) say(n *corev1.Node, reason string) {
	said := nodev1.Read(n)
	config := said.Config
	if wanted, err := said.Wanted(); err == nil && reason == nodev1.ReasonActive {
		at := &corev1.NodeConfigSource{ConfigMap: wanted.Source()}
		config = corev1.NodeConfigStatus{Assigned: at, Active: at, LastKnownGood: at}
	}
	status := nodev1.Status{Observed: said.Assignment, Reason: reason, Retry: said.Retry}
	if reason == nodev1.ReasonWouldDisrupt {
		status.Hold = &nodev1.Hold{Approval: "0123456789ab", Losses: []nodev1.Loss{{Pod: "default/web", Reason: "OutOfpods"}}, Known: true}
	}
	nodetest.Say(n, status, config, "")
	s.api.put(n)
}

func (s *stage) poolNow() *v1alpha1.KubeletPool {
	s.Helper()
	var p v1alpha1.KubeletPool
	if err := s.api.stored.get("KubeletPool/a", &p); err != nil {
		s.Fatal(err)
	}
	return &p
}

// assigned are the nodes that have an assignment.
func (s *stage) assigned() (names []string) {
	for _, object := range s.api.stored {
		if n, is := object.(*corev1.Node); is && n.Annotations[rollout.MarkAnnotation] != "" {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}

// reason is that of the condition Ready.
func (s *stage) reason() string {
	s.Helper()
	for _, c := range s.poolNow().Status.Conditions {
		if c.Type == v1alpha1.ConditionReady {
			return c.Reason
		}
	}
	return ""
}
