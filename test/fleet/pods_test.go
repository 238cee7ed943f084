//go:build e2e && (long || release)

package fleet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const controllerNamespace = "kubelet-supervisor"

// run makes a pod of a Deployment of the controller on the real node, and waits until it is Running. There is no scheduler, no controller manager and no
// network of pods here, so it differs in this: it is bound already, it has the host's network, for which the namespace is no longer
// restricted, and so ports of its own, and the API server's address is given.
func (f *fleet) run(t *testing.T, deployed corev1.PodSpec, number int) (name string) {
	t.Helper()
	f.prepareNamespace(t)
	name = fmt.Sprintf("controller-%d", number)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: name}, Spec: *deployed.DeepCopy()}
	pod.Spec.NodeName, pod.Spec.HostNetwork = cluster.NodeName, true
	container := &pod.Spec.Containers[0]
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
