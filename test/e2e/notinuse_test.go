//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A script in the kubelet's place that does not hand on its arguments, or has a --config of its own behind them: the Node does not say that the
// assigned configuration runs, and it becomes nobody's last known good one.
func TestAScriptThatDoesNotHandOnItsArguments(t *testing.T) {
	n := sharedNode(t)
	own := "'" + strings.Join(n.KubeletArguments(), "' '") + "'"
	for name, test := range map[string]struct{ line, preflight, words string }{
		"it swallows them":      {"exec " + own, "auto", "does not hand on the arguments that it is given"},
		"its own --config wins": {"exec " + n.Kubelet() + ` "$@" --config=` + n.KubeletConfigFile(), "always", "was started with --config=" + n.KubeletConfigFile()},
		"it does not become it": {"trap 'kill $kubelet; wait' TERM; " + n.Kubelet() + ` "$@" & kubelet=$!; wait`, "auto", "did not become the kubelet: its child (pid "},
	} {
		t.Run(name, func(t *testing.T) {
			n := sharedNode(t)
			script := filepath.Join(n.Folder, uniqueName("script"))
			if err := os.WriteFile(script, []byte("#!/bin/sh\n"+test.line+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			o := options{Kubelet: script, Flags: []string{"--preflight=" + test.preflight, "--trial-period=1s", "--start-timeout=8s"}}
			var s *supervised
			if strings.HasPrefix(test.line, "trap") {
				s = n.startSupervisor(t, o)
				n.awaitReason(t, "", "NotInUse") // local, too
			} else {
				s = n.startedLocal(t, o)
			}
			config := n.putConfigMap(t, "swallowed", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 31))})
			n.assign(t, config.assignment("kubelet"))
			v := n.awaitReason(t, config.assignment("kubelet"), "NotInUse")
			// Longer than a trial and a start may take.
			end := time.Now().Add(12 * time.Second)
			n.awaitNode(t, "the trial's time is over", func(now nodeView) bool { v = now; return time.Now().After(end) })
			wantStatus(t, v, config.source("kubelet"), nil, nil, "")
			wantCondition(t, v, corev1.ConditionFalse, "using last-known-good (default)")
			wantWords(t, v.Condition.Message, test.words)
			if v.Condition.Reason != "NotInUse" {
				t.Errorf("the reason is %s", v.Condition.Reason)
			}
			if got := len(n.kubelets(t)); got != 1 {
				t.Errorf("%d kubelets run", got)
			}
			if got := s.configz(t)["maxPods"]; fmt.Sprint(got) != "20" && !strings.HasPrefix(test.line, "trap") {
				t.Errorf("the kubelet runs with maxPods %v", got)
			}
		})
	}
}
