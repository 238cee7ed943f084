//go:build e2e

package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	swapsHeader = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
	swapsLine   = "/dev/zram0                              partition\t1048572\t\t0\t\t100\n"
)

// put writes a file, in place: it may be mounted elsewhere.
func put(t *testing.T, path, content string) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// wantWaits: the change waits for what no kubelet would start with, nothing has moved, and the kubelet is the same.
func (s *supervised) wantWaits(t *testing.T, assignment string, active *corev1.NodeConfigSource, kubelet process, words string) {
	t.Helper()
	s.wantWaitsAs(t, assignment, active, active, kubelet, words)
}

func (s *supervised) wantWaitsAs(t *testing.T, assignment string, assigned, active *corev1.NodeConfigSource, kubelet process, words string) {
	t.Helper()
	v := s.node.awaitNode(t, assignment+" waits", func(v nodeView) bool {
		return v.is(assignment, "EnvironmentFailing") && strings.Contains(v.Condition.Message, " waits: no kubelet would start: ")
	})
	wantStatus(t, v, assigned, active, nil, "")
	wantWords(t, v.Condition.Message, words)
	if v.Condition.Status != corev1.ConditionUnknown || !strings.Contains(v.Condition.Message, "or set annotation "+consentAnnotation+"=") {
		t.Errorf("it says %v", v.Condition)
	}
	if now := s.kubelet(t); now.ID != kubelet.ID {
		t.Errorf("the kubelet was restarted: pid %d, then %d", kubelet.ID, now.ID)
	}
}

// A kubelet looks at swap when it starts, and no pre-flight gets that far. Swap that comes on while it runs makes every change the end of the node's
// kubelet, however harmless.
func TestSwapThatCameOn(t *testing.T) {
	n := sharedNode(t)
	swaps := put(t, filepath.Join(t.TempDir(), "swaps"), swapsHeader)
	fails, fits := with("failSwapOn", true), with("failSwapOn", false)
	s := n.startedLocal(t, options{Local: n.kubeletConfig(fails), Swaps: swaps, Flags: []string{"--trial-period=1h"}})
	s.awaitAsked(t)
	kubelet := s.kubelet(t)
	put(t, swaps, swapsHeader+swapsLine)

	harmless := n.putConfigMap(t, "harmless", map[string]string{"kubelet": n.kubeletConfig(fails, with("syncFrequency", "50s"))})
	n.assign(t, harmless.assignment("kubelet"))
	s.wantWaits(t, harmless.assignment("kubelet"), nil, kubelet, "swap is on (/dev/zram0), and failSwapOn is true")

	// One that allows swap does not wait. A later one that forbids it does: what is new with the change counts.
	cure := n.putConfigMap(t, "cure", map[string]string{"kubelet": n.kubeletConfig(fits)})
	n.assign(t, cure.assignment("kubelet"))
	n.awaitReason(t, cure.assignment("kubelet"), "InTrial")
	kubelet = s.kubelet(t)
	n.assign(t, harmless.assignment("kubelet"))
	s.wantWaits(t, harmless.assignment("kubelet"), cure.source("kubelet"), kubelet, "swap is on (/dev/zram0), and failSwapOn is true")

	put(t, swaps, swapsHeader)
	v := n.awaitReason(t, harmless.assignment("kubelet"), "InTrial")
	wantStatus(t, v, harmless.source("kubelet"), harmless.source("kubelet"), nil, "")
}

// Where changes are allowed whatever pods they kill, the node still keeps its kubelet.
func TestSwapWhereChangesAreAllowed(t *testing.T) {
	n := sharedNode(t)
	swaps := put(t, filepath.Join(t.TempDir(), "swaps"), swapsHeader+swapsLine)
	fails, fits := with("failSwapOn", true), with("failSwapOn", false)
	s := n.startedLocal(t, options{Local: n.kubeletConfig(fits), Swaps: swaps, Flags: []string{"--trial-period=1h", "--disruption=allow"}})
	kubelet := s.kubelet(t)
	harmful := n.putConfigMap(t, "forbids", map[string]string{"kubelet": n.kubeletConfig(fails)})
	n.assign(t, harmful.assignment("kubelet"))
	s.wantWaitsAs(t, harmful.assignment("kubelet"), harmful.source("kubelet"), nil, kubelet, "swap is on (/dev/zram0), and failSwapOn is true")
	put(t, swaps, swapsHeader)
	n.awaitReason(t, harmful.assignment("kubelet"), "InTrial")
}

// A kubelet that renews its certificate goes on when the one in its kubeconfig has expired; its next start fails. The supervisor uses the kubelet's, so
// that it hears and says so.
func TestAKubeconfigThatExpires(t *testing.T) {
	n := sharedNode(t)
	folder := t.TempDir()
	short, _, err := n.NodeCredential(time.Now().Add(30 * time.Second))
	if err != nil {
		t.Fatal(err)
	}
	long, kept, err := n.NodeCredential(time.Now().Add(24 * time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := put(t, filepath.Join(folder, "kubelet.conf"), short)
	put(t, filepath.Join(folder, "pki", "kubelet-client-current.pem"), kept)
	rotates := with("rotateCertificates", true)
	s := n.startedLocal(t, options{Local: n.kubeletConfig(rotates), KubeletFlags: []string{"--kubeconfig=" + kubeconfig,
		"--bootstrap-kubeconfig=" + filepath.Join(folder, "bootstrap.conf"), "--cert-dir=" + filepath.Join(folder, "pki")}})
	kubelet := s.kubelet(t)
	v := n.awaitNode(t, "the Node says that the next start would fail", func(v nodeView) bool { return v.is("", "EnvironmentFailing") })
	wantWords(t, v.Condition.Message, "the kubelet runs, and no kubelet would start in its place: kubeconfig "+kubeconfig+" has a client certificate that expired on ")

	config := n.putConfigMap(t, "harmless", map[string]string{"kubelet": n.kubeletConfig(rotates, with("syncFrequency", "50s"))})
	n.assign(t, config.assignment("kubelet"))
	s.wantWaits(t, config.assignment("kubelet"), nil, kubelet, "bootstrap kubeconfig "+filepath.Join(folder, "bootstrap.conf")+" does not exist")
	if stdout, _, code := s.run(t, "check", "--active", "--run-dir="+s.RunDir); code != 1 || !strings.Contains(stdout, "local: accepted, and no kubelet would start here now: kubeconfig ") {
		t.Errorf("check --active: code %d, %s", code, stdout)
	}

	put(t, kubeconfig, long)
	n.awaitReason(t, config.assignment("kubelet"), "Active")
}
