//go:build machine

package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	assignmentAnnotation = nodev1.ConfigSourceAnnotation
	statusAnnotation     = nodev1.ConfigStatusAnnotation
	observedAnnotation   = nodev1.ConfigObservedAnnotation
	conditionType        = "KubeletConfigOk"

	apiServer = "kube-apiserver"
	namespace = "kube-system"
)

// outside is the cluster that machines are nodes of: its etcd and its API server, on this host. Its node is whichever machine is on.
type outside struct {
	*cluster.Cluster
	client   *kubernetes.Clientset
	readable []string
}

var (
	theCluster *outside
	bringUp    sync.Once

	up      []*cluster.Cluster // every one that was brought up, for takeDown
	upGuard sync.Mutex
)

// newCluster brings one up.
func newCluster(t *testing.T, options cluster.Options) *outside {
	t.Helper()
	options.Name, options.Log = fmt.Sprintf("%s-%d", options.Name, os.Getpid()), os.Stderr
	c, err := cluster.Up(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	upGuard.Lock()
	up = append(up, c)
	upGuard.Unlock()
	client, err := kubernetes.NewForConfig(c.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	return &outside{Cluster: c, client: client}
}

// newNode gives the cluster that all tests share, as for a node that has never been seen.
func newNode(t *testing.T) *outside {
	t.Helper()
	bringUp.Do(func() { theCluster = newCluster(t, cluster.Options{Name: "machine"}) })
	if theCluster == nil {
		t.Fatal("there is no cluster")
	}
	err := errors.Join(theCluster.client.CoreV1().Nodes().Delete(t.Context(), cluster.NodeName, metav1.DeleteOptions{}),
		theCluster.client.CoordinationV1().Leases("kube-node-lease").Delete(t.Context(), cluster.NodeName, metav1.DeleteOptions{}))
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return theCluster
}

// takeDown is the end of every cluster, and of all machines that are in its network namespace.
func takeDown() (err error) {
	upGuard.Lock()
	defer upGuard.Unlock()
	for _, c := range up {
		err = errors.Join(err, c.Down())
	}
	return err
}

// configMap makes one that the node may read, and gives the assignment that names it.
func (o *outside) configMap(t *testing.T, name, payload string) (assignment string) {
	t.Helper()
	name = fmt.Sprintf("%s-%d", name, len(o.readable))
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"kubelet": payload}}
	if _, err := o.client.CoreV1().ConfigMaps(namespace).Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	o.readable = append(o.readable, made.Name)
	if err := o.ReadConfigMapsRole(t.Context(), namespace, o.readable...); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s/%s/kubelet", namespace, made.Name)
}

// assign names the node's configuration; "" takes the name away.
func (o *outside) assign(t *testing.T, assignment string) {
	t.Helper()
	value := &assignment
	if assignment == "" {
		value = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]*string{assignmentAnnotation: value}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.client.CoreV1().Nodes().Patch(t.Context(), cluster.NodeName, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// nodeView is what the Node says of its kubelet's configuration.
type nodeView struct {
	Observed  string
	Config    corev1.NodeConfigStatus
	Condition corev1.NodeCondition
	Ready     bool
}

func (o *outside) view(t *testing.T) (v nodeView, err error) {
	node, err := o.client.CoreV1().Nodes().Get(t.Context(), cluster.NodeName, metav1.GetOptions{})
	if err != nil {
		return v, err
	}
	for _, condition := range node.Status.Conditions {
		switch condition.Type {
		case conditionType:
			v.Condition = condition
		case corev1.NodeReady:
			v.Ready = condition.Status == corev1.ConditionTrue
		}
	}
	v.Observed = node.Annotations[observedAnnotation]
	text := node.Annotations[statusAnnotation]
	if text == "" {
		return v, errors.New("the Node has no status of a supervisor's")
	}
	return v, json.Unmarshal([]byte(text), &v.Config)
}

// says waits until the Node speaks of this assignment ("" for none) with one of these reasons.
func (o *outside) says(t *testing.T, assignment string, reasons ...string) (v nodeView) {
	t.Helper()
	await(t, fmt.Sprintf("the Node speaks of %q with %q", assignment, reasons), func() (err error) {
		if v, err = o.view(t); err != nil {
			return err
		}
		for _, reason := range reasons {
			if v.Observed == assignment && v.Condition.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("of %q it says %s: %s", v.Observed, v.Condition.Reason, v.Condition.Message)
	})
	return v
}

// away is without an API server until back is called.
func (o *outside) away(t *testing.T) (back func()) {
	t.Helper()
	if err := o.Signal(apiServer, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	o.End(apiServer)
	var once sync.Once
	back = func() {
		once.Do(func() {
			if err := errors.Join(o.Revive(apiServer), o.Ready(context.Background())); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(back)
	return back
}

// giveKeys writes what identifies the node into a folder of the machine.
func (o *outside) giveKeys(m *machine, folder string) {
	m.Helper()
	for _, name := range []string{"ca.crt", "node.crt", "node.key", "kubelet-serving.crt", "kubelet-serving.key"} {
		content, err := os.ReadFile(filepath.Join(o.Folder, "pki", name))
		if err != nil {
			m.Fatal(err)
		}
		m.write(filepath.Join(folder, name), string(content))
	}
}
