package deploy_test

import (
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
)

// deployed are the objects of deployment.yaml, decoded strictly.
type deployed struct {
	deployment appsv1.Deployment
	budget     policyv1.PodDisruptionBudget
	service    corev1.Service
}

func readDeployed(t *testing.T) (d deployed) {
	t.Helper()
	objects := map[string]*unstructured.Unstructured{}
	for _, object := range decode(t, deploy.ControllerManifests, "manifests/controller/deployment.yaml") {
		objects[object.GetAPIVersion()+" "+object.GetKind()] = &object
	}
	for kind, into := range map[string]any{"apps/v1 Deployment": &d.deployment, "policy/v1 PodDisruptionBudget": &d.budget, "v1 Service": &d.service} {
		object, is := objects[kind]
		if !is {
			t.Fatalf("there is no %s", kind)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if object.GetNamespace() != "kubelet-supervisor" {
			t.Errorf("%s is in namespace %s", kind, object.GetNamespace())
		}
	}
	return d
}

// Two replicas run, on two nodes where there are two, also on control planes, and are not the first to be evicted. One of them may be
// drained at a time.
func TestTheControllerIsKeptRunning(t *testing.T) {
	d := readDeployed(t)
	spec := &d.deployment.Spec
	pod := &spec.Template.Spec
	if spec.Replicas == nil || *spec.Replicas != 2 {
		t.Errorf("there are %v replicas", spec.Replicas)
	}
	own := labels.Set(spec.Template.Labels)
	if !labels.SelectorFromSet(spec.Selector.MatchLabels).Matches(own) || !labels.SelectorFromSet(d.service.Spec.Selector).Matches(own) {
		t.Error("Deployment or Service does not select the pods")
	}
	if pod.PriorityClassName != "system-cluster-critical" || pod.ServiceAccountName != "kubelet-supervisor-controller" {
		t.Errorf("its priority is %s, its account %s", pod.PriorityClassName, pod.ServiceAccountName)
	}
	if !slices.ContainsFunc(pod.Tolerations, func(to corev1.Toleration) bool {
		return to.Key == "node-role.kubernetes.io/control-plane" && to.Operator == corev1.TolerationOpExists && (to.Effect == "" || to.Effect == corev1.TaintEffectNoSchedule)
	}) {
		t.Errorf("it tolerates %v", pod.Tolerations)
	}
	apart := pod.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	if len(apart) != 1 || apart[0].PodAffinityTerm.TopologyKey != corev1.LabelHostname ||
		!labels.SelectorFromSet(apart[0].PodAffinityTerm.LabelSelector.MatchLabels).Matches(own) {
		t.Errorf("they are kept apart by %v", apart)
	}
	if b := &d.budget.Spec; b.MaxUnavailable == nil || b.MaxUnavailable.IntValue() != 1 || !labels.SelectorFromSet(b.Selector.MatchLabels).Matches(own) {
		t.Errorf("its PodDisruptionBudget is %+v", b)
	}
}

// A node that hosts it is root on all nodes, so it runs on control planes and nowhere else.
func TestTheControllerIsPlaced(t *testing.T) {
	d := readDeployed(t)
	placed := d.deployment.Spec.Template.Spec.Affinity.NodeAffinity
	want := &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.NodeSelectorOpExists}},
	}}}}
	if !reflect.DeepEqual(placed, want) {
		t.Errorf("it is placed by %v", placed)
	}
}

// It needs nothing of its node: no root, no file, no capability. The certificate of its metrics may be there or not.
func TestTheControllerNeedsNothing(t *testing.T) {
	d := readDeployed(t)
	pod := &d.deployment.Spec.Template.Spec
	if len(pod.Containers) != 1 || len(pod.InitContainers) != 0 || len(pod.Volumes) != 1 || pod.HostNetwork || pod.HostPID || pod.HostIPC {
		t.Errorf("it has %d containers, %d volumes, or something of its host", len(pod.Containers), len(pod.Volumes))
	}
	if of := pod.SecurityContext; !*of.RunAsNonRoot || *of.RunAsUser != 65532 || *of.RunAsGroup != 65532 || of.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("its pod runs with %+v", of)
	}
	of := pod.Containers[0].SecurityContext
	if !*of.ReadOnlyRootFilesystem || *of.AllowPrivilegeEscalation || !slices.Equal(of.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(of.Capabilities.Add) != 0 || of.Privileged != nil {
		t.Errorf("it runs with %+v", of)
	}
	if limits := pod.Containers[0].Resources; limits.Requests.Memory().IsZero() || limits.Limits.Memory().Cmp(*limits.Requests.Memory()) < 0 || !limits.Limits.Cpu().IsZero() {
		t.Errorf("its resources are %+v", limits)
	}
}

