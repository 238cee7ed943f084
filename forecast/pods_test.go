package forecast

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What is read of a list gives the same forecast as the whole pods do.
func TestReadPods(t *testing.T) {
	started := true
	whole := append(sevenPods(), aPod("s", 0, static), aPod("sysctl", 1, sysctl("net.core.somaxconn"), priority(systemCritical)),
		aPod("needs", 1, func(pod *corev1.Pod) {
			no := false
			pod.Spec.HostUsers, pod.Spec.HostNetwork = &no, true
			pod.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}
			pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "a"}, {Name: "b", BindMountOptions: []string{"ro"}}}
		}),
		aPod("pending", 1, phase(corev1.PodPending), runsContainer), aPod("pending", 1, phase(corev1.PodPending), func(pod *corev1.Pod) {
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "sidecar", Started: &started}}
		}),
		aPod("elsewhere", 2, never, terminating, func(pod *corev1.Pod) {
			pod.Labels, pod.Annotations = map[string]string{"app": "x", corev1.LabelOSStable: "windows"}, map[string]string{"note": "long"}
			pod.Spec.NodeSelector = map[string]string{"disk": "hdd"}
			pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpExists}}}}}}, PodAffinity: &corev1.PodAffinity{}}
			hasPort(80, "127.0.0.1")(pod)
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
	node.Status.NodeInfo.KubeletVersion = "v1.37.1"
	if c := newCandidate(node, &whole[9]); len(c.features) != 3 {
		t.Errorf("%s needs %v", whole[9].Name, c.features)
	}
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
	for _, none := range []string{"[]", "null"} {
		pods, err := ReadPods(strings.NewReader(`{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":` + none + `}`))
		if err != nil || pods == nil || len(pods) != 0 {
			t.Errorf("%s is read as %v: %v", none, pods, err)
		}
	}
	for _, bad := range []string{"", "[]", "{}", `{"items":null`, `{"items":null,`, `{"items":{}}`, `{"items":[{}`, `{"items":[{},1]}`, `{"items":[` + strings.Repeat("{},", mostPods) + `{}]}`, string(text[:len(text)/2]), `{"kind":"Status"}`} {
		if pods, err := ReadPods(strings.NewReader(bad)); err == nil {
			t.Errorf("%.40q is read as %d pods", bad, len(pods))
		}
	}
}

// Of pods that have ended it is told why, and whether the kubelet has rejected them.
func TestReadPodsAndEnds(t *testing.T) {
	for name, row := range map[string]struct {
		pod  string
		want End
	}{
		"rejected":           {`{"status":{"phase":"Failed","reason":"OutOfpods"}}`, End{Reason: "OutOfpods", Rejected: true}},
		"for a new reason":   {`{"status":{"phase":"Failed","reason":"New","message":"Pod was rejected: it is new"}}`, End{Reason: "New", Rejected: true}},
		"preempted":          {`{"status":{"phase":"Failed","reason":"Preempting","message":"Preempted in order to admit critical pod"}}`, End{Reason: "Preempting", Rejected: true}},
		"evicted later":      {`{"status":{"phase":"Failed","reason":"Evicted","message":"The node was low on resource: memory."}}`, End{Reason: "Evicted"}},
		"failed by itself":   {`{"status":{"phase":"Failed"}}`, End{}},
		"a job that is done": {`{"spec":{"restartPolicy":"OnFailure"},"status":{"phase":"Succeeded"}}`, End{}},
		"rejected, and its containers exited with 0":      {`{"spec":{"restartPolicy":"Always","containers":[{"name":"a"}]},"status":{"phase":"Succeeded"}}`, End{Rejected: true}},
		"deleted, and its containers exited with 0":       {`{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"restartPolicy":"Always"},"status":{"phase":"Succeeded"}}`, End{}},
		"evicted later, and its containers exited with 0": {`{"spec":{"restartPolicy":"Always"},"status":{"phase":"Succeeded","conditions":[{"type":"DisruptionTarget","status":"True"}]}}`, End{}},
		"preempted, by the word alone":                    {`{"status":{"phase":"Succeeded","reason":"Preempting"}}`, End{Reason: "Preempting"}},
		"succeeded, and a reason is named":                {`{"spec":{"restartPolicy":"Always"},"status":{"phase":"Succeeded","reason":"New"}}`, End{Reason: "New"}},
		"failed, of a pod that always runs":               {`{"metadata":{"uid":"b"},"spec":{"restartPolicy":"Always"},"status":{"phase":"Failed"}}`, End{UID: "b"}},
		"not ready at its end":                            {`{"spec":{"restartPolicy":"Always"},"status":{"phase":"Succeeded","conditions":[{"type":"Ready","status":"False"},{"type":"Initialized","status":"True"},{"type":"DisruptionTarget","status":"False"}]}}`, End{Rejected: true}},
		"a container that need not run again":             {`{"spec":{"restartPolicy":"Always","containers":[{"name":"a","restartPolicy":"Never"}]},"status":{"phase":"Succeeded"}}`, End{}},
	} {
		var told []End
		list := `{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"uid":"a"},"status":{"phase":"Running","reason":"x"}},` + row.pod + `]}`
		pods, version, err := ReadPodsAndEnds(strings.NewReader(list), func(end End) { told = append(told, end) })
		if err != nil || version != "7" || len(pods) != 1 || !slices.Equal(told, []End{row.want}) {
			t.Errorf("%s: %d pods and %+v, want %+v; %v", name, len(pods), told, row.want, err)
		}
	}
}

func withoutPod(c *candidate) string {
	copied := *c
	copied.pod = nil
	return fmt.Sprintf("%+v", copied)
}

// The kubelet writes where it has a pod from over what a person wrote there. A pod that says it is static is not, unless it is the mirror of one.
func TestAPodThatSaysItIsStatic(t *testing.T) {
	for name, row := range map[string]struct {
		annotations string
		want        bool
	}{
		"it says so":  {`{"kubernetes.io/config.source":"file"}`, false},
		"a mirror":    {`{"kubernetes.io/config.source":"file","kubernetes.io/config.mirror":"0123"}`, true},
		"a plain pod": {`{}`, false},
	} {
		pods, err := ReadPods(strings.NewReader(`{"items":[{"metadata":{"annotations":` + row.annotations + `},"status":{"phase":"Running"}}]}`))
		if err != nil || len(pods) != 1 {
			t.Fatalf("%s: %v, %v", name, pods, err)
		}
		if c := newCandidate(nodeWith(t, configuration()), &pods[0]); c.static != row.want || c.critical != row.want {
			t.Errorf("%s: static %t, critical %t", name, c.static, c.critical)
		}
	}
}
