//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func unchanged(object) {}

// spec sets a field of a pod's spec.
func spec(path string, value any) func(object) { return with("spec."+path, value) }

// withMsgmax gives a pod a sysctl that a kubelet forbids, unless allowedUnsafeSysctls has it.
var withMsgmax = spec("securityContext", object{"sysctls": []object{{"name": "kernel.msgmax", "value": "65536"}}})

func forecastRows(n *node) []forecastRow {
	static, cpus := with("cpuManagerPolicy", "static"), runtime.NumCPU()
	total := int64(0)
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		_, _ = fmt.Sscanf(string(text), "MemTotal: %d kB", &total)
	}
	return []forecastRow{
		{name: "what touches nobody", slow: true, now: unchanged, then: changes(with("podPidsLimit", 4000), with("eventRecordQPS", 9), with("cpuCFSQuota", false)), pods: sevenPods, count: 7},
		{name: "maxPods", now: unchanged, then: with("maxPods", 3), pods: sevenPods, count: 7, least: 4},
		{name: "podsPerCore", slow: true, now: unchanged, then: with("podsPerCore", 1), pods: sevenPods, count: 7, least: max(0, 7-cpus)},
		{name: "a hard disk threshold", slow: true, now: unchanged, then: with("evictionHard", object{"memory.available": "50Mi", "nodefs.available": "99%"}), pods: sevenPods, count: 7, least: 7},
		{name: "a soft disk threshold", now: unchanged, then: changes(with("evictionSoft", object{"imagefs.available": "99%"}), with("evictionSoftGracePeriod", object{"imagefs.available": "1h"})), pods: sevenPods, count: 7, least: 7},
		{name: "a soft memory threshold", slow: true, now: unchanged, then: changes(with("evictionSoft", object{"memory.available": "99%"}), with("evictionSoftGracePeriod", object{"memory.available": "1h"})), pods: sevenPods, count: 7, least: 4},
		// 1.5 GiB are left for two pods of 1 GiB.
		{name: "systemReserved", slow: true, now: unchanged, then: with("systemReserved", object{"memory": fmt.Sprintf("%dMi", total>>10-1536-50)}), pods: sevenPods, count: 7, least: 1},
		{name: "a CPU manager", now: unchanged, then: changes(static, with("kubeReserved", object{"cpu": fmt.Sprintf("%dm", 1000*cpus-800)})), pods: sevenPods, count: 7, freshCPUs: true, least: 1},
		{name: "CPUs that are reserved although given away", slow: true, now: changes(static, with("reservedSystemCPUs", "0")), then: with("reservedSystemCPUs", fmt.Sprintf("0-%d", cpus-1)), pods: sevenPods, count: 7, freshCPUs: true, least: 1},
		{name: "a CPU manager that keeps its file", slow: true, now: changes(static, with("reservedSystemCPUs", "0")), then: with("podPidsLimit", 4000), pods: sevenPods, count: 7},
		{name: "cgroupRoot", slow: true, now: unchanged, then: with("cgroupRoot", "/kubelet-supervisor-"+n.Name+"/other"), pods: withStatic(sevenPods), count: 8, least: 7,
			meanwhile: func(t *testing.T, k *bareKubelet) { makeCgroup(t, "kubelet-supervisor-"+n.Name, "other") }},
		{name: "cgroups of pods", slow: true, now: changes(with("cgroupsPerQOS", false), with("enforceNodeAllocatable", []string{"none"})), then: changes(with("cgroupsPerQOS", true), with("enforceNodeAllocatable", []string{"pods"})),
			pods: sevenPods, count: 7, least: 7},
		{name: "staticPodPath", slow: true, now: unchanged, then: with("staticPodPath", filepath.Join(n.Folder, "forecast-other")), pods: withStatic(sevenPods), count: 8,
			meanwhile: func(t *testing.T, k *bareKubelet) {
				if err := os.MkdirAll(filepath.Join(n.Folder, "forecast-other"), 0o700); err != nil {
					t.Fatal(err)
				}
			}},
		{name: "staticPodPath by another name", slow: true, now: unchanged, then: with("staticPodPath", filepath.Join(n.Folder, "forecast-link")), pods: withStatic(func(*testing.T, *bareKubelet) {}), count: 1,
			meanwhile: func(t *testing.T, k *bareKubelet) {
				if err := os.Symlink(k.staticPods(), filepath.Join(n.Folder, "forecast-link")); err != nil {
					t.Fatal(err)
				}
			}},
		{name: "pods of one second", slow: true, now: unchanged, then: with("maxPods", 3), count: 6, least: 3, pods: func(t *testing.T, k *bareKubelet) {
			k.putStatic(t, "static")
			k.putTogether(t, "t1", "t2", "t3", "t4")
			k.putYounger(t, "young")
		}},
		{name: "a critical pod makes room", slow: true, now: unchanged, then: with("maxPods", 3), count: 4, least: 1, pods: func(t *testing.T, k *bareKubelet) {
			k.putYounger(t, "gu", resources(object{"cpu": "100m", "memory": "32Mi"}, object{"cpu": "100m", "memory": "32Mi"}))
			k.putYounger(t, "bu", resources(object{"cpu": "100m"}, object{}))
			k.putYounger(t, "be")
			k.putYounger(t, "critical", spec("priorityClassName", "system-node-critical"))
		}},
		{name: "taint, selector, affinity and sysctl", slow: true, now: with("allowedUnsafeSysctls", []string{"kernel.msg*"}), then: with("allowedUnsafeSysctls", []string{"kernel.sem"}), count: 7, least: 1,
			pods: placedPods, meanwhile: moveNode},
	}
}

