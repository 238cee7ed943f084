package controller

import (
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/forecast/rejection"
)

// full is a Node with all that is read of one, and much more.
func full() *corev1.Node {
	now := metav1.NewTime(time.Unix(1_800_000_000, 0))
	said := nodev1.Status{Observed: "local", Reason: nodev1.ReasonWouldDisrupt, Since: now.Time, Features: []string{nodev1.LayersFeature}, Retry: "a/0123456789/1",
		Hold:     &nodev1.Hold{Approval: "0123456789ab", Losses: []nodev1.Loss{{Pod: "default/web", UID: "u", Reason: "OutOfpods"}}, Known: true, AsOf: now.Time},
		Failure:  &nodev1.Failure{Kind: nodev1.FailureRefused, Message: "words"},
		Warnings: []string{"many more words"}, Change: &nodev1.Change{From: "local", To: "local", Began: now.Time}}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1", ResourceVersion: "7", CreationTimestamp: now, DeletionTimestamp: &now,
		Labels: map[string]string{"pool": "a", "node-role.kubernetes.io/control-plane": ""}, Annotations: map[string]string{
			nodev1.ConfigSourceAnnotation: "kubelet-config/pool-a-0123456789/kubelet", rollout.MarkAnnotation: `{"pool":"a","assignment":"kubelet-config/pool-a-0123456789/kubelet","attempt":1}`,
			nodev1.RetryAnnotation: "a/0123456789/1", nodev1.StatusAnnotation: said.Encode(),
			nodev1.ConfigStatusAnnotation: "{}", nodev1.ConfigObservedAnnotation: "local", "machineconfiguration.openshift.io/state": "Working",
			"weave.works/kured-reboot-in-progress": "now", "kured.dev/reboot-in-progress": "now", "csi.volume.kubernetes.io/nodeid": "much"}}}
	n.Spec = corev1.NodeSpec{PodCIDR: "10.0.0.0/24", Unschedulable: true, Taints: []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: "NoSchedule"}},
		ConfigSource: &corev1.NodeConfigSource{}}
	n.Status.NodeInfo = corev1.NodeSystemInfo{BootID: "boot", KubeletVersion: "v1.36.3", Architecture: "arm64", OSImage: "Debian"}
	n.Status.Images = []corev1.ContainerImage{{SizeBytes: 1}}
	for _, kind := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure,
		nodev1.ConditionType, "Other"} {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: "True", Reason: "Refused", Message: "words",
			LastHeartbeatTime: now})
	}
	return n
}

// What is cut off a Node is nothing that a decision looks at.
func TestATrimmedNodeIsReadAsTheWholeOne(t *testing.T) {
	kept, err := trimNode(full())
	if err != nil {
		t.Fatal(err)
	}
	n := kept.(*corev1.Node)
	if want, got := rollout.ReadNode(full()), rollout.ReadNode(n); !reflect.DeepEqual(got, want) {
		t.Errorf("it is read as\n%+v, not\n%+v", got, want)
	}
	if n.Status.Images != nil || n.Spec.PodCIDR != "" || len(n.Annotations) != len(full().Annotations)-1 || len(n.Status.Conditions) != 4 ||
		strings.Contains(n.Annotations[nodev1.StatusAnnotation], "many more words") || strings.Contains(n.Annotations[nodev1.StatusAnnotation], "since") {
		t.Errorf("it kept too much: %+v", n)
	}
	if again := trimmed(n); !reflect.DeepEqual(again, n) {
		t.Error("trimmed once more it is another one")
	}
}

// A heartbeat is no news.
func TestAHeartbeatIsNoNews(t *testing.T) {
	before, beat, news := trimmed(full()), trimmed(full()), trimmed(full())
	beat.ResourceVersion, news.ResourceVersion = "8", "8"
	news.Status.Conditions[0].Status = corev1.ConditionFalse
	if !sameNode(before, beat) || sameNode(before, news) {
		t.Error("it is, or news is none")
	}
}

