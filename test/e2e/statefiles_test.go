//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// A stateManager is one of the kubelet's managers that keep a state file, with a configuration of its static policy.
type stateManager struct {
	file, none, static string
	change             func(object)
}

var stateManagers = []stateManager{
	{"cpu_manager_state", "none", "static", changes(with("cpuManagerPolicy", "static"), with("kubeReserved", object{"cpu": "500m", "memory": "100Mi"}))},
	{"memory_manager_state", "None", "Static", changes(with("memoryManagerPolicy", "Static"), with("kubeReserved", object{"memory": "100Mi"}),
		with("reservedMemory", []object{{"numaNode": 0, "limits": object{"memory": "150Mi"}}}))}, // kubeReserved and evictionHard
}

// afterItsState is what a kubelet dies of when its state files are written.
var afterItsState = changes(with("enforceNodeAllocatable", []string{"pods", "kube-reserved"}), with("kubeReserved.memory", "100Mi"),
	with("kubeReservedCgroup", "/kubelet-supervisor-test-nonexistent"))

// outlivesTheDeadly is a trial that is longer than a busy machine lets the deadly one live, which was seen to be four seconds.
const outlivesTheDeadly = "--trial-period=8s"

// A static policy over a node that ran none is taken, passes its trial, and is left again: for another configuration, by a rollback
// and by the removal of the assignment. A running Guaranteed pod keeps its container (docs/evidence/faults.md).
func TestStaticPolicyComesAndGoes(t *testing.T)     { stateManagers[0].comeAndGo(t) }
func TestLongMemoryPolicyComesAndGoes(t *testing.T) { stateManagers[1].comeAndGo(t) }

func (m stateManager) comeAndGo(t *testing.T) {
	n := sharedNode(t)
	n.cleanState(t)
	s := n.startedLocal(t, options{Flags: []string{outlivesTheDeadly}})
	n.wantState(t, m.file, m.none)
	pod := n.startPod(t)
	assign := func(name, policy string, change func(object)) (*configMap, string) {
		t.Helper()
		starts := s.starts(t)
		c := n.putConfigMap(t, name, map[string]string{"kubelet": n.kubeletConfig(change)})
		n.assign(t, c.assignment("kubelet"))
		v := n.awaitReason(t, c.assignment("kubelet"), "Active")
		wantStatus(t, v, c.source("kubelet"), c.source("kubelet"), c.source("kubelet"), "")
		if got := s.starts(t) - starts; got != 1 {
			t.Errorf("%s: %d starts, want 1", name, got)
		}
		n.wantState(t, m.file, policy)
		n.wantAsides(t) // of no use to what passed its trial
		pod.wantSameContainer(t)
		return c, v.UID
	}
	_, uid := assign("static", m.static, m.change)
	n.awaitEvents(t, uid, "Normal KubeletConfigChanged: ", "Normal KubeletStateFileSetAside: "+m.file+" of policy "+m.none+" is set aside", "Normal KubeletConfigPromoted: ")
	assign("another", m.none, with("maxPods", 81))
	good, _ := assign("static", m.static, m.change)

	bad := n.putConfigMap(t, "deadly", map[string]string{"kubelet": n.kubeletConfig(afterItsState)})
	n.assign(t, bad.assignment("kubelet"))
	v := n.awaitReason(t, bad.assignment("kubelet"), "RolledBack")
	wantStatus(t, v, bad.source("kubelet"), good.source("kubelet"), good.source("kubelet"), runError)
	wantDeath(t, v, fmt.Sprintf("using last-known-good (UID: %q)", good.UID), "kubelet-supervisor-test-nonexistent")
	s.kubelet(t)
	n.wantState(t, m.file, m.static)
	pod.wantSameContainer(t)

	starts := s.starts(t)
	n.unassign(t)
	n.awaitReason(t, "", "Local")
	s.kubelet(t)
	n.wantState(t, m.file, m.none)
	if got := s.starts(t) - starts; got != 1 {
		t.Errorf("removed: %d starts, want 1", got)
	}
	holds(t, 3*time.Second, "the pod runs on", pod.sameContainer) // its status can be late
}

// A static configuration that dies of something else leaves its state file behind. It is rolled back within seconds all the same, to a
// kubelet that runs.
func TestLongStaticPolicyThatDiesOfSomethingElse(t *testing.T) {
	for _, m := range stateManagers {
		t.Run(m.file, func(t *testing.T) {
			n := sharedNode(t)
			n.cleanState(t)
			s := n.startedLocal(t, options{})
			pod := n.startPod(t)
			bad := n.putConfigMap(t, "deadly", map[string]string{"kubelet": n.kubeletConfig(m.change, afterItsState)})
			begin := time.Now()
			n.assign(t, bad.assignment("kubelet"))
			v := n.awaitReason(t, bad.assignment("kubelet"), "RolledBack")
			s.kubelet(t)
			t.Logf("a kubelet runs %.1f s after the assignment", time.Since(begin).Seconds())
			wantStatus(t, v, bad.source("kubelet"), nil, nil, runError)
			wantDeath(t, v, "using last-known-good (default)", "kubelet-supervisor-test-nonexistent")
			n.wantState(t, m.file, m.none)
			n.wantAsides(t, m.file+".aside-"+m.none, m.file+".aside-"+m.static)
			n.awaitReason(t, bad.assignment("kubelet"), "Rejected")
			pod.wantSameContainer(t)
		})
	}
}

