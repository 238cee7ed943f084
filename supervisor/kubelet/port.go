//go:build linux

package kubelet

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// A kubelet whose healthz port is taken goes on without it: it says so in its log, asks for it again every 5 s, and is never healthy
// (cmd/kubelet/app/server.go, 1.24 to 1.37). The process that has the port is found by the socket. At its other ports the kubelet exits.
const (
	portLook    = time.Second     // between two looks at the port
	portHeldFor = 3 * time.Second // a process that is just ending has its sockets for less
)

// A portHolder is another process that listens where the child would. Its zero value is none, or an unknown one.
type portHolder struct {
	Process
	heldListener
}

// watchPort tells who else has the child's healthz port, until the child was healthy or ctx ends.
func (c *Child) watchPort(ctx context.Context, tell func(Event)) {
	address, err := netip.ParseAddrPort(c.endpoints.HealthzAddress)
	if err != nil {
		return // it has none
	}
	var holder portHolder
	var since time.Time
	scripted := false
	for told, wait := "", portLook; ; wait = portPoll(time.Since(c.started), c.launcher.StartTimeout) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if c.healthy.ever() {
			return
		}
		if now := c.ports().find(ctx, address, holder); now != holder {
			holder, since = now, time.Now()
		}
		words := ""
		if holder.PID == 0 && !scripted {
			scripted = c.becameNone(ctx, address, tell)
		}
		if holder.PID != 0 && time.Since(since) >= portHeldFor {
			words = fmt.Sprintf("its healthz port %d is held by another process (%s)", address.Port(), holder.name())
		}
		if words != told {
			told = words
			tell(PortSeen{HeldBy: words, Shared: portOf(c.endpoints.HealthzAddress) == portOf(c.fallbackHealthz)})
		}
	}
}

// portOf is "" for an address without one.
func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

// portPoll is the wait before the next look at the port of a kubelet of that age.
func portPoll(age, startTimeout time.Duration) time.Duration {
	if age > startTimeout {
		return healthPollLater
	}
	return portLook
}

// A portSearch looks for the process that listens where a child would.
type portSearch struct {
	child    int // its pid
	launcher *Launcher
}

func (c *Child) ports() portSearch { return portSearch{c.command.Process.Pid, c.launcher} }

// find finds the process that keeps the child from listening. The one of the last look is only confirmed: the search goes through the
// open files of all processes.
func (s portSearch) find(ctx context.Context, address netip.AddrPort, last portHolder) portHolder {
	found := listenersAt(s.child, address.Port())
	if own, err := listenerAmong(s.child, socketsOf(found)); err != nil || own != (heldListener{}) {
		return portHolder{} // the child listens, or is gone
	}
	found = slices.DeleteFunc(found, func(l listener) bool { return !s.inTheWay(ctx, l, address) })
	if len(found) == 0 {
		return portHolder{}
	}
	sockets := socketsOf(found)
	if sockets[last.socket] && linked(last.file) == last.socket && last.Alive() {
		return last
	}
	return s.search(sockets)
}

// inTheWay reports whether the kubelet could not listen at the address while l exists.
func (s portSearch) inTheWay(ctx context.Context, l listener, address netip.AddrPort) bool {
	theirs, ours := l.address.Unmap(), address.Addr().Unmap()
	if theirs.BitLen() == ours.BitLen() {
		return theirs == ours || theirs.IsUnspecified()
	}
	// A socket at [::] has the addresses of IPv4 as well, or has not: the table does not say. Then it answers there.
	return theirs.Is6() && theirs.IsUnspecified() && s.answers(ctx, address)
}

// answers reports whether a process accepts connections at the address of the child's network, if that is ours, too.
func (s portSearch) answers(ctx context.Context, address netip.AddrPort) bool {
	if linked(filepath.Join("/proc", strconv.Itoa(s.child), "ns/net")) != linked("/proc/self/ns/net") {
		return false
	}
	connection, err := (&net.Dialer{Timeout: portLook}).DialContext(ctx, "tcp", address.String())
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}

// search finds the process that has one of the sockets open. None that is the child's own work counts, nor a kubelet of ours, and none
// that cannot be looked into.
func (s portSearch) search(sockets map[string]bool) portHolder {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		process := ProcessOf(pid)
		held, err := listenerAmong(pid, sockets)
		if err != nil || held == (heldListener{}) {
			continue
		}
		if s.isOurs(pid) || !process.Alive() { // the same one throughout
			return portHolder{}
		}
		return portHolder{process, held}
	}
	return portHolder{}
}

// isOurs reports whether the process comes from the child, as behind a script, or is a kubelet that a supervisor of
// this run folder started.
func (s portSearch) isOurs(pid int) bool {
	if slices.Contains(withAncestors(pid), s.child) {
		return true
	}
	proc, executable := filepath.Join("/proc", strconv.Itoa(pid)), s.launcher.Path
	if resolved, err := filepath.EvalSymlinks(executable); err == nil {
		executable = resolved
	}
	ours := kubeletSearch{arguments: s.launcher.Arguments, runDir: s.launcher.RunDir}
	return linked(proc+"/exe") == executable && ours.matches(proc, true)
}

// name is for people; the process gives itself the first part of it.
func (h portHolder) name() string {
	pid := fmt.Sprintf("pid %d", h.PID)
	command, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(h.PID), "comm"))
	if name := bounded.Line(strings.TrimSpace(string(command))); name != "" {
		return name + ", " + pid
	}
	return pid
}
