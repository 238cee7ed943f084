//go:build linux

package kubelet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/kubeletlog"
)

// A runtime that refuses no connection is asked, and once more where it did not answer: on a busy host it may be us
// who had no turn. All of it ends within 2 s.
const (
	runtimeDialWait = 100 * time.Millisecond
	runtimeAskWait  = 900 * time.Millisecond
	runtimeAsks     = 2
)

// runtimeError is the error of a kubelet that could not use the container runtime: of 1.26 and later, and of 1.23 to 1.25. Its code is a
// submatch. A configuration cannot cause Unavailable at an endpoint that others can use. It can cause DeadlineExceeded, by
// runtimeRequestTimeout.
var runtimeError = regexp.MustCompile(`^(?i:failed to run kubelet): (?:validate service connection: validate CRI v1 runtime API |unable to determine runtime API version: ).*?rpc error: code = (\w+)`)

// Child is one kubelet.
type Child struct {
	launcher        *Launcher
	notify          *notifySocket // it was given; nil = none
	command         *exec.Cmd
	endpoints       kubeletconfig.Endpoints
	file            string        // its configuration; empty: none, or not known since a reload
	given           string        // its configuration, where that was appended to its command line
	fallback        string        // the fallback's
	fallbackRuntime string        // the container runtime endpoint of the fallback
	fallbackHealthz string        // its healthz address
	started         time.Time     // past the lock, if it had to wait
	begun           time.Time     // the process
	locked          bool          // it was given the lock file
	logFrom         int64         // where its part of the output's file begins
	waits           chan struct{} // of one that was parked: closed at its end
	endedEarly      bool          // before the one that it waited for; once waits is closed
	asked           atomic.Bool
	hung            atomic.Pointer[string] // why it was made to dump and end
	healthy         healthAccount
	use             use           // its health watch's alone, until that has ended
	listener        heldListener  // of healthz; its health watch's alone
	done            chan struct{} // closed when it has been waited for
	collected       bool          // its exit status was; below launcher.collecting
	journaled       bool          // it writes to the journal, and not to our file
	killsBefore     int           // what countKills gave at its start; -1 = unknown
}

// Process is how it is known to others.
func (c *Child) Process() Process {
	p := ProcessOf(c.command.Process.Pid)
	p.Executable = c.command.Path
	return p
}

// FallBackTo names the file of what would run if this failed; empty: the command line as it is. To be called before Attend: it has no part
// in the start.
func (c *Child) FallBackTo(file string) {
	if file == "" {
		file = commandline.Parse(c.launcher.Arguments).Config
	}
	c.fallback = file
	endpoints := kubeletconfig.EffectiveEndpoints(c.launcher.Arguments, file)
	c.fallbackRuntime, c.fallbackHealthz = endpoints.Runtime, endpoints.HealthzAddress
}

// Started is when it was.
func (c *Child) Started() time.Time { return c.started }

// Locked reports whether it holds the lock file for as long as it lives.
func (c *Child) Locked() bool { return c.locked }

// Attend watches the child, reports its events, and returns when it has ended and its end was reported.
func (c *Child) Attend(ctx context.Context, tell func(Event)) {
	watching, stop := context.WithCancel(ctx)
	var watches sync.WaitGroup
	watches.Go(func() { c.watchHealth(watching, tell) })
	watches.Go(func() { c.watchPort(watching, tell) })
	watches.Go(func() { c.watchPings(watching, c.launcher.watchdog(), tell) })
	state, err := c.collect()
	stop()
	watches.Wait()
	c.tellUse(tell)
	c.notify.forget(c.command.Process.Pid)
	close(c.done)
	tell(c.exited(state, err, c.lastWords(ctx, state)))
}

// collect waits for the end of the child and collects its exit status, unless the program is being replaced: then that is for the
// program that takes over.
func (c *Child) collect() (*os.ProcessState, error) {
	awaitExit(c.command.Process.Pid)
	c.launcher.collecting.Lock()
	defer c.launcher.collecting.Unlock()
	c.collected = true
	return c.command.Process.Wait()
}

// lastWords is the end of the kubelet's log. The journal is only asked, which takes a moment, where the answer is used.
func (c *Child) lastWords(ctx context.Context, state *os.ProcessState) []byte {
	switch {
	case !c.journaled:
		return c.launcher.output.end()
	case c.asked.Load() || state == nil || state.ExitCode() <= 0:
		return nil
	}
	return journalWords(ctx, c.command.Process.Pid, earliestLine(c.begun, time.Now(), time.Since(c.begun)))
}

