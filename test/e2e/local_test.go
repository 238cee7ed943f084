//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const localPending = "LocalChangePending"

// localParts are all the local things that a kubelet is started with, each with a place of its own.
type localParts struct {
	target, link, dropIns, kubelet string
}

func (n *node) makeLocalParts(t *testing.T) localParts {
	t.Helper()
	folder := filepath.Join(n.Folder, uniqueName("local"))
	p := localParts{
		target: filepath.Join(folder, "target/kubelet.yaml"), link: filepath.Join(folder, "kubelet.yaml"),
		dropIns: filepath.Join(folder, "kubelet.conf.d"), kubelet: filepath.Join(folder, "bin/kubelet"),
	}
	for _, inner := range []string{p.dropIns, filepath.Dir(p.kubelet)} {
		if err := os.MkdirAll(inner, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, p.target, n.kubeletConfig())
	if err := os.Symlink(p.target, p.link); err != nil {
		t.Fatal(err)
	}
	copyProgram(t, n.Kubelet(), p.kubelet)
	return p
}

func (p localParts) options(flags ...string) options {
	return options{Kubelet: p.kubelet, Flags: flags, KubeletFlags: []string{"--config=" + p.link, "--config-dir=" + p.dropIns}}
}

// Changed local files are reported and change nothing, until the kubelet is started the next time, whoever has it restarted.
func TestLocalChangePending(t *testing.T) {
	n := sharedNode(t)
	p := n.makeLocalParts(t)
	s := n.startedLocal(t, p.options())
	kubelet := s.kubelet(t)
	dropIn := filepath.Join(p.dropIns, "10-more.conf")
	for _, test := range []struct {
		name         string
		change, undo func(t *testing.T)
	}{
		{"the file that --config links to",
			func(t *testing.T) { writeFile(t, p.target, n.kubeletConfig(with("maxPods", 21))) },
			func(t *testing.T) { writeFile(t, p.target, n.kubeletConfig()) }},
		{"a drop-in",
			func(t *testing.T) {
				writeFile(t, dropIn, "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\neventRecordQPS: 9\n")
			},
			func(t *testing.T) {
				if err := os.Remove(dropIn); err != nil {
					t.Fatal(err)
				}
			}},
		{"the kubelet binary",
			func(t *testing.T) { copyProgram(t, n.Kubelet(), p.kubelet) },
			nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.change(t)
			v := n.awaitNode(t, "the change is reported", func(v nodeView) bool { return strings.Contains(v.Condition.Message, localPending) })
			wantCondition(t, v, corev1.ConditionTrue, "using current (default)")
			if v.Condition.Reason != "Local" || !s.record(t).LocalPending {
				t.Errorf("reason %s, state.json's localChangePending %v", v.Condition.Reason, s.record(t).LocalPending)
			}
			if test.undo != nil {
				test.undo(t)
				n.awaitNode(t, "the change is undone", func(v nodeView) bool { return !strings.Contains(v.Condition.Message, localPending) })
			}
			if now := s.kubelet(t); now.ID != kubelet.ID {
				t.Errorf("the change restarted the kubelet: pid %d, then %d", kubelet.ID, now.ID)
			}
		})
	}

	writeFile(t, p.target, n.kubeletConfig(with("maxPods", 22)))
	kill(t, kubelet)
	await(t, "the kubelet that was killed is replaced", func() error { return differs(n.kubelets(t), kubelet) })
	s.kubelet(t)
	if got := s.configz(t)["maxPods"]; got != 22.0 {
		t.Errorf("restarted, the kubelet runs with maxPods %v, want 22", got)
	}
	v := n.awaitNode(t, "nothing is pending any more", func(v nodeView) bool {
		return v.is("", "Local") && !strings.Contains(v.Condition.Message, localPending)
	})
	wantCondition(t, v, corev1.ConditionTrue, "using current (default)")
}

// While an assigned configuration runs, a local one that the kubelet would refuse is a fallback that is missing: it is reported,
// and a reset waits until it is mended.
func TestFallbackBroken(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{})
	config := n.putConfigMap(t, "dynamic", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 101))})
	assignment := config.assignment("kubelet")
	n.assign(t, assignment)
	n.awaitReason(t, assignment, "Active")
	kubelet := s.kubelet(t)

	s.writeLocal(t, n.kubeletConfig(with("eventRecordQPS", -5)))
	v := n.awaitReason(t, assignment, "FallbackBroken")
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), config.source("kubelet"), "")
	wantCondition(t, v, corev1.ConditionFalse, fmt.Sprintf("using current (UID: %q)", config.UID))
	if !strings.Contains(v.Condition.Message, "eventRecordQPS") {
		t.Errorf("the message does not say what is wrong: %s", v.Condition.Message)
	}

	n.unassign(t)
	v = n.awaitNode(t, "the reset waits", func(v nodeView) bool {
		return v.is("", "FallbackBroken") && strings.Contains(v.Condition.Message, "the reset to the local configuration waits")
	})
	wantStatus(t, v, config.source("kubelet"), config.source("kubelet"), config.source("kubelet"), "")
	if now := s.kubelet(t); now.ID != kubelet.ID {
		t.Errorf("the kubelet was restarted: pid %d, then %d", kubelet.ID, now.ID)
	}

	s.writeLocal(t, n.kubeletConfig(with("maxPods", 23)))
	v = n.awaitReason(t, "", "Local")
	wantStatus(t, v, nil, nil, nil, "")
	if got := s.configz(t)["maxPods"]; got != 23.0 {
		t.Errorf("after the reset the kubelet runs with maxPods %v, want the local 23", got)
	}
}

// With --follow-local a change that the kubelet accepts restarts it, and one that it would refuse does not.
func TestFollowLocal(t *testing.T) {
	n := sharedNode(t)
	s := n.startedLocal(t, options{Flags: []string{"--follow-local"}})
	before := s.kubelet(t)
	s.awaitAsked(t)
	s.writeLocal(t, n.kubeletConfig(with("maxPods", 24)))
	await(t, "the kubelet is restarted with the changed file", func() error { return differs(n.kubelets(t), before) })
	kubelet := s.kubelet(t)
	if got := s.configz(t)["maxPods"]; got != 24.0 {
		t.Errorf("the kubelet runs with maxPods %v, want 24", got)
	}

	s.writeLocal(t, n.kubeletConfig(with("eventRecordQPS", -5)))
	n.awaitNode(t, "the change is reported as one that would be refused", func(v nodeView) bool {
		return strings.Contains(v.Condition.Message, "would be refused") && strings.Contains(v.Condition.Message, "eventRecordQPS")
	})
	if now := s.kubelet(t); now.ID != kubelet.ID {
		t.Errorf("the refused change restarted the kubelet: pid %d, then %d", kubelet.ID, now.ID)
	}
	s.writeLocal(t, n.kubeletConfig(with("maxPods", 25)))
	await(t, "the kubelet is restarted with the mended file", func() error { return differs(n.kubelets(t), kubelet) })
	s.kubelet(t)
	if got := s.configz(t)["maxPods"]; got != 25.0 {
		t.Errorf("the kubelet runs with maxPods %v, want 25", got)
	}
}

// copyProgram copies a program over another one that may run, as a package manager does.
func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	source, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	copied, err := os.OpenFile(to+".new", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(copied, source)
	if err := errors.Join(err, copied.Close(), os.Rename(to+".new", to)); err != nil {
		t.Fatal(err)
	}
}
