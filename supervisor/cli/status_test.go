//go:build linux

package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

func source(name string) *corev1.NodeConfigSource {
	return &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{Namespace: "kube-system", Name: name, UID: "uid-1", ResourceVersion: "7", KubeletConfigKey: "kubelet"}}
}

func TestStatusText(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.Local)
	for name, test := range map[string]struct {
		record  supervisor.Record
		running bool
		want    string
	}{
		"local": {supervisor.Record{Supervisor: kubelet.Process{PID: 10}, Phase: "Running", Child: &kubelet.Process{PID: 11}, Healthy: true,
			Condition: supervisor.RecordedCondition{Status: "True", Reason: "Local", Message: "using current (default); nothing is assigned"}}, true, `
Supervisor:       pid 10, running
Kubelet:          pid 11, healthy
Assignment:       none
Assigned:         local
Active:           local
Last known good:  local
Condition:        KubeletConfigOk=True Local
                  using current (default); nothing is assigned
Error:            none
`},
		"a change": {supervisor.Record{Supervisor: kubelet.Process{PID: 10}, Phase: "Running", Child: &kubelet.Process{PID: 11}, Healthy: true,
			Condition: supervisor.RecordedCondition{Status: "True", Reason: "InTrial", Message: "using current"},
			LastChange: &supervisor.RecordedChange{LastChange: core.LastChange{To: &core.Version{Source: *source("new").ConfigMap}, Began: at, Ended: at, Outcome: "InTrial", Phase: core.PhaseReport,
				Took: core.Phases{Download: core.Span(40 * time.Millisecond), Preflight: core.Span(320 * time.Millisecond), Stop: core.Span(50 * time.Millisecond), Start: core.Span(1280 * time.Millisecond)}}}}, true, `
Supervisor:       pid 10, running
Kubelet:          pid 11, healthy
Assignment:       none
Assigned:         local
Active:           local
Last known good:  local
Condition:        KubeletConfigOk=True InTrial
                  using current
Error:            none
Last change:      local -> kube-system/new/kubelet: InTrial
                  began 2026-03-04 05:06:07
                  download 40ms | preflight 320ms | stop 50ms | start 1.3s | report ...
`},
		"rolled back": {supervisor.Record{Supervisor: kubelet.Process{PID: 10}, Phase: "Starting", Child: &kubelet.Process{PID: 11},
			Assignment: "kube-system/new/kubelet",
			Config:     corev1.NodeConfigStatus{Assigned: source("new"), Active: source("old"), LastKnownGood: source("old"), Error: "failed to run config, see Kubelet log for details"},
			Condition:  supervisor.RecordedCondition{Status: "False", Reason: "RolledBack", Message: "using last-known-good"},
			Rejected:   []core.Rejection{{Content: "sha256:0123456789abcdef", Words: "exited 3 times"}},
			Exits:      []supervisor.RecordedExit{{Time: at, Ran: "it", Words: "exit code 1"}, {Time: at, Ran: "it", Asked: true, Words: "exit code 0"}}}, true, `
Supervisor:       pid 10, starting
Kubelet:          pid 11, not healthy
Assignment:       kube-system/new/kubelet
Assigned:         kube-system/new/kubelet (UID uid-1, resourceVersion 7)
Active:           kube-system/old/kubelet (UID uid-1, resourceVersion 7)
Last known good:  kube-system/old/kubelet (UID uid-1, resourceVersion 7)
Condition:        KubeletConfigOk=False RolledBack
                  using last-known-good
Error:            failed to run config, see Kubelet log for details
Rejected:         content sha256:0123456789ab… exited 3 times
Exit:             2026-03-04 05:06:07 unasked, exit code 1, ran it
Exit:             2026-03-04 05:06:07 asked, exit code 0, ran it
`},
		"in trial": {supervisor.Record{Supervisor: kubelet.Process{PID: 10}, Phase: "Running", Child: &kubelet.Process{PID: 11}, Healthy: true,
			Assignment: "a/b/c", Config: corev1.NodeConfigStatus{Assigned: source("b"), Active: source("b")},
			Condition: supervisor.RecordedCondition{Status: "True", Reason: "InTrial"},
			Trial:     &supervisor.RecordedTrial{Healthy: core.Span(61500 * time.Millisecond), Left: core.Span(9 * time.Minute), Failures: 1}}, true, `
Supervisor:       pid 10, running
Kubelet:          pid 11, healthy
Assignment:       a/b/c
Assigned:         kube-system/b/kubelet (UID uid-1, resourceVersion 7)
Active:           kube-system/b/kubelet (UID uid-1, resourceVersion 7)
Last known good:  local
Condition:        KubeletConfigOk=True InTrial
                  
Error:            none
Trial:            1m2s healthy, 9m0s left, 1 failures
`},
		"shadowed": {supervisor.Record{Supervisor: kubelet.Process{PID: 10}, Phase: "Running", Child: &kubelet.Process{PID: 11}, Healthy: true,
			Condition: supervisor.RecordedCondition{Status: "True", Reason: "Active", Message: "using current"},
			Status: supervisor.RecordedStatus{Status: nodev1.Status{Shadowed: []nodev1.ShadowedField{
				{Field: "maxPods", Value: "60", By: "--max-pods", Effective: "20", Inferred: true},
				{Field: "podsPerCore", Value: "1", By: "10.conf", Effective: "2", Inferred: true}}}}}, true, `
Supervisor:       pid 10, running
Kubelet:          pid 11, healthy
Assignment:       none
Assigned:         local
Active:           local
Last known good:  local
Condition:        KubeletConfigOk=True Active
                  using current
Error:            none
Shadowed:         maxPods (60) by --max-pods (20) (our own reading)
                  podsPerCore (1) by 10.conf (2) (our own reading)
`},
		"not running": {supervisor.Record{Supervisor: kubelet.Process{PID: 10}, Written: at, Condition: supervisor.RecordedCondition{Status: "Unknown", Reason: "Stopped", Message: "asked to stop"}}, false, `
Supervisor:       not running; this is what it said last, 2026-03-04 05:06:07
Kubelet:          none
Assignment:       none
Assigned:         local
Active:           local
Last known good:  local
Condition:        KubeletConfigOk=Unknown Stopped
                  asked to stop
Error:            none
`},
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			if err := writeStatus(&got, test.record, test.running); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, "\n"+got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatusOfARunFolder(t *testing.T) {
	for name, test := range map[string]struct{ record, stdout, stderr string }{
		"no supervisor ever":      {"", "", "no supervisor runs with run folder "},
		"one that is gone":        {`{"apiVersion": "kubelet-supervisor.io/v1", "supervisor": {"pid": 1, "startTime": 1}, "phase": "Running"}`, "not running; this is what it said last", ""},
		"one that cannot be read": {"{", "", "unexpected end of JSON input"},
		"one of another version":  {`{"apiVersion": "kubelet-supervisor.io/v9"}`, "", "kubelet-supervisor.io/v9"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if test.record != "" {
				written(t, filepath.Join(folder, "state.json"), test.record)
			}
			code, stdout, stderr := does("status", "--run-dir="+folder)
			if code != exitNotRunning || !strings.Contains(stdout, test.stdout) || !strings.Contains(stderr, test.stderr) || (stderr == "") != (test.stderr == "") {
				t.Errorf("code %d, said %q and %q", code, stdout, stderr)
			}
		})
	}
}

