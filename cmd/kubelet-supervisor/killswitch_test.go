package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
)

// With the kill switch the process is the kubelet: one process, with the unit's own arguments, and no supervisor to be seen.
func TestTheKillSwitch(t *testing.T) {
	n := newNode(t)
	recorded := filepath.Join(n.folder, "record")
	t.Setenv("FAKE_KUBELET_RECORD", recorded)
	t.Setenv("WATCHDOG_USEC", "60000000")
	left := n.run()
	before := left.awaitHealthy().Child.PID
	if err := left.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	left.end()
	off := written(t, filepath.Join(n.folder, "disabled"), "")
	// Nothing else that is wrong may keep the kubelet from running, such as flags that make no sense.
	p := n.run("--kill-switch="+off, "--trial-failures=0")
	await(t, "the kubelet", func() bool {
		return slices.Contains(fakes(t, recorded, "start"), fmt.Sprintf("start %d", p.Process.Pid))
	})
	want := []string{"start", "term", "exit", "start"}
	var got []string
	for _, line := range fakes(t, recorded, "start term exit") {
		got = append(got, strings.Fields(line)[0])
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the kubelets saw %q, want %q: the one that was left behind (pid %d) has to end first", got, want, before)
	}
	var last struct {
		PID         int
		Argv        []string
		Environment map[string]string
	}
	data, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	if last.PID != p.Process.Pid || !slices.Equal(last.Argv, n.kubelet[1:]) || last.Environment["WATCHDOG_USEC"] != "" {
		t.Errorf("the kubelet was %+v", last)
	}
	if _, running, err := supervisor.ReadRecord(n.runDir); err == nil || running {
		t.Errorf("it is still told that there is a supervisor: %t, %v", running, err)
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.end(); code != exitOK {
		t.Errorf("code %d", code)
	}
}
