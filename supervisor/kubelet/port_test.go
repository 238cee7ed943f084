//go:build linux

package kubelet

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// childOf is the child whose process runs the command line, to whose healthz port nothing is done.
func childOf(t *testing.T, l *Launcher, attributes *syscall.SysProcAttr, words ...string) *Child {
	t.Helper()
	command := exec.Command(words[0], words[1:]...)
	command.SysProcAttr = attributes
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	return &Child{launcher: l, command: command}
}

// loopback is the address of IPv4 at which a kubelet would listen on the port of the listener.
func loopback(l net.Listener) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(l.Addr().(*net.TCPAddr).Port))
}

// Who listens where the child, which sleeps, would: this process, or nobody who counts.
func TestTheHolderOfAPort(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		network, host string
		at            string // where the child would listen, if not at 127.0.0.1
		held          bool
	}{
		"at the same address":                     {"tcp4", "127.0.0.1", "", true},
		"at every address":                        {"tcp4", "0.0.0.0", "", true},
		"at every address, IPv6 and IPv4":         {"tcp", "[::]", "", true},
		"at every address of IPv6 alone":          {"tcp6", "[::]", "", false},
		"at another address":                      {"tcp4", "127.0.0.2", "", false},
		"at the loopback address of IPv6":         {"tcp6", "[::1]", "", false},
		"of IPv6, at the same address":            {"tcp6", "[::1]", "::1", true},
		"of IPv6, at every address":               {"tcp6", "[::]", "::1", true},
		"of IPv6, at every address of IPv4 alone": {"tcp4", "0.0.0.0", "::1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener := fakenode.Listen(t, test.network, test.host+":0")
			address := loopback(listener)
			if test.at != "" {
				address = netip.AddrPortFrom(netip.MustParseAddr(test.at), address.Port())
			}
			child := childOf(t, NewLauncher(Settings{}), nil, "sleep", "1000")
			holder := child.ports().find(t.Context(), address, portHolder{})
			if held := holder.Process == ProcessOf(os.Getpid()); held != test.held || !held && holder != (portHolder{}) {
				t.Errorf("held by %+v", holder)
			}
			if again := child.ports().find(t.Context(), address, holder); again != holder {
				t.Errorf("at the next look by %+v", again)
			}
		})
	}
}

// A holder is only named if it is certain to be another's, and to be there.
func TestNobodyHoldsThePort(t *testing.T) {
	t.Parallel()
	asleep := []string{"sleep", "1000"}
	hangs := func(t *testing.T, l net.Listener) []string { // a kubelet that listens at the port, and at another address
		return []string{fakeKubelet, "--config=" + written(t, "kubelet.yaml", fake("mode: ok")), "--healthz-bind-address=127.0.0.2", "--healthz-port=" + fmt.Sprint(loopback(l).Port())}
	}
	for name, child := range map[string]func(t *testing.T, l net.Listener) *Child{
		"nobody listens": func(t *testing.T, l net.Listener) *Child {
			_ = l.Close()
			return childOf(t, NewLauncher(Settings{}), nil, asleep...)
		},
		"the child listens itself": func(t *testing.T, l net.Listener) *Child {
			c := childOf(t, NewLauncher(Settings{}), nil, hangs(t, l)...)
			fakenode.Await(t, "it to listen", func() bool {
				_, err := findListener(c.command.Process.Pid, loopback(l).String())
				return err == nil
			})
			return c
		},
		"the child is gone": func(t *testing.T, _ net.Listener) *Child {
			c := childOf(t, NewLauncher(Settings{}), nil, "true")
			_ = c.command.Wait()
			return c
		},
		"the child has another network": func(t *testing.T, _ net.Listener) *Child {
			if os.Geteuid() != 0 {
				t.Skip("needs root")
			}
			return childOf(t, NewLauncher(Settings{}), &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}, asleep...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener := fakenode.Listen(t, "tcp4", "127.0.0.1:0")
			if holder := child(t, listener).ports().find(t.Context(), loopback(listener), portHolder{}); holder != (portHolder{}) {
				t.Errorf("held by %+v", holder)
			}
		})
	}
	t.Run("a process that was the holder, and has ended", func(t *testing.T) {
		t.Parallel()
		c := childOf(t, NewLauncher(Settings{}), nil, asleep...)
		address := netip.MustParseAddrPort(fmt.Sprintf("127.0.0.1:%d", fakenode.FreePort(t)))
		holder := childOf(t, NewLauncher(Settings{}), nil, fakeKubelet, "--config="+written(t, "kubelet.yaml", fake("mode: ok")), fmt.Sprintf("--healthz-port=%d", address.Port()))
		var last portHolder
		fakenode.Await(t, "the holder to be found", func() bool {
			last = c.ports().find(t.Context(), address, last)
			return last.PID == holder.command.Process.Pid
		})
		_ = holder.command.Process.Kill()
		_ = holder.command.Wait()
		if last = c.ports().find(t.Context(), address, last); last != (portHolder{}) {
			t.Errorf("held by %+v", last)
		}
	})
	t.Run("a socket that no process has open", func(t *testing.T) {
		t.Parallel()
		address := inFlight(t)
		c := childOf(t, NewLauncher(Settings{}), nil, asleep...)
		if found := listenersAt(c.command.Process.Pid, address.Port()); len(found) != 1 {
			t.Fatalf("listening: %+v", found)
		}
		if holder := c.ports().find(t.Context(), address, portHolder{}); holder != (portHolder{}) {
			t.Errorf("held by %+v", holder)
		}
	})
}

