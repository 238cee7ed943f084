//go:build linux

package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

func TestAskNobody(t *testing.T) {
	for _, command := range []string{"reload", "retry"} {
		folder := t.TempDir()
		if code, stdout, stderr := does(command, "--run-dir="+folder); code != exitNotRunning || stdout != "" || !strings.Contains(stderr, "no supervisor runs with run folder "+folder) {
			t.Errorf("%s: code %d, said %q and %q", command, code, stdout, stderr)
		}
		written(t, folder+"/state.json", `{"apiVersion": "kubelet-supervisor.io/v1", "supervisor": {"pid": 1, "startTime": 1}}`)
		if code, stdout, stderr := does(command, "--run-dir="+folder); code != exitNotRunning || stdout != "" || !strings.Contains(stderr, "the supervisor with pid 1 is gone") {
			t.Errorf("%s: code %d, said %q and %q", command, code, stdout, stderr)
		}
	}
}

func TestReloadAndRetryAreHeard(t *testing.T) {
	n := newNode(t)
	p := n.run()
	before := p.awaitHealthy()
	for i, command := range []string{"reload", "retry", "reload"} {
		code, stdout, stderr := does(command, "--run-dir="+n.runDir)
		if code != exitOK || stdout == "" || stderr != "" {
			t.Errorf("%s: code %d, said %q and %q", command, code, stdout, stderr)
		}
		if command == "retry" && stdout != "nothing is assigned: there is nothing to try again\n" {
			t.Errorf("said %q", stdout)
		}
		record, running, err := supervisor.ReadRecord(n.runDir)
		if err != nil || !running || record.Generation+record.Reloads != i+1 {
			t.Errorf("%s: %d retries, %d reloads, %v", command, record.Generation, record.Reloads, err)
		}
		if record.Child == nil || *record.Child != *before.Child {
			t.Errorf("%s: the kubelet is another: %+v", command, record.Child)
		}
	}
}

// What reload was to look at is in the record when it returns.
func TestReloadLooksBeforeItAnswers(t *testing.T) {
	n := newNode(t)
	n.run().awaitHealthy()
	for i := range 3 {
		written(t, n.local, fakenode.Configuration("mode: ok")+fmt.Sprintf("maxPods: %d\n", i))
		if code, _, stderr := does("reload", "--run-dir="+n.runDir); code != exitOK {
			t.Fatal(stderr)
		}
		if record, _, err := supervisor.ReadRecord(n.runDir); err != nil || !record.LocalPending {
			t.Errorf("%v, %+v", err, record)
		}
	}
}

// systemd gives `reload` the flags of run as they are: of them only the run folder is of interest.
func TestReloadWithTheFlagsOfRun(t *testing.T) {
	n := newNode(t)
	p := n.run()
	before := p.awaitHealthy()
	for i, flags := range [][]string{
		{"--run-dir=" + n.runDir, "--trial-period=30m", "--follow-local"},
		{"--trial-period", "30m", "--follow-local", "--run-dir", n.runDir, "--log-format", "json", "-x"},
	} {
		if code, said, stderr := does(append([]string{"reload"}, flags...)...); code != exitOK || !strings.Contains(said, "runs, with the same kubelet") {
			t.Errorf("%q: code %d, %s%s", flags, code, said, stderr)
		}
		if after := p.awaitHealthy(); after.Reloads != i+1 || *after.Child != *before.Child {
			t.Errorf("%d reloads: %+v", i+1, after)
		}
	}
}
