package systemd

import (
	"bufio"
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"
	"go.uber.org/zap"
)

// playedLogind is on a bus of the test's own.
type playedLogind struct {
	*dbus.Conn
	t *testing.T
}

func playLogind(t *testing.T) *playedLogind {
	t.Helper()
	l := &playedLogind{connectBus(t), t}
	if reply, err := l.RequestName(logind, dbus.NameFlagDoNotQueue); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatalf("taking logind's name: %v %v", reply, err)
	}
	return l
}

// says makes the property so; other signals than this are not sent.
func (l *playedLogind) says(stopping bool) {
	l.t.Helper()
	properties := map[string]map[string]*prop.Prop{logindManager: {shutdownProperty: {Value: stopping}}}
	if _, err := prop.Export(l.Conn, logindPath, properties); err != nil {
		l.t.Fatal(err)
	}
}

// watchShutdown gives what is told, until the test ends.
func watchShutdown(t *testing.T, before bool) <-chan bool {
	t.Helper()
	told := make(chan bool)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		WatchShutdown(ctx, zap.NewNop(), before, func(stopping bool) {
			select {
			case told <- stopping:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return told
}

func expectTold(t *testing.T, told <-chan bool, want bool) {
	t.Helper()
	select {
	case got := <-told:
		if got != want {
			t.Fatalf("told %t, want %t", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatalf("not told %t", want)
	}
}

// Rule 13: logind's announcement of a shutdown is told. The bus is real, logind is played.
func TestHostShutdownIsHeard(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", startBus(t))
	logind := playLogind(t)
	told := watchShutdown(t, false)
	for _, begins := range []bool{true, false} {
		logind.says(begins)
		// Said until it is heard: the subscription has no sign of its own.
		again := time.NewTicker(20 * time.Millisecond)
		defer again.Stop()
		for heard := false; !heard; {
			select {
			case <-again.C:
				if err := logind.Emit(logindPath, logindManager+"."+shutdownSignal, begins); err != nil {
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

// Any local user can send a signal. It has logind asked, whose answer counts.
func TestAnAnnouncementOfAStranger(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", startBus(t))
	logind := playLogind(t)
	asked := make(chan struct{}, 1)
	answer := func(string, string) (dbus.Variant, *dbus.Error) {
		select {
		case asked <- struct{}{}:
		default:
		}
		return dbus.MakeVariant(false), nil
	}
	if err := logind.ExportMethodTable(map[string]any{"Get": answer}, logindPath, "org.freedesktop.DBus.Properties"); err != nil {
		t.Fatal(err)
	}
	told := watchShutdown(t, false)
	<-asked // at the start
	stranger := connectBus(t)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	var names []string
	if err := stranger.BusObject().Call("org.freedesktop.DBus.ListNames", 0).Store(&names); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case <-again.C: // to each connection by its name, for which nobody has to be subscribed
			for _, name := range names {
				forged := &dbus.Message{Type: dbus.TypeSignal, Headers: map[dbus.HeaderField]dbus.Variant{
					dbus.FieldDestination: dbus.MakeVariant(name), dbus.FieldPath: dbus.MakeVariant(dbus.ObjectPath(logindPath)),
					dbus.FieldInterface: dbus.MakeVariant(logindManager), dbus.FieldMember: dbus.MakeVariant(shutdownSignal),
					dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(true))}, Body: []any{true}}
				if call := stranger.Send(forged, nil); call != nil && call.Err != nil {
					t.Fatal(call.Err)
				}
			}
		case <-told:
			t.Fatal("it was believed")
		case <-asked:
			return
		}
	}
}

// What was announced while nobody listened is asked for: at the start, after a reload, and when logind was restarted.
func TestAMissedAnnouncement(t *testing.T) {
	for name, before := range map[string]bool{"that a shutdown was called off": true, "that one begins": false} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", startBus(t))
			logind := playLogind(t)
			logind.says(!before)
			told := watchShutdown(t, before)
			expectTold(t, told, !before)
			logind.says(before)
			if _, err := logind.ReleaseName("org.freedesktop.login1"); err != nil {
				t.Fatal(err)
			}
			if _, err := logind.RequestName("org.freedesktop.login1", dbus.NameFlagDoNotQueue); err != nil {
				t.Fatal(err)
			}
			expectTold(t, told, before)
		})
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
