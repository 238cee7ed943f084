//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// deadly are configurations that the kubelet accepts and then dies of, each with what its last error says.
var deadly = []struct {
	name   string
	change func(object)
	words  string
}{
	{"more reserved than there is", with("systemReserved", object{"memory": "1Ti"}), "memory"},
	{"an absent client CA file", with("authentication.x509.clientCAFile", "/nonexistent/ca.crt"), "/nonexistent/ca.crt"},
	{"an absent cgroup", func(config object) {
		with("enforceNodeAllocatable", []string{"pods", "kube-reserved"})(config)
		with("kubeReserved", object{"memory": "64Mi"})(config)
		with("kubeReservedCgroup", "/kubelet-supervisor-test-nonexistent")(config)
	}, "kubelet-supervisor-test-nonexistent"},
}

// With a last known good configuration every deadly one is rolled back to it, and the Node says what the kubelet died of. The
// verdict of the last one is then followed through restarts and retries.
func TestRollback(t *testing.T) {
	n := sharedNode(t)
	flag, metrics := metricsFlag(t)
	s := n.startedLocal(t, options{Flags: []string{flag}})
	wantMetrics(t, metrics, `kubelet_node_config_active{node_config_source="local",`, "kubelet_node_config_error 0", "kubelet_supervisor_rollbacks_total{cause=\"Exited\"} 0")
	good := n.putConfigMap(t, "good", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 71))})
	n.assign(t, good.assignment("kubelet"))
	n.awaitReason(t, good.assignment("kubelet"), "Active")

	var bad *configMap
	for _, test := range deadly {
		t.Run(test.name, func(t *testing.T) {
			bad = n.createConfigMap(t, "kube-system", uniqueName("deadly"), map[string]string{"kubelet": n.kubeletConfig(test.change)})
			starts := s.starts(t)
			n.assign(t, bad.assignment("kubelet"))
			v := n.awaitReason(t, bad.assignment("kubelet"), "RolledBack")
			wantStatus(t, v, bad.source("kubelet"), good.source("kubelet"), good.source("kubelet"), runError)
			wantDeath(t, v, fmt.Sprintf("using last-known-good (UID: %q)", good.UID), test.words)
			s.kubelet(t)
			if got := s.starts(t) - starts; got != 4 {
				t.Errorf("%d starts, want three of the deadly configuration and one of the last known good", got)
			}
			if got := s.configz(t)["maxPods"]; got != 71.0 {
				t.Errorf("the kubelet runs with maxPods %v, want the last known good's 71", got)
			}
		})
	}
	// What the Node says can be read on the node, too.
	wantMetrics(t, metrics, "kubelet_node_config_assigned"+bad.labels("kubelet"), "kubelet_node_config_active"+good.labels("kubelet"),
		"kubelet_node_config_last_known_good"+good.labels("kubelet"), "kubelet_node_config_error 1", `kubelet_supervisor_rollbacks_total{cause="Exited"} 3`,
		"kubelet_supervisor_promotions_total 1", `kubelet_supervisor_condition{status="False",reason="`, "kubelet_supervisor_last_contact_timestamp_seconds 1.")
}

// Rejected is a verdict that stays: over a restart of the supervisor, until a person asks or the content changes.
func TestRejected(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{})
	bad := n.putConfigMap(t, "rejected", map[string]string{"kubelet": n.kubeletConfig(deadly[0].change)})
	assignment := bad.assignment("kubelet")
	n.assign(t, assignment)
	n.awaitReason(t, assignment, "RolledBack")
	v := n.awaitReason(t, assignment, "Rejected")
	wantStatus(t, v, bad.source("kubelet"), nil, nil, runError)
	wantDeath(t, v, "using last-known-good (default)", deadly[0].words)
	if !strings.HasSuffix(v.Condition.Message, retryAnnotation) {
		t.Errorf("the message does not end with what to do: %s", v.Condition.Message)
	}
	n.awaitEvents(t, v.UID, "Normal KubeletConfigChanged: ", "Warning KubeletConfigRolledBack: ", "Warning KubeletConfigRejected: ")

	s.stop(t)
	n.awaitReason(t, assignment, "Stopped")
	starts := s.starts(t)
	s = n.startSupervisor(t, options{After: s})
	v = n.awaitReason(t, assignment, "Rejected")
	wantStatus(t, v, bad.source("kubelet"), nil, nil, runError)
	s.kubelet(t)
	if got := s.starts(t) - starts; got != 1 {
		t.Errorf("%d starts after the restart of the supervisor, want the local configuration's only", got)
	}

	starts = s.starts(t)
	n.annotate(t, retryAnnotation, "please")
	await(t, "the annotation has it tried again", func() error { return started(t, s, starts+4) })
	v = n.awaitReason(t, assignment, "Rejected")
	if heard := nodev1.Read(v.Node).Status.Retry; heard != "please" {
		t.Errorf("the Node says that the retry %q was heard", heard)
	}

	starts = s.starts(t)
	if stdout, stderr, code := s.run(t, "retry"); code != 0 {
		t.Errorf("retry: exit code %d: %s%s", code, stdout, stderr)
	}
	await(t, "the command has it tried again", func() error { return started(t, s, starts+4) })

	// The verdict is about the content: another content of the same ConfigMap needs no word from anybody, nor patience.
	bad.set(t, "kubelet", n.kubeletConfig(with("maxPods", 72)))
	v = n.awaitNode(t, "the corrected content is on trial", func(v nodeView) bool {
		return v.is(assignment, "InTrial") && bad.is(v.Config.Assigned)
	})
	wantStatus(t, v, bad.source("kubelet"), bad.source("kubelet"), nil, "")
	if got := s.configz(t)["maxPods"]; got != 72.0 {
		t.Errorf("the kubelet runs with maxPods %v, want 72", got)
	}
}