// The supervisor is killed around the rename of a state file, in each direction; the next one comes to the same end.
func TestLongKilledWhileAStateFileIsSetAside(t *testing.T) {
	n := sharedNode(t)
	flags := []string{outlivesTheDeadly}
	for _, point := range []string{"before decide.SetAside", "renamed cpu_manager_state", "after decide.SetAside"} {
		t.Run(point, func(t *testing.T) {
			n.reset(t)
			n.cleanState(t)
			s := n.startedLocal(t, options{Flags: flags})
			n.wantState(t, "cpu_manager_state", "none")
			killedIn := func(assignment, reason, policy string) {
				t.Helper()
				s = n.killedAt(t, s, point, flags, func() {
					if assignment == "" {
						n.unassign(t)
					} else {
						n.assign(t, assignment)
					}
				})
				n.awaitReason(t, assignment, reason)
				s.kubelet(t)
				n.wantState(t, "cpu_manager_state", policy)
			}
			payload := func(name string, list ...func(object)) string {
				return n.putConfigMap(t, name, map[string]string{"kubelet": n.kubeletConfig(list...)}).assignment("kubelet")
			}
			static := payload("static", stateManagers[0].change)
			killedIn(static, "Active", "static")
			killedIn(payload("another", with("maxPods", 82)), "Active", "none")
			killedIn(payload("deadly", stateManagers[0].change, afterItsState), "RolledBack", "none")
			n.assign(t, static)
			n.awaitReason(t, static, "Active")
			killedIn("", "Local", "none")
		})
	}
}

// killedAt has a supervisor killed at a point of a change that is made when its kubelet runs, and starts the next one.
func (n *node) killedAt(t *testing.T, s *supervised, point string, flags []string, change func()) *supervised {
	t.Helper()
	return n.killedAtTurn(t, s, "1 "+point, flags, change)
}

// killedAtTurn: the point is the so-manieth of its kind.
func (n *node) killedAtTurn(t *testing.T, s *supervised, point string, flags []string, change func()) *supervised {
	t.Helper()
	binary, err := crashBinary()
	if err != nil {
		t.Fatal(err)
	}
	s.stop(t)
	s = n.startSupervisor(t, options{Flags: flags, After: s, Binary: binary, Environment: []string{"CRASH_AT=" + point}})
	s.kubelet(t)
	change()
	if code := s.ended(t); code != -1 {
		t.Fatalf("it was not killed at %s: it ended with %d", point, code)
	}
	return n.startSupervisor(t, options{Flags: flags, After: s})
}

