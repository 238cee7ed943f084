//go:build machine

package machine

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	pseudo "math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A machine's snapshot is its memory when the kernel and its drivers are up, and neither of a disk is known nor any random number told. A
// machine that goes on from there has skipped the slowest part of a boot, which no power cut can tell from another one's.

const pauses = " pause" // on the kernel's command line

func (m *machine) snapshot() string { return filepath.Join(m.folder, "snapshot") }

// takeSnapshot boots the machine that far, once, and switches it off again.
func (m *machine) takeSnapshot() {
	m.Helper()
	begin := time.Now()
	m.launch(m.arguments(pauses))
	select {
	case <-m.agent.paused:
	case <-m.agent.booted:
		m.Fatalf("it did not pause; its console: %s", m.console())
	case <-m.ended:
		m.Fatalf("the machine is off; its console: %s", m.console())
	case <-time.After(patience):
		m.Fatalf("no pause within %s; the console: %s", patience, m.console())
	}
	const fast = 10 << 30 // bytes per second
	if err := m.monitor.askFor(nil, "migrate-set-parameters", map[string]any{"max-bandwidth": fast}); err != nil {
		m.Fatal(err)
	}
	if err := m.monitor.askFor(nil, "migrate", map[string]any{"uri": "exec:cat >" + m.snapshot()}); err != nil {
		m.Fatal(err)
	}
	await(m.T, "a snapshot", func() error {
		var is struct {
			Status      string
			Description string `json:"error-desc"`
		}
		if err := m.monitor.askFor(&is, "query-migrate", nil); err != nil {
			return err
		}
		if is.Status != "completed" {
			return fmt.Errorf("%s: %s", is.Status, is.Description)
		}
		return nil
	})
	m.kill()
	m.Logf("snapshotted after %.1f s", time.Since(begin).Seconds())
}

// resume switches the machine on at its snapshot.
func (m *machine) resume() {
	m.Helper()
	m.launch(append(m.arguments(pauses), "-incoming", "exec:cat "+m.snapshot()))
	entropy := make([]byte, 64)
	if _, err := rand.Read(entropy); err != nil {
		m.Fatal(err)
	}
	line, err := json.Marshal(map[string]any{"time": time.Now(), "entropy": entropy})
	if err != nil {
		m.Fatal(err)
	}
	if _, err := m.agent.connection.Write(append(line, '\n')); err != nil {
		m.Fatal(err)
	}
}

// What must be new is new each time a machine goes on from its snapshot: the boot id, the random numbers, the time. And the disk.
func TestASnapshot(t *testing.T) {
	m := newMachine(t, "bare", bareDisk(t), exec.Command, "-netdev", "user,id=net")
	m.takeSnapshot()
	seen := map[string]bool{}
	var first float64
	for i := range 3 {
		m.resume()
		m.booted("") // fails at a boot id that was there before
		said := m.must("cut -d' ' -f1 /proc/uptime; date +%%s; head -c 16 /dev/urandom | hexdump -e '16/1 \"%%02x\"'; echo; " +
			"cat /proc/sys/kernel/random/uuid")
		var uptime float64
		var now int64
		var bytes, uuid string
		if _, err := fmt.Sscan(said, &uptime, &now, &bytes, &uuid); err != nil {
			t.Fatalf("%q: %v", said, err)
		}
		if i == 0 {
			first = uptime
		}
		if away := time.Since(time.Unix(now, 0)).Abs(); math.Abs(uptime-first) > 10 || away > 5*time.Second {
			t.Errorf("up for %.1f s, the first time for %.1f; its clock is %s away", uptime, first, away)
		}
		if seen[bytes] || seen[uuid] {
			t.Errorf("%s or %s was there before", bytes, uuid)
		}
		seen[bytes], seen[uuid] = true, true
		// What one writes, the next finds: no block is remembered by the snapshot.
		if want := fmt.Sprintf("round-%d", i-1); i > 0 && !strings.Contains(m.must("ls /disk"), want) {
			t.Errorf("no %s on the disk", want)
		}
		m.must("rm -rf /disk/round-*; mkdir /disk/round-%d && sync", i)
		m.cut(pseudo.New(pseudo.NewPCG(0, 0)), 0)
	}
}