// withStatic adds a static pod.
func withStatic(pods func(*testing.T, *bareKubelet)) func(*testing.T, *bareKubelet) {
	return func(t *testing.T, k *bareKubelet) {
		k.putStatic(t, "static")
		pods(t, k)
	}
}

// placedPods are pods in the right place, of which moveNode makes a wrong one.
func placedPods(t *testing.T, k *bareKubelet) {
	await(t, "the Node is there", func() error {
		_, err := k.request(http.MethodPatch, nodePath, object{"metadata": object{"labels": object{"disk": "ssd"}}}, nil)
		return err
	})
	tolerant := spec("tolerations", []object{{"operator": "Exists"}})
	selects := spec("nodeSelector", object{"disk": "ssd"})
	k.putPod(t, "tainted")
	k.putPod(t, "tolerant", tolerant)
	k.putPod(t, "selector", tolerant, selects)
	k.putPod(t, "affinity", tolerant, spec("affinity", object{"nodeAffinity": object{"requiredDuringSchedulingIgnoredDuringExecution": object{
		"nodeSelectorTerms": []object{{"matchExpressions": []object{{"key": "disk", "operator": "In", "values": []string{"ssd", "hdd"}}}}}}}}))
	k.putPod(t, "sysctl", tolerant, withMsgmax)
	k.putStatic(t, "static")
	k.putStatic(t, "static-selector", selects)
}

func moveNode(t *testing.T, k *bareKubelet) {
	k.must(t, http.MethodPatch, nodePath, object{"metadata": object{"labels": object{"disk": nil}},
		"spec": object{"taints": []object{{"key": "broken", "value": "yes", "effect": "NoExecute"}}}}, nil)
}

// makeCgroup makes a cgroup below the cluster's, in every hierarchy, which goes with it.
func makeCgroup(t *testing.T, parent, name string) {
	t.Helper()
	folders, err := filepath.Glob("/sys/fs/cgroup/*/" + parent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		folders = []string{"/sys/fs/cgroup/" + parent}
	}
	for _, folder := range folders {
		made := filepath.Join(folder, name)
		if err := os.MkdirAll(made, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // empty on v1, and then no process may come in
			if value, err := os.ReadFile(filepath.Join(folder, file)); err == nil && !strings.Contains(folder, "unified") {
				_ = os.WriteFile(filepath.Join(made, file), value, 0)
			}
		}
	}
}