// inFlight is the address of a socket that listens and is in a message that nobody receives: the kernel has it alone.
func inFlight(t *testing.T) netip.AddrPort {
	t.Helper()
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	file, err := listener.File()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.Close(pair[0]), unix.Close(pair[1]) })
	if err := unix.Sendmsg(pair[0], []byte{0}, unix.UnixRights(int(file.Fd())), nil, 0); err != nil {
		t.Fatal(err)
	}
	_, _ = file.Close(), listener.Close()
	return loopback(listener)
}

// What works for the child, or was started by a supervisor of this run folder, is nobody else.
func TestAHolderThatIsOurs(t *testing.T) {
	t.Parallel()
	port := fakenode.FreePort(t)
	address := netip.MustParseAddrPort(fmt.Sprintf("127.0.0.1:%d", port))
	b := newBeginning(t)
	b.arguments[1] = "--healthz-port=" + strconv.Itoa(port)
	b.arguments[0] = "--config=" + written(t, "kubelet.yaml", fake("mode: ok"))
	b.instead(b.kubelet, b.arguments...)
	pid := b.begun(b.kubelet)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(b.kubelet, link); err != nil {
		t.Fatal(err)
	}
	ours := NewLauncher(Settings{Path: link, Arguments: append(slices.Clone(b.arguments), "--v=4"), RunDir: b.runDir}) // with other flags than now
	c := childOf(t, ours, nil, "sleep", "1000")
	fakenode.Await(t, "the kubelet to listen", func() bool {
		_, err := findListener(pid, address.String())
		return err == nil
	})
	if holder := c.ports().find(t.Context(), address, portHolder{}); holder != (portHolder{}) {
		t.Errorf("a kubelet that was left over: held by %+v", holder)
	}
	other := childOf(t, NewLauncher(Settings{Path: b.kubelet, Arguments: b.arguments, RunDir: t.TempDir()}), nil, "sleep", "1000")
	if holder := other.ports().find(t.Context(), address, portHolder{}); holder.PID != pid || holder.name() != fmt.Sprintf("kubelet, pid %d", pid) {
		t.Errorf("a kubelet of another run folder: held by %+v, %s", holder, holder.name())
	}
	program := childOf(t, NewLauncher(Settings{Path: copyOf(t, fakeKubelet, filepath.Join(t.TempDir(), "kubelet")), Arguments: append(slices.Clone(b.arguments), "--v=4"), RunDir: b.runDir}), nil, "sleep", "1000")
	if holder := program.ports().find(t.Context(), address, portHolder{}); holder.PID != pid {
		t.Errorf("a program that a kubelet of ours may have started: held by %+v", holder)
	}
	parent := &Child{launcher: other.launcher, command: &exec.Cmd{Process: &os.Process{Pid: os.Getpid()}}}
	if holder := parent.ports().find(t.Context(), address, portHolder{}); holder != (portHolder{}) {
		t.Errorf("a process that the child started: held by %+v", holder)
	}
}

