//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// running is a node whose local configuration runs, with this many pods.
func (n *node) running(t *testing.T, o options, pods int, changes ...func(object)) *held {
	t.Helper()
	h := &held{node: n, gateway: n.openGateway(t), k: n.bareKubelet(t)}
	o.Flags = append(o.Flags, "--kubeconfig="+h.gateway.kubeconfig)
	h.s = n.startedLocal(t, o)
	h.s.awaitAsked(t)
	t.Cleanup(func() { h.k.removePods(t) })
	for i := range pods {
		h.k.putYounger(t, fmt.Sprintf("be%d", i+1), changes...)
	}
	h.kubelet = h.s.kubelet(t)
	return h
}

// startsAgain starts another supervisor after one that has ended.
func (h *held) startsAgain(t *testing.T, o options) {
	t.Helper()
	o.After, o.Flags = h.s, append(o.Flags, "--kubeconfig="+h.gateway.kubeconfig)
	h.s = h.startSupervisor(t, o)
	t.Cleanup(func() { h.k.removePods(t) })
}

// assigns a configuration that differs from the local one so.
func (h *held) assigns(t *testing.T, changes ...func(object)) {
	t.Helper()
	h.change = h.putConfigMap(t, "change", map[string]string{"kubelet": h.kubeletConfig(changes...)})
	h.assign(t, h.change.assignment("kubelet"))
}

// untouched: whatever became of the kubelet, no pod was.
func (h *held) untouched(t *testing.T, during time.Duration, although string) {
	t.Helper()
	holds(t, during, "no pod is touched although "+although, func() error {
		for name, now := range h.k.seen(t) {
			if now != h.pods[name] {
				return fmt.Errorf("%s: %+v, then %+v", name, h.pods[name], now)
			}
		}
		return nil
	})
}

// The pods of a node are the kubelet's: one of two containers runs, and the pod is Pending for the API as long as the other one cannot start.
func TestPendingPodsThatRun(t *testing.T) {
	h := sharedNode(t).running(t, options{}, 4, func(pod object) {
		spec := pod["spec"].(object)
		spec["containers"] = append(spec["containers"].([]any), object{"name": "other", "image": "absent.example/none:1", "imagePullPolicy": "Never"})
	})
	await(t, "one container of each runs", func() error {
		for name, p := range h.k.seen(t) {
			if p.Phase != "Pending" || !strings.Contains(p.Containers, "main containerd://") {
				return fmt.Errorf("%s: %+v", name, p)
			}
		}
		return nil
	})
	before := h.sandboxes(t)
	h.assigns(t, with("maxPods", 2))
	h.awaitHeld(t)
	for name, sandbox := range h.sandboxes(t) {
		if before[name].ID != sandbox.ID {
			t.Errorf("the sandbox of %s was %s, and is %s", name, before[name].ID, sandbox.ID)
		}
	}
}

// A hard threshold of memory that is certainly met evicts pods that are admitted, one after the other.
func TestAMetMemoryThresholdIsHeld(t *testing.T) {
	h := sharedNode(t).running(t, options{}, 2, resources(object{"memory": "1Mi"}, object{}))
	h.pods = h.k.allRun(t, 2)
	h.assigns(t, with("evictionHard", object{"memory.available": "99%"}))
	h.awaitHeld(t)
	h.stays(t, 2*time.Second, "the pods would be admitted")
}

