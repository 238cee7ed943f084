//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/host"
)

// sandboxes are those of the node's container runtime, by the names of their pods.
func (n *node) sandboxes(t *testing.T) map[string]forecast.Sandbox {
	t.Helper()
	list, err := host.Sandboxes(context.WithoutCancel(t.Context()), "unix://"+filepath.Join(n.Folder, "containerd.sock"))
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]forecast.Sandbox{}
	for _, s := range list {
		byName[s.Namespace+"/"+s.Name] = s
	}
	return byName
}

// staticFolder is an empty folder of static pods.
func (n *node) staticFolder(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(n.Folder, uniqueName("static"))
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	return folder
}

// endStaticPods lets the kubelet end them at the end of the test. It is called after the start of the supervisor, which goes later.
func (n *node) endStaticPods(t *testing.T, folder string, pods ...string) {
	t.Helper()
	t.Cleanup(func() {
		files, _ := filepath.Glob(filepath.Join(folder, "*"))
		for _, file := range files {
			_ = os.Remove(file)
		}
		await(t, "the static pods are gone", func() error {
			for _, pod := range pods {
				if _, is := n.sandboxes(t)[pod]; is {
					return errors.New(pod + " runs")
				}
			}
			return nil
		})
	})
}

func staticManifest(name, namespace, version string) string {
	pod := podManifest(name, with("metadata.namespace", namespace), with("metadata.annotations", object{"version": version}))
	delete(pod["spec"].(object), "nodeName")
	text, err := json.Marshal(pod)
	if err != nil {
		panic(err) // made of what JSON has
	}
	return string(text)
}

func (n *node) awaitSandbox(t *testing.T, pod, version string) forecast.Sandbox {
	t.Helper()
	var seen forecast.Sandbox
	await(t, pod+" runs", func() error {
		seen = n.sandboxes(t)[pod]
		if seen.Annotations["version"] != version {
			return fmt.Errorf("%+v", seen)
		}
		return nil
	})
	return seen
}

// Rule 19: a static pod without an object in the API is one of the kubelet's pods. A configuration that reads no folder, or another one, waits. So does
// one that reads the same folder by another name: for the kubelet those are other pods.
func TestStaticPodWithoutAnObjectInTheAPI(t *testing.T) {
	n := sharedNode(t)
	const pod = "absent/silent-n1"
	folder := n.staticFolder(t)
	reads := with("staticPodPath", folder)
	s := n.startedLocal(t, options{Local: n.kubeletConfig(reads)})
	n.endStaticPods(t, folder, pod)
	writeFile(t, filepath.Join(folder, "silent.yaml"), staticManifest("silent", "absent", "1"))
	before := n.awaitSandbox(t, pod, "1")
	if code, _ := n.request(http.MethodGet, "/api/v1/namespaces/absent/pods/silent-n1", nil, &corev1.Pod{}); code != http.StatusNotFound {
		t.Fatalf("the API answers %d for its object", code)
	}
	running := s.kubelet(t)

	other := folder + "-link"
	if err := os.Symlink(folder, other); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(object){"no-folder": unchanged, "link": with("staticPodPath", other)} {
		config := n.putConfigMap(t, name, map[string]string{"kubelet": n.kubeletConfig(change)})
		n.assign(t, config.assignment("kubelet"))
		v := n.awaitReason(t, config.assignment("kubelet"), "WouldDisrupt")
		if want := "of static pods: " + pod + " (StaticPodPath)"; !strings.Contains(v.Condition.Message, want) {
			t.Errorf("%s: the message lacks %q: %s", name, want, v.Condition.Message)
		}
	}
	same := n.putConfigMap(t, "same-folder", map[string]string{"kubelet": n.kubeletConfig(reads, with("maxPods", 21))})
	n.assign(t, same.assignment("kubelet"))
	n.awaitReason(t, same.assignment("kubelet"), "Active")
	if now := n.sandboxes(t)[pod]; now.ID != before.ID {
		t.Errorf("the static pod ran in %s, and runs in %s", before.ID, now.ID)
	}
	if now := s.kubelet(t); now.ID == running.ID {
		t.Error("the kubelet was not restarted for a harmless change")
	}
}

// A backup beside a manifest: the kubelet runs one of the two, and a restart may bring the other. A harmless change waits until one is gone.
func TestTwoManifestsOfOnePod(t *testing.T) {
	n := sharedNode(t)
	const pod = "default/cp-n1"
	folder := n.staticFolder(t)
	reads := with("staticPodPath", folder)
	n.startedLocal(t, options{Local: n.kubeletConfig(reads)})
	n.endStaticPods(t, folder, pod)
	manifest, backup := filepath.Join(folder, "cp.yaml"), filepath.Join(folder, "cp.yaml.backup")
	writeFile(t, manifest, staticManifest("cp", "default", "old"))
	n.awaitSandbox(t, pod, "old")
	writeFile(t, backup, staticManifest("cp", "default", "old"))
	writeFile(t, manifest, staticManifest("cp", "default", "new"))

	config := n.putConfigMap(t, "harmless", map[string]string{"kubelet": n.kubeletConfig(reads, with("maxPods", 21))})
	n.assign(t, config.assignment("kubelet"))
	v := n.awaitReason(t, config.assignment("kubelet"), "WouldDisrupt")
	if want := "of static pods: " + pod + " (StaticPodTwice: cp.yaml and cp.yaml.backup)"; !strings.Contains(v.Condition.Message, want) {
		t.Errorf("the message lacks %q: %s", want, v.Condition.Message)
	}
	if err := os.Remove(backup); err != nil {
		t.Fatal(err)
	}
	after := n.awaitSandbox(t, pod, "new")
	n.annotate(t, retryAnnotation, uniqueName("tidy"))
	n.awaitReason(t, config.assignment("kubelet"), "Active")
	if now := n.sandboxes(t)[pod]; now.ID != after.ID {
		t.Errorf("the static pod ran in %s, and runs in %s", after.ID, now.ID)
	}
}

// A pod that a person takes away soon after a change is not lost at its restart.
func TestLongADeletedPodIsNotLost(t *testing.T) {
	n := sharedNode(t)
	flag, metrics := metricsFlag(t)
	n.startedLocal(t, options{Flags: []string{flag}})
	k := n.bareKubelet(t) // for its pods alone
	k.putYounger(t, "stays")
	k.putYounger(t, "goes")
	t.Cleanup(func() { k.removePods(t) })
	k.allRun(t, 2)
	config := n.putConfigMap(t, "harmless", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 21))})
	n.assign(t, config.assignment("kubelet"))
	v := n.awaitReason(t, config.assignment("kubelet"), "Active")
	k.remove(t, podsFolder+"/goes")
	holds(t, 70*time.Second, "no pod is called lost", func() error {
		if events := n.events(t, v.UID); slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, "PodsLost") }) {
			return errors.New(strings.Join(events, " | "))
		}
		return nil
	})
	wantMetrics(t, metrics, `kubelet_supervisor_pods_lost_total{reason="Other"} 0`)
}