// A failed pod keeps where it failed, and why; of its message only that it was turned away.
func TestATrimmedPod(t *testing.T) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u", Labels: map[string]string{"a": "b"}}}
	p.Spec.NodeName, p.Status.Phase, p.Status.Reason = "n1", corev1.PodFailed, "OutOfpods"
	kept, err := trimPod(p)
	if err != nil {
		t.Fatal(err)
	}
	if got := kept.(*corev1.Pod); got.Spec.NodeName != "n1" || got.Status.Reason != "OutOfpods" || got.UID != "u" || got.Labels != nil {
		t.Errorf("it is %+v", got)
	}
	for message, want := range map[string]string{"Pod was rejected: there is a new reason": rejection.Prefix, "The node was low on resource: memory": ""} {
		p.Status.Message = message
		kept, err := trimPod(p)
		if got := kept.(*corev1.Pod).Status.Message; err != nil || got != want {
			t.Errorf("of %q it keeps %q, %v", message, got, err)
		}
	}
}

// A pod is as old as this process has known it.
func TestPodsThatWereTurnedAway(t *testing.T) {
	nodes := []rollout.Node{{Name: "n1", UID: "u1"}}
	never, always := func(types.UID) bool { return false }, func(types.UID) bool { return true }
	pod := func(uid, node, reason string) corev1.Pod {
		p := corev1.Pod{}
		p.UID, p.Spec.NodeName, p.Status.Phase, p.Status.Reason = types.UID(uid), node, corev1.PodFailed, reason
		return p
	}
	newer := pod("4", "n1", "AReasonOfALaterKubelet")
	newer.Status.Message = rejection.Prefix
	for _, p := range []corev1.Pod{pod("5", "n1", "TopologyAffinityError"), pod("6", "n1", "SMTAlignmentError"), pod("7", "n1", "SysctlForbidden"), newer} {
		if got := (&failedPods{}).readAll([]corev1.Pod{p}, nodes, never, 0); len(got) != 1 {
			t.Errorf("%s is not noticed", p.Status.Reason)
		}
	}
	view := failedPods{}
	pods := []corev1.Pod{pod("1", "n1", "OutOfpods"), pod("2", "n1", "Evicted"), pod("3", "gone", "OutOfcpu")}
	started := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	pods[0].Namespace, pods[0].Name, pods[0].Status.StartTime = "default", "web", &started
	if kept, err := trimPod(&pods[0]); err != nil || !kept.(*corev1.Pod).Status.StartTime.Equal(&started) {
		t.Errorf("the cache keeps %+v, %v", kept, err)
	}
	if got := view.readAll(pods[:2], nodes, always, time.Minute); len(got) != 1 || got[0] != (rollout.TurnedAway{Node: "u1", Namespace: "default", Name: "web", Started: started.Time, Unbound: true}) {
		t.Errorf("at first it is %+v", got)
	}
	if got := view.readAll(pods, nodes, never, 3*time.Minute); len(got) != 1 || !got[0].Unbound || got[0].Age != 2*time.Minute {
		t.Errorf("later it is %+v", got)
	}
	if got := view.readAll(nil, nodes, never, 4*time.Minute); len(got) != 0 || len(view) != 0 {
		t.Errorf("afterwards it is %+v, and remembers %v", got, view)
	}
}

// A pod is known to have been without a node as long as it is, and for a while after.
func TestPodsWithoutANode(t *testing.T) {
	now := time.Minute
	u := newUnbound(func() time.Duration { return now })
	web, other := &corev1.Pod{}, &corev1.Pod{}
	web.UID, other.UID = "web", "other"
	u.comes(web)
	now += time.Hour
	if !u.had("web") || u.had("other") {
		t.Error("it is not known which pod has no node")
	}
	u.leaves(toolscache.DeletedFinalStateUnknown{Obj: web})
	if now += boundFor; !u.had("web") {
		t.Error("a pod that was bound a moment ago is forgotten")
	}
	now += time.Second
	if u.leaves(other); u.had("web") || len(u.waits) > 0 || len(u.left) != 1 {
		t.Errorf("it remembers %v and %v", u.waits, u.left)
	}
}