// A start takes what ran last (rule 19): neither a kill of the supervisor nor a restart of its service makes a change that nobody has looked at.
func TestNoStartMakesAChange(t *testing.T) {
	t.Run("an edit waits for its turn, and the supervisor is killed", func(t *testing.T) {
		o := options{Flags: []string{"--edit-spread=30m"}}
		h := sharedNode(t).running(t, o, 2)
		h.k.allRun(t, 2)
		h.assigns(t, with("maxPods", 19))
		h.awaitReason(t, h.change.assignment("kubelet"), "Active")
		h.change.set(t, "kubelet", h.kubeletConfig(with("maxPods", 2)))
		h.awaitNode(t, "the edit waits for its turn", func(v nodeView) bool { return v.Condition.Reason == "Applying" })
		h.k.putYounger(t, "be3")
		h.k.putYounger(t, "be4")
		h.pods = h.k.allRun(t, 4)
		h.s.kill(t)
		h.startsAgain(t, o)
		h.awaitHeld(t)
		h.untouched(t, time.Second, "the supervisor was killed")
	})
	t.Run("it was refused, and is not any more, and the service is restarted", func(t *testing.T) {
		n := sharedNode(t)
		o := options{Kubelet: n.ownKubelet(t)}
		h := n.running(t, o, 4)
		h.pods = h.k.allRun(t, 4)
		resolv := filepath.Join(n.Folder, uniqueName("resolv"))
		h.assigns(t, with("maxPods", 2), with("resolvConf", resolv))
		h.awaitReason(t, h.change.assignment("kubelet"), "Refused")
		h.s.stop(t)
		writeFile(t, resolv, "nameserver 192.0.2.1\n") // stands for a kubelet that takes what the one before did not
		if err := os.Chtimes(o.Kubelet, time.Now(), time.Now()); err != nil {
			t.Fatal(err)
		}
		h.startsAgain(t, o)
		h.awaitHeld(t)
		h.untouched(t, time.Second, "the service was restarted")
	})
	t.Run("it was refused, and is not any more, nobody answers, and the kubelet is killed", func(t *testing.T) {
		n := sharedNode(t)
		h := n.running(t, options{}, 4)
		h.pods = h.k.allRun(t, 4)
		resolv := filepath.Join(n.Folder, uniqueName("resolv"))
		h.assigns(t, with("maxPods", 2), with("resolvConf", resolv))
		h.awaitReason(t, h.change.assignment("kubelet"), "Refused")
		writeFile(t, resolv, "nameserver 192.0.2.1\n")
		h.gateway.lose(http.StatusServiceUnavailable, -1)
		h.looked(t, `"known": false`, func() { h.retry(t) })
		_ = syscall.Kill(h.kubelet.ID, syscall.SIGKILL)
		await(t, "another kubelet runs", func() error { return differs(h.kubelets(t), h.kubelet) })
		h.s.kubelet(t)
		h.untouched(t, 5*time.Second, "the kubelet was killed")
	})
}

// A container runtime that hangs says nothing about a change, and nothing against a configuration.
func TestLongAHungRuntime(t *testing.T) {
	hang := func(t *testing.T, n *node, during time.Duration, meanwhile func()) {
		t.Helper()
		if err := n.Signal("containerd", syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = n.Signal("containerd", syscall.SIGCONT) })
		meanwhile()
		<-time.After(during)
		if err := n.Signal("containerd", syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("while what is held is looked at", func(t *testing.T) {
		n := sharedNode(t)
		h := n.running(t, options{}, 4)
		h.pods = h.k.allRun(t, 4)
		h.assigns(t, with("evictionHard", object{"memory.available": "50Mi", "imagefs.available": "99%"}))
		h.awaitHeld(t)
		for _, during := range []time.Duration{3500 * time.Millisecond, 7 * time.Second} {
			hang(t, n, during, func() { h.retry(t) })
			h.stays(t, 5*time.Second, "the runtime did not answer for "+during.String())
		}
	})
	t.Run("and the kubelet is killed while a change is held", func(t *testing.T) {
		n := sharedNode(t)
		h := n.hold(t, options{})
		hang(t, n, 25*time.Second, func() { _ = syscall.Kill(h.kubelet.ID, syscall.SIGKILL) })
		await(t, "another kubelet runs", func() error { return differs(h.kubelets(t), h.kubelet) })
		h.s.kubelet(t)
		h.awaitHeld(t)
		h.untouched(t, 5*time.Second, "the runtime hung")
	})
	t.Run("and the kubelet with a proven configuration is killed", func(t *testing.T) {
		n := sharedNode(t)
		h := n.running(t, options{Local: n.kubeletConfig(with("maxPods", 2))}, 0)
		h.assigns(t)
		h.awaitReason(t, h.change.assignment("kubelet"), "Active")
		h.awaitNode(t, "there is room", func(v nodeView) bool { return v.Node.Status.Allocatable.Pods().Value() > 4 })
		for i := range 4 {
			h.k.putYounger(t, fmt.Sprintf("be%d", i+1))
		}
		h.pods = h.k.allRun(t, 4)
		hang(t, n, 45*time.Second, func() { _ = syscall.Kill(h.s.kubelet(t).ID, syscall.SIGKILL) })
		h.awaitReason(t, h.change.assignment("kubelet"), "Active")
		h.untouched(t, 5*time.Second, "the runtime hung")
	})
}

// The words by which a kubelet is known to go past its check count where it says them, and not in a value that it quotes.
func TestWordsOfAStartInAPayload(t *testing.T) {
	h := sharedNode(t).running(t, options{}, 4)
	h.pods = h.k.allRun(t, 4)
	h.assigns(t, with("topologyManagerPolicy", "Starting kubelet"))
	h.awaitReason(t, h.change.assignment("kubelet"), "Refused")
	h.assigns(t, with("maxPods", 2))
	h.awaitHeld(t)
	h.stays(t, time.Second, "another payload has the words of a start")
}
