package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
)

// roomy is a Node as a kubelet with the defaults shows it.
func roomy(node *corev1.Node) *corev1.Node {
	node.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"),
		"ephemeral-storage": resource.MustParse("100Gi"), "pods": resource.MustParse("110")}
	node.Status.Allocatable = node.Status.Capacity.DeepCopy()
	node.Status.Allocatable["memory"] = resource.MustParse("8092Mi")
	return node
}

func runningPods(count int) []corev1.Pod {
	pods := []corev1.Pod{}
	for i := range count {
		name := fmt.Sprintf("be%d", i+1)
		pods = append(pods, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(i) * time.Second))},
			Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "main"}}},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBestEffort}})
	}
	return pods
}

func writtenFile(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubelet.yaml")
	if err := os.WriteFile(file, []byte(document.Header+content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const noneMatters = "no running pod would be killed at the restart by this: no field that decides over them changes"

func TestCheck(t *testing.T) {
	active := configMapOf("active", document.Header+"syncFrequency: 1m\n")
	for name, test := range map[string]struct {
		node    *corev1.Node
		config  string
		prepare func(b *bench)
		code    int
		want    string
	}{
		"pods would be killed": {assignedNode("n1", active), "maxPods: 3", nil, 4,
			"4 of 7 running pods would be killed at the restart: default/be4 (OutOfpods), default/be5 (OutOfpods), default/be6 (OutOfpods), default/be7 (OutOfpods)"},
		"none would":              {assignedNode("n1", active), "maxPods: 30", nil, 0, "none of 7 running pods would be killed at the restart"},
		"nothing that matters":    {assignedNode("n1", active), "syncFrequency: 2m", func(b *bench) { b.pods = nil }, 0, noneMatters},
		"a flag keeps it":         {assignedNode("n1", active), "maxPods: 3", func(b *bench) { b.configz["maxPods"] = int64(20) }, 0, noneMatters},
		"a local one, more":       {localNode("n1"), "maxPods: 30", nil, 0, "none of 7 running pods would be killed at the restart"},
		"a local one, fewer":      {localNode("n1"), "maxPods: 6", nil, 3, "1 of 7 running pods would be killed at the restart: default/be7 (OutOfpods); unless a kubelet flag or a drop-in file of the node sets maxPods"},
		"the kubelet is silent":   {assignedNode("n1", active), "maxPods: 3", func(b *bench) { b.configz = nil }, 3, "what would happen to running pods is not known: its kubelet cannot be asked what it runs with: nodes/proxy is forbidden"},
		"the pods are not known":  {assignedNode("n1", active), "maxPods: 3", func(b *bench) { b.pods = nil }, 3, "what would happen to running pods is not known: its pods cannot be listed: pods is forbidden"},
		"a gate":                  {assignedNode("n1", active), "featureGates: {A: true}", nil, 3, "none of 7 running pods is known to be killed at the restart; not known: featureGates.A: what this gate changes for running pods is not known"},
		"a gate, and pods":        {assignedNode("n1", active), "maxPods: 6\nfeatureGates: {A: true}", nil, 4, "1 of 7 running pods would be killed at the restart: default/be7 (OutOfpods); not known: featureGates.A: what this gate changes for running pods is not known"},
		"the disk is not known":   {assignedNode("n1", active), "evictionSoft: {nodefs.available: 50%}\nevictionSoftGracePeriod: {nodefs.available: 1m}", nil, 3, "evictionSoft.nodefs.available: the file system of the kubelet's root folder is not known; no statistics"},
		"the disk is full":        {assignedNode("n1", active), "evictionSoft: {nodefs.available: 50%}\nevictionSoftGracePeriod: {nodefs.available: 1m}", disk(10), 4, "7 of 7 running pods would be killed at the restart: default/be1 (Evicted), default/be2 (Evicted), default/be3 (Evicted), default/be4 (Evicted), default/be5 (Evicted)…"},
		"the disk is empty":       {assignedNode("n1", active), "evictionSoft: {nodefs.available: 50%}\nevictionSoftGracePeriod: {nodefs.available: 1m}", disk(90), 0, "none of 7 running pods"},
		"a kubelet of the future": {ofVersion(assignedNode("n1", active), "v1.99.0"), "syncFrequency: 2m", nil, 3, "; the defaults of v1.99.0 are not known to this program"},
		"a version between":       {ofVersion(assignedNode("n1", active), "v1.30.2"), "maxPods: 3", nil, 4, "4 of 7 running pods would be killed"},
		"the Node shows another":  {assignedNode("n1", active), "maxPods: 3", func(b *bench) { b.configz["kubeReserved"] = map[string]any{"cpu": "1"} }, 4, "the Node's allocatable cpu: it is 4, and the configuration that runs would give 3"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, roomy(test.node), active)
			b.pods = runningPods(7)
			b.factory.Summary = func(context.Context, kubernetes.Interface, string) (forecast.Host, error) {
				return b.host, map[bool]error{true: errors.New("no statistics")}[b.host.NodeFS == nil]
			}
			if test.prepare != nil {
				test.prepare(b)
			}
			code, stdout, stderr := b.run(t, "check", "n1", "-f", writtenFile(t, test.config))
			if code != test.code || !strings.Contains(stdout, test.want) || !strings.HasPrefix(stdout, "n1: ") || strings.Count(stdout, "\n") != 1 || stderr != "" {
				t.Errorf("code %d, said %q and %q", code, stdout, stderr)
			}
		})
	}
}

// disk has so many parts of a hundred free.
func disk(free int64) func(*bench) {
	return func(b *bench) {
		b.host.NodeFS = &forecast.Filesystem{Bytes: forecast.Amount{Available: free << 30, Capacity: 100 << 30}, Inodes: forecast.Amount{Available: 1e6, Capacity: 1e6}}
	}
}

func ofVersion(node *corev1.Node, version string) *corev1.Node {
	node.Status.NodeInfo.KubeletVersion = version
	return node
}

// What is certain for one node counts before what is not known of another.
func TestCheckOfNodes(t *testing.T) {
	active := configMapOf("active", document.Header)
	b := newBench(t, roomy(assignedNode("n1", active)), roomy(localNode("n2")), roomy(assignedNode("n3", active)), active, configMapOf("workers", document.Header+"maxPods: 6\n"))
	b.factory.Pods = func(_ context.Context, _ kubernetes.Interface, node string) ([]corev1.Pod, error) {
		return runningPods(map[string]int{"n1": 2, "n2": 7, "n3": 8}[node]), nil
	}
	const certain = ": 2 of 8 running pods would be killed at the restart: default/be7 (OutOfpods), default/be8 (OutOfpods)\n"
	const maybe = "n2: 1 of 7 running pods would be killed at the restart: default/be7 (OutOfpods); unless a kubelet flag or a drop-in file of the node sets maxPods\n"
	for _, test := range []struct {
		words []string
		code  int
		want  string
	}{
		{[]string{"-l", "pool=workers"}, 4, "n1: none of 2 running pods would be killed at the restart\n" + maybe + "n3" + certain},
		{[]string{"n2", "n1"}, 3, maybe + "n1: none of 2 running pods would be killed at the restart\n"},
		{[]string{"n1"}, 0, "n1: none of 2 running pods would be killed at the restart\n"},
	} {
		code, stdout, stderr := b.run(t, append([]string{"check", "--config", "workers"}, test.words...)...)
		if code != test.code || stdout != test.want || stderr != "" {
			t.Errorf("%v: code %d, said %q and %q", test.words, code, stdout, stderr)
		}
	}
	for _, action := range b.Actions() {
		if verb := action.GetVerb(); verb != "get" && verb != "list" {
			t.Errorf("%s of %s", verb, action.GetResource().Resource)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	b := newBench(t, roomy(localNode("n1")), roomy(localNode("n2")))
	for want, words := range map[string][]string{
		"name nodes, or select them with -l":                {"-f", writtenFile(t, "")},
		"give a file with -f, or a ConfigMap with --config": {"n1"},
		"maxPods":                                        {"n1", "-f", writtenFile(t, "maxPods: many")},
		"2 nodes cannot have it":                         {"n1", "n2", "-f", writtenFile(t, "providerID: x")},
		"known to the node alone":                        {"n1", "--config", "local"},
		`there is no node "n9"`:                          {"n9", "-f", writtenFile(t, "")},
		"no such file or directory":                      {"n1", "-f", "/nowhere"},
		"ConfigMap kubelet-config/absent does not exist": {"n1", "--config", "absent"},
	} {
		if code, _, stderr := b.run(t, append([]string{"check"}, words...)...); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%v: code %d, said %q", words, code, stderr)
		}
	}
}

// assign and diff say it too: in the preview once for nodes of which the same is known.
func TestImpactIsShown(t *testing.T) {
	active := configMapOf("active", document.Header)
	b := newBench(t, roomy(assignedNode("n1", active)), roomy(assignedNode("n2", active)), roomy(assignedNode("n3", active)), active, configMapOf("workers", document.Header+"maxPods: 3\n"))
	b.factory.Pods = func(_ context.Context, _ kubernetes.Interface, node string) ([]corev1.Pod, error) {
		return runningPods(map[string]int{"n2": 7}[node]), nil
	}
	const lost = "4 of 7 running pods would be killed at the restart: default/be4 (OutOfpods), default/be5 (OutOfpods), default/be6 (OutOfpods), default/be7 (OutOfpods)\n"
	_, stderr := b.do(t, "assign", "--config=workers", "--dry-run=client", "n1", "n2", "n3")
	contains(t, stderr, "n1, n2, n3, with kubelet-config/workers/kubelet:\n", "  n1, n3: none of 0 running pods would be killed at the restart\n", "  n2: "+lost)
	_, stderr = b.do(t, "assign", "--config=workers", "--dry-run=client", "n2")
	contains(t, stderr, "\n  "+lost)
	code, stdout, _ := b.run(t, "diff", "n2", "--config=workers")
	if contains(t, stdout, "\n  "+lost); code != 1 {
		t.Errorf("code %d", code)
	}
}
