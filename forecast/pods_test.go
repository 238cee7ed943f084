package forecast

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What is read of a list gives the same forecast as the whole pods do.
func TestReadPods(t *testing.T) {
	whole := append(sevenPods(), aPod("s", 0, static), aPod("sysctl", 1, sysctl("net.core.somaxconn"), priority(systemCritical)),
		aPod("elsewhere", 2, never, terminating, func(pod *corev1.Pod) {
			pod.Labels, pod.Annotations = map[string]string{"app": "x"}, map[string]string{"note": "long"}
			pod.Spec.NodeSelector = map[string]string{"disk": "hdd"}
			pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpExists}}}}}}, PodAffinity: &corev1.PodAffinity{}}
			pod.Spec.Overhead = quantities([]string{"cpu", "10m"})
			pod.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "image", Resources: corev1.ResourceRequirements{Requests: quantities([]string{"cpu", "2"})}}}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", AllocatedResources: quantities([]string{"cpu", "1"})}}
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady}, {Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible}}
		}))
	text, err := json.Marshal(corev1.PodList{Items: whole})
	if err != nil {
		t.Fatal(err)
	}
	read, err := ReadPods(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	node := nodeWith(t, configuration())
	for i := range whole {
		want, got := newCandidate(node, &whole[i]), newCandidate(node, &read[i])
		if a, b := withoutPod(want), withoutPod(got); a != b || !want.pod.CreationTimestamp.Equal(&got.pod.CreationTimestamp) || want.created() != got.created() {
			t.Errorf("%s is read as\n%s, want\n%s", whole[i].Name, b, a)
		}
		if len(got.pod.Spec.Containers) != len(want.pod.Spec.Containers) || got.pod.Name != want.pod.Name || got.pod.UID != want.pod.UID ||
			!reflect.DeepEqual(got.pod.Spec.SecurityContext, want.pod.Spec.SecurityContext) {
			t.Errorf("%s is read as %+v", whole[i].Name, got.pod)
		}
	}
	for text, want := range map[string]int{
		`{"items":[{},{"status":{"phase":"Succeeded"}},{"status":{"phase":"Failed"}}]}`:    1,
		`{"items":[` + strings.Repeat("{},", mostPods-1) + `{}]}`:                          mostPods,
		`{"items":[` + strings.Repeat(`{"status":{"phase":"Failed"}},`, mostPods) + `{}]}`: 1,
	} {
		if pods, err := ReadPods(strings.NewReader(text)); err != nil || len(pods) != want {
			t.Errorf("%.60q is read as %d pods, want %d: %v", text, len(pods), want, err)
		}
	}
	if pods, err := ReadPods(strings.NewReader(`{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[]}`)); err != nil || pods == nil || len(pods) != 0 {
		t.Errorf("no pods: %v, %v", pods, err)
	}
	for _, bad := range []string{"", "[]", "{}", `{"items":null}`, `{"items":{}}`, `{"items":[{}`, `{"items":[{},1]}`, `{"items":[` + strings.Repeat("{},", mostPods) + `{}]}`, string(text[:len(text)/2]), `{"kind":"Status"}`} {
		if pods, err := ReadPods(strings.NewReader(bad)); err == nil {
			t.Errorf("%.40q is read as %d pods", bad, len(pods))
		}
	}
}

// Of pods that have ended it is told why.
func TestReadPodsAndEnds(t *testing.T) {
	const list = `{"items":[{"metadata":{"uid":"a"},"status":{"phase":"Running","reason":"x"}},{"metadata":{"uid":"b"},"status":{"phase":"Failed","reason":"OutOfpods"}},
		{"metadata":{"uid":"c"},"status":{"phase":"Succeeded"}}]}`
	told := map[types.UID]string{}
	pods, err := ReadPodsAndEnds(strings.NewReader(list), func(uid types.UID, reason string) { told[uid] = reason })
	if want := map[types.UID]string{"b": "OutOfpods", "c": ""}; err != nil || len(pods) != 1 || !maps.Equal(told, want) {
		t.Errorf("%d pods and %q, want %q; %v", len(pods), told, want, err)
	}
}

func withoutPod(c *candidate) string {
	copied := *c
	copied.pod = nil
	return fmt.Sprintf("%+v", copied)
}
