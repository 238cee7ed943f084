package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/kubelet-supervisor/kubelet-supervisor/config"
	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubelet"
)

// Backoff of the child (design.md, Times). It starts anew after a stable time, and for another configuration.
const (
	childBackoffFirst = 250 * time.Millisecond
	childBackoffMost  = 10 * time.Second
	childStableAfter  = time.Minute
	backoffSteps      = 16 // after so many the wait is the longest
	runtimeDialWait   = time.Second
)

// launcher starts kubelets, one after the other.
type launcher struct {
	loop    *loop
	backoff *backoff.ExponentialBackOff
	last    *decide.Version
	notify  *notifySocket
	output  *output

	failures int // in a row
}

func newLauncher(l *loop) *launcher {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(childBackoffFirst), backoff.WithMultiplier(2), backoff.WithMaxInterval(childBackoffMost),
		backoff.WithRandomizationFactor(0), backoff.WithMaxElapsedTime(0))
	return &launcher{loop: l, backoff: b, output: newOutput(filepath.Join(l.RunDir, outputFile), l.Output)}
}

// delay is the wait before the next start, a longer one each time.
func (k *launcher) delay() time.Duration {
	k.failures = min(k.failures+1, backoffSteps)
	return k.backoff.NextBackOff()
}

func (k *launcher) steady() {
	k.failures = 0
	k.backoff.Reset()
}

// errRender marks a start that failed before there was anything to start.
var errRender = errors.New("making the effective configuration")

// process is one kubelet.
type process struct {
	command   *exec.Cmd
	version   *decide.Version
	endpoints config.Endpoints
	runtime   string // the fallback's container runtime endpoint
	started   time.Time
	asked     atomic.Bool
	hung      atomic.Pointer[string] // why it was made to dump and end
	healthy   healthAccount
	listener  heldListener  // of healthz; its health watch's alone
	done      chan struct{} // closed when it has been waited for
	collected bool          // its exit status was; below loop.collecting
	journaled bool          // it writes to the journal, and not to our file
}

// start carries out Start and answers it. A start that cannot be made is answered with its error and a backoff.
func (l *loop) start(side context.Context, do decide.Start) {
	if changed, is := l.localChangedUnseen(); is {
		l.spawn(func() {
			l.send(side, changed)
			l.send(side, decide.Started{Err: errLocalChanged})
		})
		return
	}
	k := l.kubelets
	if !decide.Same(k.last, do.Version) {
		k.steady()
	}
	k.last = do.Version
	child, err := k.launch(side, do)
	if err != nil {
		failed := decide.Started{Err: err, Spoilt: errors.Is(err, errRender), Delay: k.delay()}
		l.spawn(func() { l.send(side, failed) })
		return
	}
	crashPoint("after", do)
	l.child = child
	l.record.started(child)
	crashPoint("recorded", do)
	l.lease.newChild(child.started)
	l.spawn(func() {
		l.send(side, decide.Started{})
		l.attend(side, child)
	})
}

func (k *launcher) launch(side context.Context, do decide.Start) (*process, error) {
	l := k.loop
	file, err := l.render(do.Version, effectiveFile)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRender, err)
	}
	arguments, configFile := l.Arguments, l.arguments.Config
	if file != "" {
		arguments, configFile = append(append([]string(nil), l.Arguments...), "--config="+file), file
	}
	child := &process{version: do.Version, done: make(chan struct{}),
		endpoints: config.EffectiveEndpoints(l.Arguments, configFile),
		runtime:   config.EffectiveEndpoints(l.Arguments, l.configFileOf(do.Fallback)).Runtime}
	child.command = exec.Command(l.Kubelet, arguments...)
	child.command.Env = k.environment(side)
	attached := k.attach(child)
	defer attached()
	if err := k.begin(child.command); err != nil {
		return nil, fmt.Errorf("starting the kubelet: %w", err)
	}
	child.started = time.Now()
	return child, nil
}

// attach gives the kubelet somewhere to write: a journal stream of its own, else the file, else our own output. done is for after its
// start.
func (k *launcher) attach(child *process) (done func()) {
	l := k.loop
	if l.Journal != "" {
		done, err := attachJournal(l.Journal, child.command)
		if err == nil {
			child.journaled = true
			return done
		}
		l.Logger.Warn("the kubelet's log goes through a file: journald gives it no stream of its own", zap.Error(err))
	}
	if err := k.output.attach(child.command); err != nil {
		l.Logger.Warn("the kubelet writes to the supervisor's own output, its last words will not be known", zap.Error(err))
		child.command.Stdout, child.command.Stderr = l.Output, l.Output
	}
	return func() {}
}

