//go:build e2e && long

package fleet

import (
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
	"sigs.k8s.io/yaml"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
)

// The image as it is shipped, in pods as the Deployment makes them, two of them, on the very node whose kubelet the pool changes: the leader
// keeps its Lease while that kubelet restarts, its container goes on, and when it is deleted the other one takes over.
func TestLongTheImageOnTheNodeThatItChanges(t *testing.T) {
	c := newCrew(t, "image", 4, nil)
	pod := deployed(t).Spec
	pod.Affinity.NodeAffinity = nil // no node is a control plane
	pod.Containers[0].Image, pod.Containers[0].ImagePullPolicy = c.f.importController(t), corev1.PullNever
	r := c.makeReal("")
	first, second := c.f.run(t, pod, 0), c.f.run(t, pod, 1)
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

// deployed is the pod of the shipped Deployment.
func deployed(t *testing.T) corev1.PodTemplateSpec {
	t.Helper()
	text, err := fs.ReadFile(deploy.ControllerManifests, "manifests/controller/deployment.yaml")
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

func (f *fleet) leaseNow(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	var l coordinationv1.Lease
	if err := f.admin.Get(t.Context(), types.NamespacedName{Namespace: controllerNamespace, Name: "kubelet-supervisor-controller"}, &l); err != nil {
		t.Fatal(err)
	}
	return &l
}
