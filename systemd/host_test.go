package systemd

import (
	"bufio"
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// Rule 13: logind's announcement of a shutdown reaches the loop. The bus is real, logind is played.
func TestHostShutdownIsHeard(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", startBus(t))
	logind := connectBus(t)
	if reply, err := logind.RequestName("org.freedesktop.login1", dbus.NameFlagDoNotQueue); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatalf("taking logind's name: %v %v", reply, err)
	}
	told := make(chan bool, 1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- hearHost(ctx, func(stopping bool) {
			select {
			case told <- stopping:
			case <-ctx.Done():
			}
		})
	}()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	for _, begins := range []bool{true, false} {
		// Said until it is heard: the subscription has no sign of its own.
		again := time.NewTicker(20 * time.Millisecond)
		defer again.Stop()
		for heard := false; !heard; {
			select {
			case <-again.C:
				if err := logind.Emit("/org/freedesktop/login1", "org.freedesktop.login1.Manager."+hostSignal, begins); err != nil {
					t.Fatal(err)
				}
			case stopping := <-told:
				heard = stopping == begins
			case <-t.Context().Done():
				t.Fatal("not heard")
			}
		}
	}
}

// startBus starts a bus of the test's own and gives its address.
func startBus(t *testing.T) string {
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

func connectBus(t *testing.T) *dbus.Conn {
	connection, err := dbus.ConnectSystemBus()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}