func TestStatusOfARealSupervisor(t *testing.T) {
	n := newNode(t)
	p := n.run()
	record := p.awaitHealthy()
	code, stdout, stderr := does("status", "--run-dir="+n.runDir)
	if code != exitOK || !strings.Contains(stdout, "KubeletConfigOk=True Local") || stderr != "" {
		t.Errorf("code %d, said %q and %q", code, stdout, stderr)
	}
	shown := func() (running bool, shown supervisor.Record, code int) {
		t.Helper()
		code, stdout, _ := does("status", "--run-dir="+n.runDir, "-o", "json")
		var answer struct {
			Running bool
			supervisor.Record
		}
		if err := json.Unmarshal([]byte(stdout), &answer); err != nil {
			t.Fatal(err)
		}
		return answer.Running, answer.Record, code
	}
	running, got, code := shown()
	if code != exitOK || !running || got.Child.PID != record.Child.PID || got.Supervisor.PID != p.Process.Pid || got.Condition.Reason != "Local" {
		t.Errorf("code %d, running %t, %+v", code, running, got)
	}
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := p.end(); code != exitOK {
		t.Errorf("the supervisor ended with code %d", code)
	}
	if running, got, code := shown(); code != exitNotRunning || running || got.Child != nil || got.Condition.Reason != "Stopped" {
		t.Errorf("code %d, running %t, %+v", code, running, got)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestStatusThatCannotBeSaid(t *testing.T) {
	for _, write := range []func() error{
		func() error { return writeStatus(brokenPipe{}, supervisor.Record{}, true) },
		func() error { return writeJSON(brokenPipe{}, supervisor.Record{}, true) },
	} {
		if err := write(); err == nil {
			t.Error("nobody hears of it")
		}
	}
}