// configFileOf is where the container runtime's endpoint of a version is to be read.
func (l *loop) configFileOf(v *decide.Version) string {
	if v == nil || l.store == nil {
		return l.arguments.Config
	}
	return filepath.Join(l.store.CheckpointFolder(v.Source), v.Source.KubeletConfigKey)
}

// environment is the supervisor's own, but for what systemd meant for the supervisor: its notify socket and its watchdog. The
// kubelet gets a notify socket of ours instead.
func (k *launcher) environment(side context.Context) []string {
	env := kubelet.Environment(os.Environ())
	if k.notify == nil {
		socket, err := listenNotify(filepath.Join(k.loop.RunDir, notifyFile))
		if err != nil {
			k.loop.Logger.Warn("the kubelet gets no notify socket", zap.Error(err))
			return env
		}
		k.notify = socket
		k.loop.spawn(func() { socket.receive(side) })
	}
	if interval := k.loop.kubeletWatchdog(); interval > 0 {
		env = append(env, fmt.Sprintf("WATCHDOG_USEC=%d", interval.Microseconds())) // without WATCHDOG_PID: whoever reads it
	}
	return append(env, "NOTIFY_SOCKET="+k.notify.path)
}

// begin starts the process, heard by the notify socket from its first word on.
func (k *launcher) begin(command *exec.Cmd) error {
	if k.notify == nil {
		return command.Start()
	}
	return k.notify.begin(func() (int, error) {
		if err := command.Start(); err != nil {
			return 0, err
		}
		return command.Process.Pid, nil
	})
}

// attend waits for the end of a child, watching its health meanwhile, and tells of it.
func (l *loop) attend(side context.Context, child *process) {
	watching, stop := context.WithCancel(side)
	var watches sync.WaitGroup
	watches.Go(func() { l.watchHealth(watching, child) })
	watches.Go(func() { l.watchPings(watching, child, l.kubeletWatchdog()) })
	state, err := l.collect(child)
	stop()
	watches.Wait()
	close(child.done)
	log := l.lastWords(side, child, state)
	l.send(side, l.classify(child, state, err, log))
}

// lastWords is the end of the kubelet's log. The journal is only asked, which takes a moment, where the answer is used.
func (l *loop) lastWords(ctx context.Context, child *process, state *os.ProcessState) []byte {
	switch {
	case !child.journaled:
		return l.kubelets.output.end()
	case child.asked.Load() || state == nil || state.ExitCode() <= 0:
		return nil
	}
	return journalWords(ctx, child.command.Process.Pid, child.started)
}

// classify says how a child ended.
func (l *loop) classify(child *process, state *os.ProcessState, err error, log []byte) decide.ChildExited {
	exited := decide.ChildExited{Asked: child.asked.Load(), Code: -1}
	if err != nil {
		exited.Words = "its exit status is unavailable: " + err.Error()
	} else if status, known := state.Sys().(syscall.WaitStatus); known && status.Signaled() {
		exited.Words = "killed by " + unix.SignalName(status.Signal())
	} else {
		exited.Code = state.ExitCode()
		exited.Words = fmt.Sprintf("exit code %d", exited.Code)
	}
	if last := config.LastErrorLine(log); last != "" && exited.Code != 0 {
		exited.Words += ": " + last
	}
	if hung := child.hung.Load(); hung != nil {
		exited.Words = *hung + "; " + exited.Words
	}
	if !exited.Asked && exited.Code != 0 {
		exited.RuntimeDown = l.runtimeDown(child)
		if exited.RuntimeDown {
			exited.Words = fmt.Sprintf("the container runtime at %s does not answer; %s", child.endpoints.Runtime, exited.Words)
		}
	}
	healthy := child.healthy.total()
	if healthy >= childStableAfter {
		l.kubelets.steady()
	}
	// What we asked for, and somebody's SIGTERM to a healthy kubelet, leave the backoff as it is.
	if !exited.Asked && (exited.Code != 0 || healthy == 0) {
		exited.Delay = l.kubelets.delay()
	}
	return exited
}

// runtimeDown: the container runtime refuses connections, and the fallback would ask the same one (rule 8).
func (l *loop) runtimeDown(child *process) bool {
	endpoint, err := url.Parse(child.endpoints.Runtime)
	if err != nil || child.endpoints.Runtime != child.runtime || endpoint.Scheme != "unix" && endpoint.Scheme != "" {
		return false
	}
	return refusesConnections(endpoint.Path, runtimeDialWait)
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

// stop asks the kubelet to end, and makes it after the grace time. Its exit is told by attend.
func (p *process) stop(grace time.Duration) {
	p.asked.Store(true)
	p.end(syscall.SIGTERM, grace)
	crashPoint("after", decide.Stop{})
}

func (p *process) end(signal os.Signal, grace time.Duration) {
	_ = p.command.Process.Signal(signal)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		_ = p.command.Process.Kill()
		<-p.done
	}
}
