//go:build linux

package kubelet

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
)

// notInUseFor is how long a command line has to say so before it is believed of a child that is not healthy: a script
// may become other programs on its way to the kubelet.
const notInUseFor = time.Second

// use is what the child's command line says, as far as it was looked at: why it is not in use, or nothing against it.
type use struct {
	seen  string
	since time.Time
	told  string
}

// lookAtUse looks at the command line. At the kubelet's first health there is nothing left that it could become.
func (c *Child) lookAtUse(healthy bool, tell func(Event)) {
	if now, known := c.notInUse(); known && now != c.use.seen {
		c.use.seen, c.use.since = now, time.Now()
	}
	if healthy || c.use.seen == "" || time.Since(c.use.since) >= notInUseFor {
		c.tellUse(tell)
	}
}

// tellUse reports what was seen last, if that is news. Of a child that has ended it is what has ended.
func (c *Child) tellUse(tell func(Event)) {
	if c.use.told != c.use.seen {
		c.use.told = c.use.seen
		tell(NotInUse{Words: c.use.seen})
	}
}

// notInUse says why the child does not run with the configuration that it was given: a script in its place has handed
// on other arguments. The last --config counts, as in the kubelet. A command line that cannot be read says nothing.
func (c *Child) notInUse() (why string, known bool) {
	words := zeroSeparated(fmt.Sprintf("/proc/%d/cmdline", c.command.Process.Pid))
	if c.given == "" || len(words) == 0 {
		return "", false
	}
	file := commandline.Parse(words[1:]).Config
	if file == c.given {
		return "", true
	}
	has := "without --config"
	if file != "" {
		has = "with --config=" + bounded.Short(file)
	}
	return fmt.Sprintf("%s does not hand on the arguments that it is given: the kubelet that runs (pid %d) was started %s", c.launcher.Path, c.command.Process.Pid, has), true
}

// becameNone tells, once, of a child that did not become the kubelet: its own child is, and listens where it should.
func (c *Child) becameNone(ctx context.Context, address netip.AddrPort, tell func(Event)) bool {
	child := c.command.Process.Pid
	found := slices.DeleteFunc(listenersAt(child, address.Port()), func(l listener) bool { return !c.ports().inTheWay(ctx, l, address) })
	sockets := socketsOf(found)
	if own, err := listenerAmong(child, sockets); err != nil || own != (heldListener{}) {
		return false // what it forks has its sockets for a moment, too
	}
	pid := c.ports().descendantWith(sockets)
	if pid == 0 {
		return false
	}
	tell(NotInUse{Words: fmt.Sprintf("%s did not become the kubelet: its child (pid %d) is, and is not looked after", c.launcher.Path, pid)})
	return true
}

// descendantWith is the process below the child that has one of the sockets; 0 where there is none.
func (s portSearch) descendantWith(sockets map[string]bool) int {
	if len(sockets) == 0 {
		return 0
	}
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == s.child || !slices.Contains(withAncestors(pid), s.child) {
			continue
		}
		if held, err := listenerAmong(pid, sockets); err == nil && held != (heldListener{}) {
			return pid
		}
	}
	return 0
}
