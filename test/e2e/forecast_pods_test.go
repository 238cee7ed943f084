//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// sevenPods are 4 BestEffort, 2 that ask for 1 GiB, and a Guaranteed one with a whole CPU; each a second younger than the one before.
func sevenPods(t *testing.T, k *bareKubelet) {
	for _, name := range []string{"be1", "be2", "be3", "be4"} {
		k.putYounger(t, name)
	}
	for _, name := range []string{"bu1", "bu2"} {
		k.putYounger(t, name, resources(object{"memory": "1Gi"}, object{}))
	}
	k.putYounger(t, "gu1", resources(object{"cpu": "1", "memory": "64Mi"}, object{"cpu": "1", "memory": "64Mi"}))
}

// putYounger makes a pod when the second of those before is over.
func (k *bareKubelet) putYounger(t *testing.T, name string, changes ...func(object)) {
	t.Helper()
	var newest time.Time
	for _, pod := range k.pods(t) {
		if created := pod.CreationTimestamp.Time; created.After(newest) {
			newest = created
		}
	}
	await(t, "another second", func() error {
		if !time.Now().After(newest.Add(1100 * time.Millisecond)) {
			return errors.New("it is the same")
		}
		return nil
	})
	k.putPod(t, name, changes...)
}

// putTogether makes pods that the API dates alike.
func (k *bareKubelet) putTogether(t *testing.T, names ...string) {
	t.Helper()
	await(t, "pods of one second", func() error {
		seconds := map[int64]bool{}
		for _, name := range names {
			var made corev1.Pod
			k.must(t, http.MethodPost, podsFolder, podManifest(name), &made)
			seconds[made.CreationTimestamp.Unix()] = true
		}
		if len(seconds) == 1 {
			return nil
		}
		for _, name := range names {
			k.remove(t, podsFolder+"/"+name)
		}
		await(t, "they are gone", func() error {
			for _, name := range names {
				if _, is := k.seen(t)[name]; is {
					return fmt.Errorf("%s is there", name)
				}
			}
			return nil
		})
		return fmt.Errorf("%v", slices.Collect(maps.Keys(seconds)))
	})
}

// putStatic writes a static pod's file; in the API it is called NAME-n1.
func (k *bareKubelet) putStatic(t *testing.T, name string, changes ...func(object)) {
	t.Helper()
	pod := podManifest(name, changes...)
	delete(pod["spec"].(object), "nodeName")
	content, err := json.Marshal(pod)
	if err == nil {
		err = os.WriteFile(filepath.Join(k.staticPods(), name+".json"), content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// putPod makes a pod that is bound to the node.
func (k *bareKubelet) putPod(t *testing.T, name string, changes ...func(object)) {
	t.Helper()
	k.must(t, http.MethodPost, podsFolder, podManifest(name, changes...), nil)
}

func podManifest(name string, changes ...func(object)) object {
	pod := object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name, "namespace": "default"}, "spec": object{
		"nodeName": cluster.NodeName, "hostNetwork": true, "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 1,
		"containers": []any{object{"name": "main", "image": cluster.PauseImage, "imagePullPolicy": "Never", "resources": object{}}}}}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func resources(requests, limits object) func(object) {
	return func(pod object) {
		pod["spec"].(object)["containers"].([]any)[0].(object)["resources"] = object{"requests": requests, "limits": limits}
	}
}

// allRun waits until all pods do.
func (k *bareKubelet) allRun(t *testing.T, count int) map[string]podSeen {
	t.Helper()
	var all map[string]podSeen
	await(t, "all pods run", func() error {
		all = k.seen(t)
		for name, s := range all {
			if s.Phase != string(corev1.PodRunning) || strings.Contains(s.Containers, "  0;") || s.Containers == "" {
				return fmt.Errorf("%s: %+v", name, s)
			}
		}
		if len(all) != count {
			return fmt.Errorf("there are %d, want %d", len(all), count)
		}
		return nil
	})
	return all
}

// removePods leaves none, of files neither. A kubelet has to run.
func (k *bareKubelet) removePods(t *testing.T) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(k.staticPods(), "*"))
	for _, file := range files {
		_ = os.Remove(file)
	}
	for name := range k.seen(t) {
		k.remove(t, podsFolder+"/"+name)
	}
	await(t, "no pod is left", func() error {
		if left := k.seen(t); len(left) > 0 {
			return fmt.Errorf("%v", left)
		}
		return nil
	})
}

func (k *bareKubelet) staticPods() string { return filepath.Join(k.Folder, "forecast-static") }