// While the kubelet still dies of one configuration, another one is taken at once.
func TestGoodAfterDeadly(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{Flags: []string{"--trial-failures=20"}})
	bad := n.putConfigMap(t, "deadly", map[string]string{"kubelet": n.kubeletConfig(deadly[1].change)})
	good := n.putConfigMap(t, "good", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 73))})
	starts := s.starts(t)
	n.assign(t, bad.assignment("kubelet"))
	await(t, "the kubelet dies again and again", func() error { return started(t, s, starts+4) })
	n.assign(t, good.assignment("kubelet"))
	v := n.awaitReason(t, good.assignment("kubelet"), "InTrial")
	wantStatus(t, v, good.source("kubelet"), good.source("kubelet"), nil, "")
	n.awaitReason(t, good.assignment("kubelet"), "Active")
}

// A kubelet that is healthy and has lost the node: only its Lease tells.
func TestLongRollbackByLease(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{})
	// A Lease that was never seen to be renewed is nobody's fault.
	await(t, "the supervisor has seen the Lease renewed", func() error {
		account, err := os.ReadFile(filepath.Join(s.StateDir, "meta/trial"))
		if err == nil && !strings.Contains(string(account), "leaseRenewed: true") {
			err = fmt.Errorf("it has not:\n%s", account)
		}
		return err
	})
	bad := n.putConfigMap(t, "lease", map[string]string{"kubelet": n.kubeletConfig(with("contentType", "application/bogus"))})
	assignment := bad.assignment("kubelet")
	n.assign(t, assignment)
	v := n.awaitReason(t, assignment, "InTrial")
	wantStatus(t, v, bad.source("kubelet"), bad.source("kubelet"), nil, "")
	kubelet := s.kubelet(t)
	v = n.awaitReason(t, assignment, "RolledBack")
	wantStatus(t, v, bad.source("kubelet"), nil, nil, runError)
	if !strings.Contains(v.Condition.Message, "Lease") {
		t.Errorf("the message does not speak of the Lease: %s", v.Condition.Message)
	}
	if got := differs(n.kubelets(t), kubelet); got != nil {
		t.Error(got)
	}
	n.awaitLease(t, time.Now())
}

// Without a container runtime no kubelet starts, whatever its configuration: nothing is blamed on the one that is assigned.
func TestRuntimeStopped(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{Flags: []string{"--disruption=allow"}}) // else it waits for a kubelet that runs
	config := n.putConfigMap(t, "innocent", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 74))})
	assignment := config.assignment("kubelet")
	t.Cleanup(func() { // the next test needs it
		if err := n.StartContainerd(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	kubelet := s.kubelet(t)
	n.StopContainerd()
	if err := syscall.Kill(kubelet.ID, syscall.SIGKILL); err != nil { // as long as one runs, the change waits for the runtime
		t.Fatal(err)
	}
	n.awaitReason(t, "", "EnvironmentFailing")
	starts := s.starts(t)
	n.assign(t, assignment)
	v := n.awaitReason(t, assignment, "EnvironmentFailing")
	wantStatus(t, v, config.source("kubelet"), nil, nil, "")
	if v.Condition.Status != corev1.ConditionUnknown || !strings.Contains(v.Condition.Message, "containerd.sock") {
		t.Errorf("the message does not name the container runtime's socket: %v", v.Condition)
	}
	await(t, "more starts than a trial has", func() error { return started(t, s, starts+4) })
	if rejected := s.record(t).Rejected; len(rejected) > 0 {
		t.Errorf("rejected: %v", rejected)
	}
	if err := n.StartContainerd(t.Context()); err != nil {
		t.Fatal(err)
	}
	v = n.awaitReason(t, assignment, "InTrial")
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), nil, "")
	if got := s.configz(t)["maxPods"]; got != 74.0 {
		t.Errorf("the kubelet runs with maxPods %v, want 74", got)
	}
	n.awaitReason(t, assignment, "Active")
}

// awaitLease waits until the kubelet has renewed its Lease after a moment.
func (n *node) awaitLease(t *testing.T, after time.Time) {
	t.Helper()
	await(t, "the kubelet renews its Lease", func() error {
		var lease struct{ Spec struct{ RenewTime time.Time } }
		_, err := n.request(http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"+cluster.NodeName, nil, &lease)
		if err == nil && !lease.Spec.RenewTime.After(after) {
			err = fmt.Errorf("renewed at %s, not after %s", lease.Spec.RenewTime, after)
		}
		return err
	})
}

// wantDeath checks that the condition says what runs, the exit code and the kubelet's own words.
func wantDeath(t *testing.T, v nodeView, begins, words string) {
	t.Helper()
	wantCondition(t, v, corev1.ConditionFalse, begins)
	for _, want := range []string{"exit code 1", words} {
		if !strings.Contains(v.Condition.Message, want) {
			t.Errorf("the message does not have %q: %s", want, v.Condition.Message)
		}
	}
}

// started is nil when so many starts were made in all.
func started(t *testing.T, s *supervised, want int) error {
	t.Helper()
	if got := s.starts(t); got < want {
		return fmt.Errorf("%d starts, want %d", got, want)
	}
	return nil
}
