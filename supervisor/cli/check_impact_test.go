//go:build linux

package cli

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	machine "github.com/kubelet-supervisor/kubelet-supervisor/supervisor/host"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// threePods run on n1, which has room for so many pods in all. Its kubelet's credentials are in a file.
func threePods(t *testing.T, room int64) (kubeconfig string) {
	t.Helper()
	node := corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	looked, _ := machine.Look(t.Context(), machine.Kubelet{RootDir: t.TempDir()}) // a Node of another size is a doubt of its own
	node.Status.Capacity = corev1.ResourceList{"cpu": *resource.NewQuantity(int64(len(looked.CPUs)), resource.DecimalSI),
		"memory": *resource.NewQuantity(looked.MemoryTotal, resource.BinarySI), "pods": *resource.NewQuantity(room, resource.DecimalSI)}
	free := looked.MemoryTotal
	for size, bytes := range looked.HugePages {
		node.Status.Capacity[size] = *resource.NewQuantity(bytes, resource.BinarySI)
		free -= bytes
	}
	node.Status.Allocatable = maps.Clone(node.Status.Capacity)
	node.Status.Allocatable["memory"] = *resource.NewQuantity(free, resource.BinarySI)
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	for i := range 3 {
		name := fmt.Sprintf("be%d", i+1)
		list.Items = append(list.Items, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(time.Unix(int64(1e9+i), 0))},
			Spec:       corev1.PodSpec{NodeName: "n1", RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "main"}}},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBestEffort}})
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/api/v1/pods" && r.URL.Query().Get("fieldSelector") == "spec.nodeName=n1":
			respond(w, list)
		case r.URL.Path == "/api/v1/nodes/n1":
			respond(w, node)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return written(t, filepath.Join(t.TempDir(), "kubelet.conf"), fmt.Sprintf(kubeconfigText, server.URL))
}

func withRoom(pods int) string {
	return fakenode.Configuration("mode: ok") + fmt.Sprintf("maxPods: %d\n", pods)
}

const noSupervisor = "the local configuration (no supervisor runs) runs now; "

func TestCheckImpact(t *testing.T) {
	kubeconfig := threePods(t, 20)
	for name, test := range map[string]struct {
		content string
		flags   []string // of check
		kubelet []string // flags of its own
		code    int
		stdout  string // after the verdict
	}{
		"room for all":    {withRoom(10), nil, []string{"--kubeconfig=" + kubeconfig}, 0, noSupervisor + "none of 3 running pods would be killed at the restart\n"},
		"the same":        {withRoom(20), nil, []string{"--kubeconfig=" + kubeconfig}, 0, noSupervisor + "none of 3 running pods would be killed at the restart\n"},
		"room for one":    {withRoom(1), nil, []string{"--kubeconfig=" + kubeconfig}, 4, noSupervisor + "2 of 3 running pods would be killed at the restart: default/be2 (OutOfpods), default/be3 (OutOfpods)\n"},
		"flags of ours":   {withRoom(2), []string{"--kubeconfig=" + kubeconfig, "--node-name=n1"}, []string{"--hostname-override=n2"}, 4, noSupervisor + "1 of 3 running pods would be killed at the restart: default/be3 (OutOfpods)\n"},
		"a flag shadows":  {withRoom(1), nil, []string{"--kubeconfig=" + kubeconfig, "--max-pods=20"}, 0, noSupervisor + "none of 3 running pods would be killed at the restart\n"},
		"no credentials":  {withRoom(1), nil, nil, 3, noSupervisor + "what would happen to running pods is not known: the Node: it is not known\nunknown: the kubelet has no kubeconfig, so its Node and pods are not known; give one with --kubeconfig\nunknown: the node's pods: they are not known\n"},
		"another node":    {withRoom(1), []string{"--node-name=n2"}, []string{"--kubeconfig=" + kubeconfig}, 3, noSupervisor + "what would happen to running pods is not known: the Node: it is not known\nunknown: reading Node n2: "},
		"a gate":          {withRoom(20) + "featureGates: {Some: true}\n", nil, []string{"--kubeconfig=" + kubeconfig}, 3, "featureGates.Some: what this gate changes for running pods is not known\n"},
		"a certain loss":  {withRoom(1) + "featureGates: {Some: true}\n", nil, []string{"--kubeconfig=" + kubeconfig}, 4, "default/be3 (OutOfpods)\nunknown: featureGates.Some: what this gate changes for running pods is not known\n"},
		"it is refused":   {fakenode.Configuration("mode: refuse, words: maxPods -1"), nil, []string{"--kubeconfig=" + kubeconfig}, 1, ""},
		"nothing is told": {fakenode.Configuration("mode: exitZero"), nil, []string{"--kubeconfig=" + kubeconfig}, 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			written(t, n.local, withRoom(20))
			file := written(t, filepath.Join(n.folder, "new.yaml"), test.content)
			words := append([]string{"check", "--impact", "--run-dir=" + n.runDir, "--state-dir=" + n.stateDir}, test.flags...)
			words = append(append(append(words, file, "--"), n.kubelet...), "--hostname-override=n1")
			code, stdout, stderr := does(append(words, test.kubelet...)...)
			verdict, impact, _ := strings.Cut(stdout, "\n")
			if code != test.code || !strings.Contains(impact, test.stdout) || test.stdout == "" && stdout != "" || test.stdout != "" && !strings.Contains(verdict, " is accepted by ") {
				t.Errorf("code %d, said %q and %q", code, stdout, stderr)
			}
		})
	}
}