// Whoever makes the Secret has metrics that can be verified; nobody has to.
func TestTheCertificateOfTheMetrics(t *testing.T) {
	d := readDeployed(t)
	pod := &d.deployment.Spec.Template.Spec
	c := &pod.Containers[0]
	if len(pod.Volumes) != 1 || len(c.VolumeMounts) != 1 || pod.Volumes[0].Name != c.VolumeMounts[0].Name || !c.VolumeMounts[0].ReadOnly {
		t.Fatalf("it has the volumes %+v, mounted as %+v", pod.Volumes, c.VolumeMounts)
	}
	if secret := pod.Volumes[0].Secret; secret == nil || secret.Optional == nil || !*secret.Optional || secret.SecretName != "kubelet-supervisor-controller-metrics" {
		t.Errorf("the volume is %+v", pod.Volumes[0])
	}
	if c.VolumeMounts[0].SubPath != "" || !slices.Contains(c.Args, "--metrics-cert-dir="+c.VolumeMounts[0].MountPath) {
		t.Errorf("with %v it reads not what comes to %+v", c.Args, c.VolumeMounts[0])
	}
}

// Who reaches the metrics has a label on his namespace; the probes are let through.
func TestTheNetworkPolicy(t *testing.T) {
	objects := decode(t, deploy.ControllerManifests, "manifests/controller/networkpolicy.yaml")
	var policy networkingv1.NetworkPolicy
	if len(objects) != 1 || runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(objects[0].Object, &policy, true) != nil {
		t.Fatalf("it is %+v", objects)
	}
	d := readDeployed(t)
	if policy.Namespace != d.deployment.Namespace || !labels.SelectorFromSet(policy.Spec.PodSelector.MatchLabels).Matches(labels.Set(d.deployment.Spec.Template.Labels)) {
		t.Error("it is for other pods")
	}
	open := map[int][]networkingv1.NetworkPolicyPeer{}
	for _, rule := range policy.Spec.Ingress {
		for _, port := range rule.Ports {
			open[port.Port.IntValue()] = rule.From
		}
	}
	if from, is := open[8443]; len(open) != 2 || !is || len(from) != 1 || from[0].NamespaceSelector == nil || len(from[0].NamespaceSelector.MatchLabels) != 1 {
		t.Errorf("8443 is open to %+v, of %v", from, open)
	}
	if from, is := open[8081]; !is || len(from) != 0 {
		t.Errorf("a kubelet's probes reach 8081: %t, %+v", is, from)
	}
	if !slices.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
		t.Errorf("it is about %v", policy.Spec.PolicyTypes)
	}
}

// The probes ask where the program answers by default, and the Service leads to its metrics.
func TestTheControllerIsProbed(t *testing.T) {
	d := readDeployed(t)
	c := &d.deployment.Spec.Template.Spec.Containers[0]
	ports := map[string]int32{}
	for _, port := range c.Ports {
		ports[port.Name] = port.ContainerPort
	}
	for path, probe := range map[string]*corev1.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || ports[probe.HTTPGet.Port.String()] != 8081 {
			t.Errorf("%s is asked for by %+v", path, probe)
		}
	}
	if port := d.service.Spec.Ports; len(port) != 1 || port[0].Port != 8443 || ports[port[0].TargetPort.String()] != 8443 {
		t.Errorf("its Service has %+v", port)
	}
	for _, argument := range c.Args {
		if name, value, _ := strings.Cut(argument, "="); strings.HasSuffix(name, "-address") {
			if _, port, err := net.SplitHostPort(value); err != nil || port != "8081" && port != "8443" {
				t.Errorf("%s is where nobody asks", argument)
			}
		}
	}
}
