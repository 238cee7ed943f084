//go:build linux

package cli

import (
	"bufio"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/godbus/dbus/v5"

	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// Whatever is under way, SIGTERM ends it: with 0, no kubelet left, and nothing held against a configuration for it.
func TestTermInEveryPhase(t *testing.T) {
	for _, phase := range phases {
		t.Run(phase.name, func(t *testing.T) {
			n, p := phase.reach(t)
			phase.term(t, n, p)
		})
	}
}

// term ends the supervisor and checks what it leaves.
func (ph phase) term(t *testing.T, n *node, p *supervisorProcess) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.end(); code != exitOK {
		t.Errorf("code %d", code)
	}
	n.wantNoKubelet(t)
	if account := n.account(t); account.Open || account.Tries < ph.tries || account.Tries > 0 && ph.tries == 0 {
		t.Errorf("the trial's account is %+v, want %d tries or more", account, ph.tries)
	}
	if ph.assigned == "" {
		return
	}
	s, err := store.Open(n.stateDir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if assigned, err := s.LoadSource(store.Assigned); err != nil || assigned == nil || *assigned != *source("a").ConfigMap {
		t.Errorf("assigned is %v, %v", assigned, err)
	}
}

// From the announcement of the host's shutdown on nothing is stopped, started or rolled back, whatever was under way, and whatever a
// person asks for. What the host ends stays ended, and counts nothing.
func TestHostShutdownInEveryPhase(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", startBus(t))
	logind, stops := playLogind(t)
	for _, phase := range phases[1:] { // in the first one there is nobody yet who listens
		t.Run(phase.name, func(t *testing.T) {
			stops.Store(false)
			n, p := phase.reach(t)
			before, _, err := supervisor.ReadRecord(n.runDir)
			if err != nil {
				t.Fatal(err)
			}
			stops.Store(true)
			fakenode.Await(t, "the announcement is heard", func() bool { // said until then: the subscription has no sign of its own
				if err := logind.Emit("/org/freedesktop/login1", "org.freedesktop.login1.Manager.PrepareForShutdown", true); err != nil {
					t.Fatal(err)
				}
				record, _, err := supervisor.ReadRecord(n.runDir)
				return err == nil && record.Phase == "Frozen"
			})
			starts, terms := n.count("start"), n.count("term")
			n.retry(t)
			if phase.alive {
				record, _, err := supervisor.ReadRecord(n.runDir)
				if err != nil || record.Child == nil || before.Child == nil || *record.Child != *before.Child || terms > 0 {
					t.Fatalf("the kubelet was %+v and is %+v (%v), asked to stop %d times", before.Child, record.Child, err, terms)
				}
				_ = syscall.Kill(record.Child.PID, syscall.SIGKILL) // by the host
			}
			fakenode.Await(t, "no kubelet", func() bool {
				record, _, err := supervisor.ReadRecord(n.runDir)
				return err == nil && record.Child == nil && record.Phase == "Frozen"
			})
			n.retry(t)
			if now := n.count("start"); now != starts {
				t.Errorf("%d kubelets were started after the announcement", now-starts)
			}
			phase.term(t, n, p)
		})
	}
}

// retry returns when the supervisor has decided what to do about it, and so about all that came before.
func (n *node) retry(t *testing.T) {
	t.Helper()
	if code, stdout, stderr := does("retry", "--run-dir="+n.runDir); code != exitOK {
		t.Fatalf("retry: code %d, %s%s", code, stdout, stderr)
	}
}

// startBus starts a bus of the test's own and gives its address.
func startBus(t *testing.T) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "dbus-daemon", "--session", "--nofork", "--print-address=1", "--address=unix:tmpdir="+t.TempDir())
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("this test needs Debian's package dbus-daemon, which make test-unit installs: %v", err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	address, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(address)
}

// playLogind takes logind's name on the bus, and answers whether the host stops.
func playLogind(t *testing.T) (connection *dbus.Conn, stops *atomic.Bool) {
	t.Helper()
	stops = &atomic.Bool{}
	connection, err := dbus.ConnectSystemBus()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if reply, err := connection.RequestName("org.freedesktop.login1", dbus.NameFlagDoNotQueue); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatalf("taking logind's name: %v %v", reply, err)
	}
	answer := func(string, string) (dbus.Variant, *dbus.Error) { return dbus.MakeVariant(stops.Load()), nil }
	if err := connection.ExportMethodTable(map[string]any{"Get": answer}, "/org/freedesktop/login1", "org.freedesktop.DBus.Properties"); err != nil {
		t.Fatal(err)
	}
	return connection, stops
}