// exited says how the child ended.
func (c *Child) exited(state *os.ProcessState, err error, log []byte) Exited {
	exited := Exited{Asked: c.asked.Load(), Code: -1}
	if err != nil {
		exited.Words = "its exit status is unavailable: " + err.Error()
	} else if status, known := state.Sys().(syscall.WaitStatus); known && status.Signaled() {
		exited.Words = "killed by " + unix.SignalName(status.Signal())
		if status.Signal() == syscall.SIGKILL { // it comes from outside: no message of the kubelet explains it
			exited.Words, log = exited.Words+c.wantOfMemory(), nil
		}
	} else {
		exited.Code = state.ExitCode()
		exited.Words = fmt.Sprintf("exit code %d", exited.Code)
	}
	exited.StateFile = kubeletconfig.BlamedStateFile(log)
	last := kubeletlog.LastErrorLine(log)
	if last != "" && exited.Code != 0 {
		exited.Words += ": " + last
	}
	if hung := c.hung.Load(); hung != nil {
		exited.Words = *hung + "; " + exited.Words
	}
	if !exited.Asked && exited.Code != 0 {
		exited.RuntimeDown = c.runtimeDown(last)
		if exited.RuntimeDown {
			exited.Words = fmt.Sprintf("the container runtime at %s does not answer; %s", c.endpoints.Runtime, exited.Words)
		}
		exited.OutOfInotify = c.outOfInotify(log)
		if exited.OutOfInotify {
			exited.Words = "the node has no inotify instance or watch left for it (fs.inotify.max_user_instances, max_user_watches); " + exited.Words
		}
	}
	healthy := c.healthy.total()
	if c.locked && exited.Code > 0 && !exited.Asked {
		exited.LockDenied = bytes.Contains(log, []byte(lockFailed))
		if exited.LockDenied || len(log) == 0 && healthy == 0 { // without words it may have been the lock: better none than no kubelet
			c.launcher.cannotLock.Store(true)
		}
	}
	if healthy >= stableAfter {
		c.launcher.ResetDelay()
	}
	// A requested end, and a foreign SIGTERM to a healthy kubelet, leave the backoff as it is.
	if !exited.Asked && (exited.Code != 0 || healthy == 0) {
		exited.Delay = c.launcher.Delay()
	}
	return exited
}

// wantOfMemory reports that the kernel has killed processes of this unit during the child's life. Such an end counts like any other: a
// configuration can be what takes the memory, and the control tells it from a node that has none.
func (c *Child) wantOfMemory() string {
	kills := c.launcher.countKills()
	if c.killsBefore < 0 || kills <= c.killsBefore {
		return ""
	}
	return fmt.Sprintf(", for lack of memory: the kernel killed %d processes of this unit", kills-c.killsBefore)
}

// runtimeDown: the container runtime does not answer, or did not answer the kubelet by its last error, and the
// fallback would ask the same one (rule 8). A kubelet whose files cannot be decoded has not asked any.
func (c *Child) runtimeDown(last string) bool {
	if c.endpoints.Runtime == "" {
		return false
	}
	endpoint, err := url.Parse(c.endpoints.Runtime)
	fallback, fallbackErr := url.Parse(c.fallbackRuntime)
	if err != nil || fallbackErr != nil || endpoint.Path != fallback.Path || endpoint.Scheme != "unix" && endpoint.Scheme != "" {
		return false
	}
	code := runtimeError.FindStringSubmatch(last)
	return code != nil && code[1] == "Unavailable" || refusesConnections(endpoint.Path, runtimeDialWait) || c.answersNothing(c.endpoints.Runtime)
}

// answersNothing: the container runtime takes connections, as the kernel does for one that is stopped, and does not answer.
func (c *Child) answersNothing(endpoint string) bool {
	if c.launcher.AskRuntime == nil {
		return false
	}
	for range runtimeAsks {
		ctx, cancel := context.WithTimeout(context.Background(), runtimeAskWait)
		err := c.launcher.AskRuntime(ctx, endpoint)
		cancel()
		if err == nil {
			return false
		}
	}
	return true
}

// refusesConnections: a wait that is over says nothing, for on a busy host it may be us who had no turn.
func refusesConnections(path string, wait time.Duration) bool {
	connection, err := net.DialTimeout("unix", path, wait)
	if err != nil {
		return !errors.Is(err, context.DeadlineExceeded)
	}
	_ = connection.Close()
	return false
}

// Stop asks the kubelet to end, and makes it after the grace time. It returns when it has ended; Attend reports that.
func (c *Child) Stop(grace time.Duration) {
	c.asked.Store(true)
	c.end(syscall.SIGTERM, grace)
}

// Dump has a kubelet that hangs write all its goroutines into its log, and makes it end. words say how it hangs.
func (c *Child) Dump(words string) {
	c.hung.Store(&words)
	c.end(syscall.SIGQUIT, dumpWithin)
}

func (c *Child) end(signal os.Signal, grace time.Duration) {
	_ = c.command.Process.Signal(signal)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
		_ = c.command.Process.Kill()
		<-c.done
	}
}
