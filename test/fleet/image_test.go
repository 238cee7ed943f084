//go:build e2e && long

package fleet

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/packaging"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const controllerNamespace = "kubelet-supervisor"

// The image as it is shipped, in pods as the Deployment makes them, two of them, on the very node whose kubelet the pool changes: the leader
// keeps its Lease while that kubelet restarts, its container goes on, and when it is deleted the other one takes over.
func TestLongTheImageOnTheNodeThatItChanges(t *testing.T) {
	c := newCrew(t, "image", 4, nil)
	image := c.f.importController(t)
	r := c.makeReal("")
	first, second := c.f.run(t, image, 0), c.f.run(t, image, 1)
	leader := c.f.awaitLeader(t, "")
	before := map[string]corev1.ContainerStatus{first: c.f.container(t, first), second: c.f.container(t, second)}

	kubelet := r.kubelet()
	c.roll(quick, func(p *v1alpha1.KubeletPool) { p.Spec.Layers[0].Inline.Raw = []byte(`{"maxPods":61}`) })
	c.awaitReason(v1alpha1.ConditionReady, "Completed", 3*time.Minute)
	r.wantFields(map[string]any{"maxPods": 61})
	if r.kubelet() == kubelet {
		t.Error("the kubelet was not restarted")
	}
	if got := c.f.leaseNow(t); *got.Spec.HolderIdentity != leader || *got.Spec.LeaseTransitions != 0 {
		t.Errorf("the Lease went from %s to %s, %d times", leader, *got.Spec.HolderIdentity, *got.Spec.LeaseTransitions)
	}
	for name, was := range before {
		if is := c.f.container(t, name); is.ContainerID != was.ContainerID || is.RestartCount != 0 || !is.Ready {
			t.Errorf("the container of %s was %s, and is %s, restarted %d times, ready: %v", name, was.ContainerID, is.ContainerID, is.RestartCount, is.Ready)
		}
	}

	gone := first
	if strings.HasPrefix(leader, second) {
		gone = second
	}
	if err := c.f.admin.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: gone}}); err != nil {
		t.Fatal(err)
	}
	c.f.awaitLeader(t, leader)
	c.change(`{"spec":{"layers":[{"name":"density","inline":{"maxPods":62}}]}}`)
	c.awaitReason(v1alpha1.ConditionReady, "Completed", 3*time.Minute)
	r.wantFields(map[string]any{"maxPods": 62})
}

// importController builds the image of the controller under test, and loads it into the node's runtime. It gives the image's name.
func (f *fleet) importController(t *testing.T) string {
	t.Helper()
	file := filepath.Join(scratch, "image.tar")
	build := exec.CommandContext(t.Context(), "go", "run", "-C", "../../packaging/image", ".", "--output", file, "--version", "e2e", "amd64="+f.binary)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "SOURCE_DATE_EPOCH=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the image: %v\n%s", err, output)
	}
	if err := f.ImportImage(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	return "kubelet-supervisor-controller:e2e"
}

// run makes a pod of the shipped Deployment on the real node, and waits until it is Running. There is no scheduler, no controller manager and no
// network of pods here, so it differs in this: it is bound already, it has the host's network, for which the namespace is no longer
// restricted, and so ports of its own, and the API server's address is given.
func (f *fleet) run(t *testing.T, image string, number int) (name string) {
	t.Helper()
	f.prepareNamespace(t)
	name = fmt.Sprintf("controller-%d", number)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: name}, Spec: deployed(t).Spec}
	pod.Spec.NodeName, pod.Spec.HostNetwork = cluster.NodeName, true
	container := &pod.Spec.Containers[0]
	container.Image, container.ImagePullPolicy = image, corev1.PullNever
	for i := range container.Ports {
		port := &container.Ports[i]
		port.ContainerPort += int32(100 * number)
		port.HostPort = port.ContainerPort
		container.Args = append(container.Args, fmt.Sprintf("--%s-address=:%d", port.Name, port.ContainerPort))
	}
	container.Env = []corev1.EnvVar{{Name: "KUBERNETES_SERVICE_HOST", Value: "127.0.0.1"}, {Name: "KUBERNETES_SERVICE_PORT", Value: "6443"}}
	if err := f.admin.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		none := int64(0)
		_ = f.admin.Delete(context.Background(), pod, &client.DeleteOptions{GracePeriodSeconds: &none})
	})
	for deadline := time.Now().Add(2 * time.Minute); ; wait(t.Context(), 200*time.Millisecond) {
		var now corev1.Pod
		err := f.admin.Get(t.Context(), client.ObjectKeyFromObject(pod), &now)
		if err == nil && len(now.Status.ContainerStatuses) == 1 && now.Status.ContainerStatuses[0].Ready {
			return name
		}
		if time.Now().After(deadline) {
			t.Fatalf("the pod is not ready: %v, %+v", err, now.Status)
		}
	}
}

// deployed is the pod of the shipped Deployment.
func deployed(t *testing.T) corev1.PodTemplateSpec {
	t.Helper()
	text, err := fs.ReadFile(packaging.ControllerManifests, "manifests/controller/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(string(text), "\n---\n") {
		var d appsv1.Deployment
		if err := yaml.Unmarshal([]byte(document), &d); err != nil {
			t.Fatal(err)
		}
		if d.Kind == "Deployment" {
			return d.Spec.Template
		}
	}
	t.Fatal("there is no Deployment")
	return corev1.PodTemplateSpec{}
}

// prepareNamespace does what a controller manager would, and lets pods have the host's network.
func (f *fleet) prepareNamespace(t *testing.T) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controllerNamespace}}
	if err := f.admin.Patch(t.Context(), namespace, client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`))); err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(filepath.Join(f.Folder, "pki", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	root := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: "kube-root-ca.crt"}, Data: map[string]string{"ca.crt": string(authority)}}
	if err := client.IgnoreAlreadyExists(f.admin.Create(t.Context(), root)); err != nil {
		t.Fatal(err)
	}
}

func (f *fleet) container(t *testing.T, pod string) corev1.ContainerStatus {
	t.Helper()
	var p corev1.Pod
	if err := f.admin.Get(t.Context(), types.NamespacedName{Namespace: controllerNamespace, Name: pod}, &p); err != nil || len(p.Status.ContainerStatuses) != 1 {
		t.Fatalf("%v: %+v", err, p.Status)
	}
	return p.Status.ContainerStatuses[0]
}

func (f *fleet) leaseNow(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	var l coordinationv1.Lease
	if err := f.admin.Get(t.Context(), types.NamespacedName{Namespace: controllerNamespace, Name: "kubelet-supervisor-controller"}, &l); err != nil {
		t.Fatal(err)
	}
	return &l
}

// awaitLeader waits until somebody else than before leads, and gives the name.
func (f *fleet) awaitLeader(t *testing.T, before string) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; wait(t.Context(), 100*time.Millisecond) {
		var l coordinationv1.Lease
		err := f.admin.Get(t.Context(), types.NamespacedName{Namespace: controllerNamespace, Name: "kubelet-supervisor-controller"}, &l)
		if err == nil && l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != "" && *l.Spec.HolderIdentity != before {
			return *l.Spec.HolderIdentity
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody but %q leads: %v", before, err)
		}
	}
}
