package forecast

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// a pod that has of everything that is read, and of much that is not
const fullPod = `{"metadata":{"namespace":"n","name":"p","uid":"u","creationTimestamp":"2026-01-02T03:04:05Z","deletionTimestamp":"2026-01-02T03:04:06Z","labels":{"app":"p"},
"annotations":{"kubernetes.io/config.source":"file","kubernetes.io/config.mirror":"0123","note":"long"},
"ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"d","uid":"x","controller":true},{"kind":"Other"}]},
"spec":{"nodeName":"n1","nodeSelector":{"disk":"ssd"},"tolerations":[{"key":"a","operator":"Exists"}],"priority":7,"restartPolicy":"OnFailure","hostUsers":false,"hostNetwork":true,
"overhead":{"cpu":"10m"},"resources":{"requests":{"cpu":"3"}},"serviceAccountName":"s",
"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}]},
"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"preference":{}}]},"podAffinity":{}},
"securityContext":{"runAsUser":1,"sysctls":[{"name":"net.core.somaxconn","value":"1"}]},
"initContainers":[{"name":"i","image":"x","restartPolicy":"Always","resources":{"limits":{"cpu":"1"}}}],
"containers":[{"name":"c","image":"x","restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"In","values":[1]}}],
"volumeMounts":[{"name":"v","mountPath":"/v"},{"name":"w","bindMountOptions":["ro"]}],"resources":{"requests":{"memory":"1Gi"}}}]},
"status":{"phase":"Running","qosClass":"Burstable","podIP":"10.0.0.1","conditions":[{"type":"Ready","status":"True"},{"type":"PodResizePending","status":"True","reason":"Deferred","message":"m"}],
"containerStatuses":[{"name":"c","image":"x","state":{"running":{"startedAt":"2026-01-02T03:04:05Z"}},"resources":{"requests":{"memory":"2Gi"}},"allocatedResources":{"memory":"3Gi"}},{"name":"d","state":{"waiting":{}}}],
"initContainerStatuses":[{"name":"i","started":true}]}}`

// Of a pod in a list just what a forecast needs is kept.
func TestWhatIsKeptOfAPod(t *testing.T) {
	yes, no, priority, always := true, false, int32(7), corev1.ContainerRestartPolicyAlways
	var whole corev1.Pod
	if err := json.Unmarshal([]byte(fullPod), &whole); err != nil {
		t.Fatal(err)
	}
	want := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "u", CreationTimestamp: whole.CreationTimestamp, DeletionTimestamp: whole.DeletionTimestamp,
			Annotations:     map[string]string{SourceAnnotation: "file", mirrorAnnotation: "0123"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Controller: &yes}, {Kind: "Other"}}},
		Spec: corev1.PodSpec{NodeName: "n1", NodeSelector: map[string]string{"disk": "ssd"}, Tolerations: []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}}, Priority: &priority,
			RestartPolicy: corev1.RestartPolicyOnFailure, HostUsers: &no, HostNetwork: true, Overhead: quantities([]string{"cpu", "10m"}),
			Resources: &corev1.ResourceRequirements{Requests: quantities([]string{"cpu", "3"})},
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}}}}},
			SecurityContext: &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "net.core.somaxconn", Value: "1"}}},
			InitContainers:  []corev1.Container{{Name: "i", RestartPolicy: &always, Resources: corev1.ResourceRequirements{Limits: quantities([]string{"cpu", "1"})}}},
			Containers: []corev1.Container{{Name: "c", RestartPolicyRules: []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestart}},
				VolumeMounts: []corev1.VolumeMount{{BindMountOptions: []string{"ro"}}}, Resources: corev1.ResourceRequirements{Requests: quantities([]string{"memory", "1Gi"})}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable, Conditions: []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: "Deferred"}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "c", Resources: &corev1.ResourceRequirements{Requests: quantities([]string{"memory", "2Gi"})}, AllocatedResources: quantities([]string{"memory", "3Gi"}),
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}, {Name: "d"}},
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "i", Started: &yes}}},
	}
	pods, err := ReadPods(strings.NewReader(`{"items":[` + fullPod + `,{"spec":{"affinity":{"podAffinity":{}},"securityContext":{}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, pods[0]); diff != "" {
		t.Errorf("-want +read:\n%s", diff)
	}
	if pods[1].Spec.Affinity != nil || pods[1].Spec.SecurityContext != nil {
		t.Errorf("of nothing is kept %+v", pods[1].Spec)
	}
}