// A holder that has handed its socket to another process is no holder any more.
func TestAHolderThatHandsItsSocketOn(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	address := loopback(listener)
	first := exec.Command("/bin/sh", "-c", "exec 3<&0; sleep 1000 & echo $!; read -r line <&4; exec 3<&- 0<&-; echo; read -r line <&4")
	first.Stdin, first.SysProcAttr = file, &syscall.SysProcAttr{Setpgid: true}
	reads, writes, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writes.Close()
	first.ExtraFiles = []*os.File{nil, reads}
	out, err := first.StdoutPipe()
	if err == nil {
		err = first.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(-first.Process.Pid, syscall.SIGKILL); _ = first.Wait() }()
	_, _, _ = listener.Close(), file.Close(), reads.Close()
	said := bufio.NewReader(out)
	var next int
	if _, err := fmt.Fscanln(said, &next); err != nil {
		t.Fatal(err)
	}
	c := childOf(t, NewLauncher(Settings{}), nil, "sleep", "1000")
	sockets := socketsOf(listenersAt(os.Getpid(), address.Port()))
	held, err := listenerAmong(first.Process.Pid, sockets)
	if err != nil {
		t.Fatal(err)
	}
	holder := portHolder{ProcessOf(first.Process.Pid), held}
	if again := c.ports().find(t.Context(), address, holder); again != holder {
		t.Errorf("while it has it: held by %+v", again)
	}
	_, _ = writes.WriteString("close\n")
	if _, err := said.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if now := c.ports().find(t.Context(), address, holder); now.PID != next {
		t.Errorf("held by %+v, and process %d has it", now, next)
	}
}

func TestTheNameOfAHolder(t *testing.T) {
	holder := portHolder{Process: Process{PID: os.Getpid()}}
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := holder.name(), fmt.Sprintf("%s, pid %d", strings.TrimSpace(string(comm)), os.Getpid()); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (portHolder{Process: Process{PID: 1 << 30}}).name(); got != "pid 1073741824" {
		t.Errorf("of one that is gone: %q", got)
	}
}

// A kubelet whose healthz port is this process's; and then it is not.
func TestThePortIsWatched(t *testing.T) {
	t.Parallel()
	listener := fakenode.Listen(t, "tcp4", "127.0.0.1:0")
	c := childOf(t, NewLauncher(Settings{StartTimeout: time.Minute}), nil, "sleep", "1000")
	c.endpoints, c.started = kubeletconfig.Endpoints{HealthzAddress: loopback(listener).String()}, time.Now()
	c.fallbackHealthz = fmt.Sprintf("0.0.0.0:%d", loopback(listener).Port())
	told, over := make(chan PortSeen), make(chan struct{})
	go func() {
		defer close(over)
		c.watchPort(t.Context(), func(e Event) { told <- e.(PortSeen) })
	}()
	if e, want := <-told, fmt.Sprintf("its healthz port %d is held by another process (", loopback(listener).Port()); !strings.HasPrefix(e.HeldBy, want) || !strings.HasSuffix(e.HeldBy, fmt.Sprintf("pid %d)", os.Getpid())) {
		t.Errorf("told: %+v", e)
	} else if !e.Shared {
		t.Error("the fallback has the same port at another address")
	}
	if took := time.Since(c.started); took < portHeldFor {
		t.Errorf("told after %s", took)
	}
	_ = listener.Close()
	if e := <-told; e.HeldBy != "" {
		t.Errorf("told: %+v, and nobody has it", e)
	}
	c.healthy.turn(true)
	<-over
}

func TestAKubeletWithoutAHealthzPortIsNotWatched(t *testing.T) {
	(&Child{endpoints: kubeletconfig.Endpoints{ReadinessByNotify: true}}).watchPort(t.Context(), nil)
}

func TestHowOftenThePortIsLookedAt(t *testing.T) {
	for age, want := range map[time.Duration]time.Duration{time.Second: time.Second, time.Hour: 10 * time.Second} {
		if got := portPoll(age, 2*time.Minute); got != want {
			t.Errorf("at the age of %s after %s, want %s", age, got, want)
		}
	}
}
