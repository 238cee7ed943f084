//go:build systemd

package systemd

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// entries are what the journal has of a unit, under one identifier.
func (m *machine) entries(unit, identifier string) []map[string]any {
	m.Helper()
	return m.entriesOf("--boot", unit, identifier)
}

// entriesOf are those of another boot, as journalctl selects it.
func (m *machine) entriesOf(boot, unit, identifier string) (entries []map[string]any) {
	m.Helper()
	for line := range strings.Lines(m.must("journalctl --output=json --all %s --unit=%s --identifier=%s", boot, unit, identifier)) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			m.Fatal(err)
		}
		entries = append(entries, entry)
	}
	return entries
}

// journalctl -t kubelet is the kubelet and nothing else, with its own pid, and goes on so through an upgrade of the supervisor; the
// supervisor's own lines have fields to ask for.
func TestTheJournal(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		kubeletPID := m.supervised()
		main := m.property("kubelet", "MainPID")
		m.must("dpkg -i %s", m.deb("new"))
		m.isUpgraded(main, kubeletPID)
		m.must("kill -TERM %s", kubeletPID)
		await(t, "another kubelet", func() error {
			if pids := m.pids(m.kubelet); len(pids) != 1 || pids[0] == kubeletPID {
				return fmt.Errorf("kubelets %v", pids)
			}
			return nil
		})
		kubelets := []string{kubeletPID, m.healthy("kubelet")}
		m.must("journalctl --sync")

		var heard []string
		for _, entry := range m.entries("kubelet", "kubelet") {
			pid, message := entry["_PID"].(string), entry["MESSAGE"].(string)
			if slices.Contains(kubelets, pid) {
				heard = append(heard, pid)
			}
			if strings.Contains(message, "supervisor") || !strings.Contains(message, "fake.go") {
				t.Errorf("not the kubelet's: %v", entry)
			}
		}
		for _, pid := range kubelets {
			if !slices.Contains(heard, pid) {
				t.Errorf("the journal has nothing of the kubelet with pid %s, only of %v", pid, heard)
			}
		}
		ours := m.entries("kubelet", "kubelet-supervisor")
		for words, priority := range map[string]string{"starting the kubelet": "6", "kubelet is healthy": "6", "kubelet exited": "4",
			"takes over, the kubelet stays": "6", "took over from the program before": "6"} {
			if !slices.ContainsFunc(ours, func(entry map[string]any) bool {
				id, _ := entry["MESSAGE_ID"].(string)
				return strings.Contains(entry["MESSAGE"].(string), words) && len(id) == 32 && entry["PRIORITY"] == priority && entry["_PID"] == main &&
					entry["CONFIG_SOURCE"] == "local" && entry["PHASE"] != nil
			}) {
				t.Errorf("no line %q of priority %s with its fields in %v", words, priority, ours)
			}
		}
		gap := said(t, ours, "took over from the program before, the kubelet stays") - said(t, ours, "takes over, the kubelet stays")
		t.Logf("without a supervisor during the upgrade: %d ms", gap/1000)
	})
}

// said is when somebody first said a line with these words, in microseconds.
func said(t *testing.T, entries []map[string]any, words string) int64 {
	t.Helper()
	for _, entry := range entries {
		if message, _ := entry["MESSAGE"].(string); strings.Contains(message, words) {
			moment, is := entry["_SOURCE_REALTIME_TIMESTAMP"].(string)
			if !is { // a line of a stream
				moment = entry["__REALTIME_TIMESTAMP"].(string)
			}
			at, err := strconv.ParseInt(moment, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return at
		}
	}
	t.Fatalf("nobody said %q in %v", words, entries)
	return 0
}

// What a kubelet said last is read back from the journal, which it wrote to itself, also where it had said much before.
func TestTheLastWordsOfAKubelet(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.write("/etc/systemd/system/kubelet.service.d/50-crash.conf", "[Service]\nEnvironment=\"FAKE_KUBELET={mode: crash, code: 7, words: out of luck, lines: 400}\"\n")
		m.kubeadm("fake")
		m.join()
		m.must("dpkg -i %s", m.deb("old"))
		m.must("kubelet-supervisor enable && systemctl start --no-block kubelet")
		await(t, "its last words", func() error {
			if s, err := m.status(); err != nil || !strings.Contains(s.text, "exit code 7: out of luck") {
				return fmt.Errorf("%v %s", err, s.text)
			}
			return nil
		})
	})
}

// The unit is started when the kubelet is healthy. Where that does not come, the boot goes on all the same, and systemctl status says why.
func TestAKubeletThatDoesNotGetHealthy(t *testing.T) {
	onEachSystemd(t, func(t *testing.T, m *machine) {
		m.write("/etc/systemd/system/kubelet.service.d/50-hang.conf", "[Service]\nEnvironment=\"FAKE_KUBELET=mode: hang\"\n")
		m.kubeadm("fake")
		m.join()
		m.must("dpkg -i %s", m.deb("old"))
		m.must("kubelet-supervisor enable --now")
		if state := m.property("kubelet", "ActiveState"); state != "active" {
			t.Errorf("the unit is %s", state)
		}
		if said := m.property("kubelet", "StatusText"); !strings.Contains(said, "not healthy") && !strings.Contains(said, "healthz") {
			t.Errorf("its status is %q", said)
		}
		if err := m.only(m.pids(m.kubelet)[0]); err != nil {
			t.Error(err)
		}
	})
}
