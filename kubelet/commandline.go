package kubelet

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// notInUse says why the child, which is healthy, does not run with the configuration that it was given: a script in its place has handed on other
// arguments. The last --config counts, as in the kubelet. A command line that cannot be read says nothing.
func (c *Child) notInUse() string {
	words := zeroSeparated(fmt.Sprintf("/proc/%d/cmdline", c.command.Process.Pid))
	if c.given == "" || len(words) == 0 {
		return ""
	}
	file := config.ParseArguments(words[1:]).Config
	if file == c.given {
		return ""
	}
	has := "without --config"
	if file != "" {
		has = "with --config=" + bounded.Short(file)
	}
	return fmt.Sprintf("%s does not hand on the arguments that it is given: the kubelet that runs (pid %d) was started %s", c.launcher.Path, c.command.Process.Pid, has)
}

// becameNone tells, once, of a child that did not become the kubelet: its own child is, and listens where it should.
func (c *Child) becameNone(ctx context.Context, address netip.AddrPort, tell func(Event)) bool {
	child := c.command.Process.Pid
	found := slices.DeleteFunc(listenersAt(child, address.Port()), func(l listener) bool { return !c.inTheWay(ctx, l, address) })
	sockets := socketsOf(found)
	if own, err := listenerAmong(child, sockets); err != nil || own != (heldListener{}) {
		return false // what it forks has its sockets for a moment, too
	}
	pid := c.descendantWith(sockets)
	if pid == 0 {
		return false
	}
	tell(NotInUse{Words: fmt.Sprintf("%s did not become the kubelet: its child (pid %d) is, and is not looked after", c.launcher.Path, pid)})
	return true
}

// descendantWith is the process below the child that has one of the sockets; 0 where there is none.
func (c *Child) descendantWith(sockets map[string]bool) int {
	if len(sockets) == 0 {
		return 0
	}
	child := c.command.Process.Pid
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == child || !slices.Contains(withAncestors(pid), child) {
			continue
		}
		if held, err := listenerAmong(pid, sockets); err == nil && held != (heldListener{}) {
			return pid
		}
	}
	return 0
}
