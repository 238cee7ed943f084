//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Where local would be refused in the same way, it is not the configuration's fault: nothing is blamed or changed, and the
// assignment is applied when the node is mended.
func TestPreflightControl(t *testing.T) {
	n := sharedNode(t)
	dropIn := filepath.Join(n.Folder, uniqueName("drop-ins"), "50-broken.conf")
	writeFile(t, dropIn, header)
	s := n.startedLocal(t, options{KubeletFlags: []string{"--config-dir=" + filepath.Dir(dropIn)}})
	kubelet := s.kubelet(t)
	s.awaitAsked(t)
	writeFile(t, dropIn, header+"eventBurst: -1\n")
	config := n.putConfigMap(t, "controlled", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 60))})
	n.assign(t, config.assignment("kubelet"))
	v := n.awaitReason(t, config.assignment("kubelet"), "EnvironmentFailing")
	wantStatus(t, v, config.source("kubelet"), nil, nil, "")
	wantCondition(t, v, corev1.ConditionUnknown, "using last-known-good (default)")
	wantWords(t, v.Condition.Message, "eventBurst")
	if now := s.kubelet(t); now.ID != kubelet.ID {
		t.Errorf("the kubelet was restarted: pid %d, then %d", kubelet.ID, now.ID)
	}
	writeFile(t, dropIn, header+"eventBurst: 78\n")
	v = n.awaitReason(t, config.assignment("kubelet"), "InTrial")
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), nil, "")
	if got := s.configz(t); got["maxPods"] != 60.0 || got["eventBurst"] != 78.0 {
		t.Errorf("the kubelet runs with maxPods %v and eventBurst %v, want 60 and 78", got["maxPods"], got["eventBurst"])
	}
}

// An unknowing wrapper is one whose pre-flight says nothing.
type unknowing struct {
	name, preflight string
	wrapper         string // a shell script in which KUBELET is the kubelet's path
	words           string // in the log
	message         string // on the Node
}

// ifAsked begins a wrapper: what follows is for the pre-flight alone.
const ifAsked = `for word; do case "$word" in --exit-on-lock-contention=true) asked=1;; esac; done; [ -z "$asked" ] || `

// Where nothing can be learnt by asking, the trial decides: a good configuration runs, and a bad one is rolled back. A wrapper
// that goes on to start a second kubelet is stopped at once, and never asked again.
func TestPreflightUnknown(t *testing.T) {
	for _, test := range []unknowing{
		{"a wrapper that nobody vouched for", "auto", `exec KUBELET "$@"`, "is not an ELF executable", ""},
		{"it is turned off", "never", `exec KUBELET "$@"`, "no pre-flight: it is turned off", ""},
		{"it exits with 0", "always", ifAsked + "exit 0\n" + `exec KUBELET "$@"`, "exited with 0 instead of", ""},
		{"it swallows its arguments", "always",
			`count=$#; while [ $count -gt 0 ]; do word=$1; shift; count=$((count-1)); case "$word" in --exit-on*|--lock-file*) ;; *) set -- "$@" "$word";; esac; done` +
				"\n" + `exec KUBELET "$@"`, "went on to start instead of", "no pre-flight with this kubelet: "},
	} {
		t.Run(test.name, test.try)
	}
}

// A pre-flight that never ends takes its five seconds each time.
func TestLongPreflightWithoutAnEnd(t *testing.T) {
	unknowing{"", "always", ifAsked + "exec sleep 60\n" + `exec KUBELET "$@"`, "did not finish within 5s", ""}.try(t)
}

func (test unknowing) try(t *testing.T) {
	n := sharedNode(t)
	wrapper := filepath.Join(n.Folder, uniqueName("wrapper"))
	script := "#!/bin/sh\n" + strings.ReplaceAll(test.wrapper, "KUBELET", n.Kubelet()) + "\n"
	if err := os.WriteFile(wrapper, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	s := n.startedLocal(t, options{Kubelet: wrapper, Flags: []string{"--preflight=" + test.preflight, "--trial-failures=1", "--trial-period=1h"}})
	good := n.putConfigMap(t, "unasked", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 61))})
	n.assign(t, good.assignment("kubelet"))
	v := n.awaitReason(t, good.assignment("kubelet"), "InTrial")
	wantStatus(t, v, good.source("kubelet"), good.source("kubelet"), nil, "")
	wantCondition(t, v, corev1.ConditionTrue, fmt.Sprintf("using current (UID: %q)", good.UID))
	wantWords(t, v.Condition.Message, test.message)
	if !strings.Contains(s.log(t), test.words) {
		t.Errorf("the log does not say %q", test.words)
	}
	bad := n.putConfigMap(t, "unasked", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", -1), with("maxPodz", 1))})
	n.assign(t, bad.assignment("kubelet"))
	v = n.awaitReason(t, bad.assignment("kubelet"), "RolledBack")
	wantStatus(t, v, bad.source("kubelet"), nil, nil, runError)
	wantWords(t, v.Condition.Message, "maxPods")
	if got := s.configz(t)["maxPods"]; got != 20.0 {
		t.Errorf("the kubelet runs with maxPods %v, want the local 20", got)
	}
}

// A wrapper that hands its arguments on can be asked, once somebody has vouched for it.
func TestPreflightAlways(t *testing.T) {
	n := sharedNode(t)
	wrapper := filepath.Join(n.Folder, uniqueName("wrapper"))
	if err := os.WriteFile(wrapper, []byte("#!/bin/sh\nexec "+n.Kubelet()+` "$@"`+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := n.startedLocal(t, options{Kubelet: wrapper, Flags: []string{"--preflight=always"}})
	bad := n.putConfigMap(t, "asked", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", -1))})
	n.assign(t, bad.assignment("kubelet"))
	v := n.awaitReason(t, bad.assignment("kubelet"), "Refused")
	wantStatus(t, v, bad.source("kubelet"), nil, nil, validateError)
	if got := s.starts(t); got != 1 {
		t.Errorf("%d starts of the kubelet, want 1", got)
	}
}
