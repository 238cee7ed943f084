//go:build e2e

package e2e

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// holdVariable makes this program one that does nothing but listen at the address in it.
const holdVariable = "KUBELET_SUPERVISOR_TEST_HOLD"

func hold(address string) int {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(listener.Addr())
	_, _ = os.Stdin.Read(make([]byte, 1)) // until the test lets go of it
	return 0
}

// holdPort starts a process in the node that listens on a port of the loopback address, and gives both. It ends with the test.
func (n *node) holdPort(t *testing.T) (holder *exec.Cmd, port int) {
	t.Helper()
	holder = n.Command(os.Args[0])
	holder.Env = append(os.Environ(), holdVariable+"=127.0.0.1:0")
	holder.Stderr = os.Stderr
	holder.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close(); _ = holder.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the process that is to hold a port says nothing: %v", err)
	}
	if _, err := fmt.Sscanf(line, "127.0.0.1:%d\n", &port); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return holder, port
}

// A kubelet whose healthz port is somebody else's lives on and is never healthy. It is not waited for: the socket tells whose it is.
func TestRollbackByHealthzPort(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{Flags: []string{"--start-timeout=10m"}}) // far longer than anybody waits here
	good := n.putConfigMap(t, "good", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 75))})
	n.assign(t, good.assignment("kubelet"))
	n.awaitReason(t, good.assignment("kubelet"), "Active")

	holder, port := n.holdPort(t)
	bad := n.putConfigMap(t, "held", map[string]string{"kubelet": n.kubeletConfig(with("healthzPort", port))})
	assignment, starts := bad.assignment("kubelet"), s.starts(t)
	begin := time.Now()
	n.assign(t, assignment)
	v := n.awaitReason(t, assignment, "RolledBack")
	t.Logf("the last known good one is healthy again after %s", time.Since(begin)) // the benchmark has its budget
	wantStatus(t, v, bad.source("kubelet"), good.source("kubelet"), good.source("kubelet"), runError)
	wantCondition(t, v, corev1.ConditionFalse, fmt.Sprintf("using last-known-good (UID: %q)", good.UID))
	held := fmt.Sprintf("was never healthy: its healthz port %d is held by another process (e2e.test, pid %d)", port, holder.Process.Pid)
	if !strings.Contains(v.Condition.Message, held) {
		t.Errorf("the message does not say %q: %s", held, v.Condition.Message)
	}
	if got := s.configz(t)["maxPods"]; got != 75.0 {
		t.Errorf("the kubelet runs with maxPods %v, want the last known good's 75", got)
	}
	v = n.awaitReason(t, assignment, "Rejected")
	n.awaitEvents(t, v.UID, "Warning KubeletConfigRolledBack: ", "Warning KubeletConfigRejected: ")
	if got := s.starts(t) - starts; got != 2 {
		t.Errorf("%d starts, want one of the configuration and one of the last known good", got)
	}
}

// Local has no healthz port either: nothing is held against the configuration, and it is tried again when the port is free.
func TestLongHealthzPortOfTheFallback(t *testing.T) {
	n := sharedNode(t)
	holder, port := n.holdPort(t)
	s := n.startSupervisor(t, options{Local: n.kubeletConfig(with("healthzPort", port))})
	held := fmt.Sprintf("its healthz port %d is held by another process (e2e.test, pid %d)", port, holder.Process.Pid)
	says := func(assignment, words string) nodeView {
		return n.awaitNode(t, "the Node says whose the port is", func(v nodeView) bool {
			return v.is(assignment, "EnvironmentFailing") && strings.Contains(v.Condition.Message, words)
		})
	}
	says("", held)
	local := n.kubelets(t)

	config := n.putConfigMap(t, "innocent", map[string]string{"kubelet": n.kubeletConfig(with("healthzPort", port), with("maxPods", 76))})
	assignment := config.assignment("kubelet")
	n.assign(t, assignment)
	v := says(assignment, "the fallback fails as well; was never healthy: "+held)
	wantStatus(t, v, config.source("kubelet"), nil, nil, "")
	if rejected := s.record(t).Rejected; len(rejected) > 0 {
		t.Errorf("rejected: %v", rejected)
	}
	if now := n.kubelets(t); len(local) != 1 || len(now) != 1 || now[0].ID == local[0].ID {
		t.Errorf("kubelets %v before and %v after, want one, and another", local, now)
	}
	_ = holder.Process.Kill()
	n.awaitReason(t, assignment, "InTrial")
	if got := s.configz(t)["maxPods"]; got != 76.0 {
		t.Errorf("the kubelet runs with maxPods %v, want 76", got)
	}
}

// At its other port the kubelet exits, which is a failed try like any other.
func TestLongRollbackByPort(t *testing.T) {
	n := sharedNode(t)
	n.startedLocal(t, options{})
	_, port := n.holdPort(t)
	bad := n.putConfigMap(t, "held", map[string]string{"kubelet": n.kubeletConfig(with("port", port), with("address", "127.0.0.1"))})
	n.assign(t, bad.assignment("kubelet"))
	v := n.awaitReason(t, bad.assignment("kubelet"), "RolledBack")
	wantStatus(t, v, bad.source("kubelet"), nil, nil, runError)
	wantDeath(t, v, "using last-known-good (default)", fmt.Sprintf("listen tcp 127.0.0.1:%d: bind: address already in use", port))
}
