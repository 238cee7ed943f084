//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// What happens on the node can be seen on the node, API server or not.
func TestStatus(t *testing.T) {
	n := sharedNode(t)
	notStarted := n.prepareSupervisor(t, options{})
	for _, command := range []string{"status", "retry", "reload"} {
		if stdout, stderr, code := notStarted.run(t, command); code != 1 || !strings.Contains(stderr, notStarted.RunDir) {
			t.Errorf("%s without a supervisor: exit code %d, want 1, and words that name the run folder: %s%s", command, code, stdout, stderr)
		}
	}

	s := n.startedLocal(t, options{Flags: []string{"--trial-period=1m"}})
	s.wantStatus(t, fmt.Sprintf("Supervisor: pid %d, running", s.pid()), "Assignment: none", "Assigned: local", "Active: local", "Last known good: local", "KubeletConfigOk=True Local", "Error: none")

	bad := n.putConfigMap(t, "deadly", map[string]string{"kubelet": n.kubeletConfig(deadly[1].change)})
	n.assign(t, bad.assignment("kubelet"))
	v := n.awaitReason(t, bad.assignment("kubelet"), "Rejected")
	s.wantStatus(t, "Assigned: "+bad.described("kubelet"), "Active: local", "KubeletConfigOk=False Rejected", v.Condition.Message, "Error: "+runError,
		"Rejected: content sha256:", "exited 3 times in its trial: exit code 1: ", "unasked, exit code 1: ", "ran "+bad.described("kubelet"))

	good := n.putConfigMap(t, "good", map[string]string{"kubelet": n.kubeletConfig(with("maxPods", 111))})
	n.assign(t, good.assignment("kubelet"))
	n.awaitReason(t, good.assignment("kubelet"), "InTrial")
	n.stopAPIServer(t)
	s.wantStatus(t, "Assignment: "+good.assignment("kubelet"), "Assigned: "+good.described("kubelet"), "Active: "+good.described("kubelet"), "Last known good: local",
		"KubeletConfigOk=True InTrial", "Error: none", "0 failures", "Rejected: content sha256:", "unasked, exit code 1: ", "asked, exit code 0, ran the local configuration")
	r := s.wantJSON(t, true)
	if !good.is(r.Config.Assigned) || !good.is(r.Config.Active) || r.Config.LastKnownGood != nil || len(r.Rejected) != 1 || len(r.Exits) < 4 {
		t.Errorf("status -o json: %+v", r)
	}
	if r.Trial == nil || r.Trial.Left <= 0 || time.Duration(r.Trial.Left) > time.Minute || r.Trial.Left+r.Trial.Healthy != core.Span(time.Minute) || r.Trial.Of.Source.UID != good.UID {
		t.Errorf("status -o json: the trial is %+v, want some of a minute left", r.Trial)
	}

	s.stop(t)
	if stdout, _, code := s.run(t, "status"); code != 1 || !strings.Contains(stdout, "not running") || !strings.Contains(stdout, good.Name) {
		t.Errorf("status after the end: exit code %d, want 1, and what it said last: %s", code, stdout)
	}
	s.wantJSON(t, false)

	n.startAPIServer(t)
	s = n.startSupervisor(t, options{After: s, Flags: []string{"--trial-period=1s"}})
	n.awaitReason(t, good.assignment("kubelet"), "Active")
	s.wantStatus(t, "Last known good: "+good.described("kubelet"), "KubeletConfigOk=True Active")
	if r := s.wantJSON(t, true); r.Trial != nil || !good.is(r.Config.LastKnownGood) {
		t.Errorf("status -o json after the promotion: %+v", r)
	}
}

// A person can ask the node's kubelet before assigning anything.
func TestCheck(t *testing.T) {
	n := sharedNode(t)
	s := n.prepareSupervisor(t, options{})
	for _, test := range []struct {
		name, content string
		flags         []string
		wantCode      int
		wantWords     string
	}{
		{"a good one", n.kubeletConfig(with("maxPods", 112)), nil, 0, "is accepted by " + n.Kubelet()},
		{"an unknown field", n.kubeletConfig(with("maxPodz", 1)), nil, 0, "maxPodz"},
		{"an invalid value", n.kubeletConfig(with("eventRecordQPS", -5)), nil, 1, "eventRecordQPS (--event-qps) -5 must not be a negative number"},
		{"an unknown feature gate", n.kubeletConfig(with("featureGates", object{"NoSuchGate": true})), nil, 1, "unrecognized feature gate: NoSuchGate"},
		{"another kind", n.kubeletConfig(with("kind", "Pod")), nil, 1, "is of another kind than KubeletConfiguration"},
		{"no YAML", "{0xdeadbeef}", nil, 1, "is refused"},
		{"a command line that no configuration helps", n.kubeletConfig(), []string{"--feature-gates=NoSuchGate=true"}, 3, "NoSuchGate"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(s.Folder, "candidate.yaml")
			writeFile(t, file, test.content)
			stdout, stderr, code := s.run(t, append([]string{"check", file, "--"}, n.kubeletCommandLine(s, test.flags...)...)...)
			if said := stdout + stderr; code != test.wantCode || !strings.Contains(said, test.wantWords) || !strings.Contains(said, file) {
				t.Errorf("exit code %d, want %d, with the file's name and %q: %s", code, test.wantCode, test.wantWords, said)
			}
			if left := n.kubelets(t); len(left) > 0 {
				t.Errorf("a check started a kubelet: %v", left)
			}
		})
	}
	if _, stderr, code := s.run(t, append([]string{"check", filepath.Join(s.Folder, "absent.yaml"), "--"}, n.kubeletCommandLine(s)...)...); code != 2 || !strings.Contains(stderr, "absent.yaml") {
		t.Errorf("an absent file: exit code %d, want 2, with its name: %s", code, stderr)
	}
}

// described is how commands and messages name this version.
func (c *configMap) described(key string) string {
	return fmt.Sprintf("%s (UID %s, resourceVersion %s)", c.assignment(key), c.UID, c.ResourceVersion)
}

// wantStatus runs status and looks for each of the words in what it prints, columns closed up.
func (s *supervised) wantStatus(t *testing.T, words ...string) {
	t.Helper()
	await(t, "status says "+words[0], func() error {
		stdout, stderr, code := s.run(t, "status")
		if code != 0 {
			return fmt.Errorf("exit code %d: %s", code, stderr)
		}
		closedUp := strings.Join(strings.Fields(stdout), " ")
		for _, want := range words {
			if !strings.Contains(closedUp, want) {
				return fmt.Errorf("it does not have %q:\n%s", want, stdout)
			}
		}
		return nil
	})
}

// wantJSON is what status -o json prints; its exit code is 0 only when the supervisor runs.
func (s *supervised) wantJSON(t *testing.T, running bool) supervisor.Record {
	t.Helper()
	stdout, stderr, code := s.run(t, "status", "-o", "json")
	if (code == 0) != running {
		t.Errorf("status -o json: exit code %d: %s", code, stderr)
	}
	var answer struct {
		Running bool
		supervisor.Record
	}
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil {
		t.Fatalf("status -o json: %v: %s", err, stdout)
	}
	if answer.Running != running {
		t.Errorf("status -o json says running %v, want %v", answer.Running, running)
	}
	return answer.Record
}
