package systemd

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// playSilentBus takes connections, gives these answers to the lines of whoever connects, and none after that.
func playSilentBus(t *testing.T, answers ...string) {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "bus"))
	if err != nil {
		t.Fatal(err)
	}
	var conversations sync.WaitGroup
	conversations.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			conversations.Go(func() {
				context.AfterFunc(t.Context(), func() { _ = connection.Close() })
				lines := bufio.NewReader(connection)
				for _, answer := range answers {
					_, _ = lines.ReadString('\n')
					_, _ = connection.Write([]byte(answer + "\r\n"))
				}
				_, _ = io.Copy(io.Discard, lines)
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); conversations.Wait() })
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+listener.Addr().String())
}

// dbus.socket takes connections while its daemon is frozen, or cannot start. Nobody waits longer for an answer than he has said, neither the start
// of a kubelet nor a stop (rule 2).
func TestABusThatNeverAnswers(t *testing.T) {
	for bus, answers := range map[string][]string{
		"from the first word on":    nil,
		"once it knows who asks":    {"REJECTED EXTERNAL", "OK 0123456789abcdef0123456789abcdef", "AGREE_UNIX_FD"},
		"in the middle of greeting": {"REJECTED EXTERNAL"},
	} {
		t.Run(bus, func(t *testing.T) {
			playSilentBus(t, answers...)
			type end struct {
				of  string
				err error
			}
			ends := make(chan end, 3)
			go func() { _, err := SliceProperties(t.Context(), "x.slice"); ends <- end{"SliceProperties", err} }()
			go func() {
				ends <- end{"SetSliceProperties", SetSliceProperties(t.Context(), "x.slice", map[string]uint64{"TasksMax": 1})}
			}()
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), unitsPatience)
				defer cancel()
				if err := hearHost(ctx, func(bool) {}); err == nil {
					t.Error("logind was heard")
				}
				ends <- end{"hearHost", ctx.Err()}
			}()
			for range cap(ends) {
				select {
				case e := <-ends:
					if !errors.Is(e.err, context.DeadlineExceeded) {
						t.Errorf("%s ended with %v", e.of, e.err)
					}
				case <-time.After(10 * unitsPatience):
					t.Fatal("not all have an end")
				}
			}
		})
	}
}