// A reservation that grew over CPUs that are given away is a matter of the state file, though its policy is the same: it is mended by
// one start without the file, and is nobody's failure. The pod that had the CPU finds none any more, and would hold the change.
func TestReservationThatGrew(t *testing.T) {
	n := sharedNode(t)
	n.cleanState(t)
	s := n.startedLocal(t, options{Flags: []string{"--disruption=allow"}})
	pod := n.startPod(t)
	static := func(cpus string) *configMap {
		return n.putConfigMap(t, "reserved", map[string]string{"kubelet": n.kubeletConfig(with("cpuManagerPolicy", "static"), with("reservedSystemCPUs", cpus))})
	}
	little, more := static("0"), static("0-1")
	n.assign(t, little.assignment("kubelet"))
	n.awaitReason(t, little.assignment("kubelet"), "Active")
	pod.wantSameContainer(t)
	await(t, "the pod has a CPU of its own", func() error {
		content, err := os.ReadFile(n.stateFile("cpu_manager_state"))
		if err == nil && !strings.Contains(string(content), pod.uid) {
			err = fmt.Errorf("%s", content)
		}
		return err
	})

	starts := s.starts(t)
	n.assign(t, more.assignment("kubelet"))
	await(t, "the file is set aside", func() error {
		if !strings.Contains(s.log(t), "which the kubelet refused, is set aside") {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	v := n.awaitReason(t, more.assignment("kubelet"), "Active")
	wantStatus(t, v, more.source("kubelet"), more.source("kubelet"), more.source("kubelet"), "")
	if got := s.starts(t) - starts; got != 2 {
		t.Errorf("%d starts, want one that dies of the file and one without it", got)
	}
	for _, words := range []string{"not all reserved cpus", "KubeletStateFileSetAside"} {
		if !strings.Contains(s.log(t), words) {
			t.Errorf("%q is not in the log", words)
		}
	}
	n.awaitEvents(t, v.UID, "Normal KubeletStateFileSetAside: cpu_manager_state, which the kubelet refused, is set aside", "Normal KubeletConfigPromoted: ")
	// The phase is no proof of the reason: a container that ends before its kubelet has written the refusal makes it Succeeded (1.36).
	await(t, "the pod has ended", func() error {
		if now := pod.get(t); now.Status.Phase != corev1.PodFailed && now.Status.Phase != corev1.PodSucceeded {
			return fmt.Errorf("%s %s: %s", now.Status.Phase, now.Status.Reason, now.Status.Message)
		}
		return nil
	})
	if refused := fmt.Sprintf(`"Pod admission denied" podUID="%s" .*reason="UnexpectedAdmissionError"`, pod.uid); !regexp.MustCompile(refused).MatchString(s.log(t)) {
		t.Errorf("the kubelet never wrote %s", refused)
	}
}

func changes(list ...func(object)) func(object) {
	return func(config object) {
		for _, change := range list {
			change(config)
		}
	}
}

func (n *node) stateFile(name string) string { return filepath.Join(n.Folder, "kubelet", name) }

// cleanState leaves no state file, and nothing set aside, to other tests, nor takes theirs.
func (n *node) cleanState(t *testing.T) {
	t.Helper()
	clean := func() {
		files, _ := filepath.Glob(n.stateFile("*_manager_state*"))
		for _, file := range files {
			if !strings.HasPrefix(filepath.Base(file), "dra_") {
				_ = os.Remove(file)
			}
		}
	}
	clean()
	t.Cleanup(clean)
}

// wantState waits until the state file is of this policy: it is written a moment after healthz is ok.
func (n *node) wantState(t *testing.T, file, policy string) {
	t.Helper()
	await(t, file+" is of policy "+policy, func() error {
		var state struct{ PolicyName string }
		content, err := os.ReadFile(n.stateFile(file))
		if err == nil {
			err = json.Unmarshal(content, &state)
		}
		if err == nil && state.PolicyName != policy {
			err = fmt.Errorf("%s", content)
		}
		return err
	})
}

// wantAsides waits until these state files are aside, and no others.
func (n *node) wantAsides(t *testing.T, want ...string) {
	t.Helper()
	await(t, fmt.Sprintf("aside are %q", want), func() error {
		var found []string
		files, err := filepath.Glob(n.stateFile("*.aside-*"))
		for _, file := range files {
			found = append(found, filepath.Base(file))
		}
		if err == nil && strings.Join(found, " ") != strings.Join(want, " ") {
			err = fmt.Errorf("%q", found)
		}
		return err
	})
}

// A pod with a CPU and memory of its own, where a static policy gives them.
type pod struct {
	node      *node
	path, uid string
	container string // its ID
}

// startPod starts one and waits until it runs. It ends with the test, while there is a kubelet.
func (n *node) startPod(t *testing.T) *pod {
	t.Helper()
	name := uniqueName("guaranteed")
	p := &pod{node: n, path: "/api/v1/namespaces/default/pods/" + name}
	resources := object{"cpu": "1", "memory": "20Mi"}
	var made corev1.Pod
	n.must(t, http.MethodPost, "/api/v1/namespaces/default/pods", object{
		"metadata": object{"name": name},
		"spec": object{
			"nodeName": cluster.NodeName, "hostNetwork": true, "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 1,
			"tolerations": []object{{"operator": "Exists"}},
			"containers": []object{{"name": "pause", "image": cluster.PauseImage, "imagePullPolicy": "Never",
				"resources": object{"requests": resources, "limits": resources}}},
		},
	}, &made)
	p.uid = string(made.UID)
	t.Cleanup(func() {
		n.remove(t, p.path)
		await(t, "the pod is gone", func() error {
			if code, _ := n.request(http.MethodGet, p.path, nil, &corev1.Pod{}); code != http.StatusNotFound {
				return fmt.Errorf("answered with %d", code)
			}
			return nil
		})
	})
	await(t, "the pod runs", func() error {
		now := p.get(t)
		if now.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("%s %s: %s", now.Status.Phase, now.Status.Reason, now.Status.Message)
		}
		p.container = now.Status.ContainerStatuses[0].ContainerID
		return nil
	})
	return p
}

func (p *pod) get(t *testing.T) *corev1.Pod {
	t.Helper()
	var now corev1.Pod
	p.node.must(t, http.MethodGet, p.path, nil, &now)
	return &now
}

// wantSameContainer wants the pod to run as it was started.
func (p *pod) wantSameContainer(t *testing.T) {
	t.Helper()
	if err := p.sameContainer(); err != nil {
		t.Error(err)
	}
}

func (p *pod) sameContainer() error {
	var now corev1.Pod
	if _, err := p.node.request(http.MethodGet, p.path, nil, &now); err != nil {
		return err
	}
	containers := now.Status.ContainerStatuses
	if now.Status.Phase != corev1.PodRunning || len(containers) != 1 || containers[0].ContainerID != p.container || containers[0].RestartCount != 0 {
		return fmt.Errorf("the pod is %s %s, containers %+v; before: %s", now.Status.Phase, now.Status.Reason, containers, p.container)
	}
	return nil
}
