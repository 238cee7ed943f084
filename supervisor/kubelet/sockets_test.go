//go:build linux

package kubelet

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

func TestOwnsListener(t *testing.T) {
	port := func(l net.Listener) string { return fmt.Sprint(l.Addr().(*net.TCPAddr).Port) }
	four, any := fakenode.Listen(t, "tcp4", "127.0.0.1:0"), fakenode.Listen(t, "tcp", ":0")
	other := exec.Command("sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	for name, test := range map[string]struct {
		pid     int
		address string
		err     string
	}{
		"its own":                      {os.Getpid(), "127.0.0.1:" + port(four), ""},
		"its own, of every address":    {os.Getpid(), "127.0.0.1:" + port(any), ""},
		"of another process":           {other.Process.Pid, "127.0.0.1:" + port(four), "answered by another process"},
		"nobody listens":               {os.Getpid(), fmt.Sprintf("127.0.0.1:%d", fakenode.FreePort(t)), "answered by another process"},
		"the process is gone":          {1 << 30, "127.0.0.1:" + port(four), "reading the kubelet's open files"},
		"an address without a port":    {os.Getpid(), "127.0.0.1", "reading the healthz address"},
		"a port that is not a number":  {os.Getpid(), "127.0.0.1:http", "reading the healthz port"},
		"a port beyond the last there": {os.Getpid(), "127.0.0.1:65536", "reading the healthz port"},
	} {
		t.Run(name, func(t *testing.T) {
			err := new(heldListener).owned(test.pid, test.address)
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// What was seen once need not be looked for again, as long as the socket is open.
func TestHeldListenerIsRemembered(t *testing.T) {
	listener := fakenode.Listen(t, "tcp4", "127.0.0.1:0")
	var held heldListener
	if err := held.owned(os.Getpid(), listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	nobody := fmt.Sprintf("127.0.0.1:%d", fakenode.FreePort(t))
	if err := held.owned(os.Getpid(), nobody); err != nil {
		t.Errorf("the table of sockets was read again: %v", err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := held.owned(os.Getpid(), nobody); err == nil {
			t.Error("the socket was closed, and is still taken for a listener")
		}
	}
}

func TestListeners(t *testing.T) {
	const header = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	for name, test := range map[string]struct{ table, want string }{
		"listens":                 {"   0: 0100007F:2808 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0", "127.0.0.1 socket:[4711]"},
		"of IPv6":                 {"   0: 00000000000000000000000001000000:2808 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4712 1 0", "::1 socket:[4712]"},
		"of every address":        {"   0: 00000000000000000000000000000000:2808 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4712 1 0", ":: socket:[4712]"},
		"of IPv4 in IPv6":         {"   0: 0000000000000000FFFF00000100007F:2808 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4712 1 0", "::ffff:127.0.0.1 socket:[4712]"},
		"is no address":           {"   0: 0100:2808 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0", ""},
		"is connected":            {"   1: 0100007F:2808 0100007F:8A2C 01 00000000:00000000 00:00000000 00000000     0        0 4713 1 0 100 0 0 10 0", ""},
		"listens on another port": {"   2: 0100007F:2809 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4714 1 0 100 0 0 10 0", ""},
		"is cut off":              {"   3: 0100007F:2808 00000000:0000 0A 00000000", ""},
	} {
		t.Run(name, func(t *testing.T) {
			table := filepath.Join(t.TempDir(), "tcp")
			if err := os.WriteFile(table, []byte(header+test.table+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, l := range listeners(table, 10248) {
				got += fmt.Sprintf("%s %s", l.address, l.socket)
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// That the rest of the table is not read rests on this.
func TestTheKernelListsWhatListensFirst(t *testing.T) {
	server := fakenode.Listen(t, "tcp4", "127.0.0.1:0")
	connection, err := net.Dial("tcp4", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	table, err := os.ReadFile("/proc/self/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	connected := false
	for _, line := range strings.Split(strings.TrimSpace(string(table)), "\n")[1:] {
		listens := strings.Fields(line)[3] == "0A"
		if listens && connected {
			t.Errorf("behind a socket that is connected comes %s", line)
		}
		connected = connected || !listens
	}
	if !connected {
		t.Error("no socket is connected")
	}
}