// What runs is what the supervisor says, with the flags that it gave the kubelet.
func TestCheckImpactBesideASupervisor(t *testing.T) {
	for name, test := range map[string]struct {
		runs   string // assigned; "" is local, with room for 20
		room   int64
		change func(n *node)
		code   int
		said   string
	}{
		"local":           {"", 20, nil, 4, "the local configuration runs now; 1 of 3 running pods would be killed"},
		"assigned":        {withRoom(30), 30, nil, 4, "kube-system/assigned/kubelet (UID "},
		"not as the Node": {withRoom(30), 20, nil, 4, "the Node's allocatable pods: it is 20, and the configuration that runs would give 30"},
		"the state is gone": {withRoom(30), 30, func(n *node) { n.stateDir = filepath.Join(n.folder, "other") }, 3,
			"unknown: what runs now: looking into the state folder: "},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			written(t, n.local, withRoom(20))
			n.keeps(test.runs, "")
			if record := n.run().awaitHealthy(); (record.Runs == nil) != (test.runs == "") {
				t.Fatalf("%+v runs", record.Runs)
			}
			words := []string{"check", "--impact", "--run-dir=" + n.runDir, "--node-name=n1", "--kubeconfig=" + threePods(t, test.room)}
			if test.change != nil {
				test.change(n)
				words = append(words, "--state-dir="+n.stateDir)
			}
			file := written(t, filepath.Join(n.folder, "new.yaml"), withRoom(2))
			code, stdout, stderr := does(append(words, file, "--", fakeKubelet)...)
			if code != test.code || !strings.Contains(stdout, test.said) {
				t.Errorf("code %d, said %q and %q", code, stdout, stderr)
			}
		})
	}
}

// A kubelet whose files were edited since it was started does not tell any more what it runs with.
func TestCheckImpactAfterAnEdit(t *testing.T) {
	n := newNode(t)
	written(t, n.local, withRoom(20))
	p := n.run()
	p.awaitHealthy()
	written(t, n.local, withRoom(2))
	fakenode.Await(t, "the supervisor sees the edit", func() bool { return p.awaitHealthy().LocalPending })
	code, stdout, stderr := does("check", "--impact", "--run-dir="+n.runDir, "--node-name=n1", "--kubeconfig="+threePods(t, 20), n.local, "--", fakeKubelet)
	if code != checkUnknown || !strings.Contains(stdout, "unknown: what runs now: the kubelet's program or local files were changed since it was started\n") {
		t.Errorf("code %d, said %q and %q", code, stdout, stderr)
	}
}

func TestCheckImpactUsage(t *testing.T) {
	for want, words := range map[string][]string{
		"--impact is about one FILE, and --active about what this node has": {"--impact", "--active"},
		"--kubeconfig is only for --impact":                                 {"--kubeconfig=x", "FILE"},
		"--node-name is only for --impact":                                  {"--node-name=x", "FILE"},
		"--run-dir is only for --active and --impact":                       {"--run-dir=/x", "FILE"},
		`--state-dir="x" is not an absolute path`:                           {"--impact", "--state-dir=x", "FILE"},
		`--run-dir="x" is not an absolute path`:                             {"--impact", "--run-dir=x", "FILE"},
		"give one FILE before --":                                           {"--impact"},
	} {
		if code, _, stderr := does(append(append([]string{"check"}, words...), "--", fakeKubelet)...); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%q: code %d, said %q", words, code, stderr)
		}
	}
}
