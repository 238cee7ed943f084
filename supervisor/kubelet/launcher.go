//go:build linux

package kubelet

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
)

// What of RUN_DIR is the kubelet's.
const (
	EffectiveFile = "effective/kubelet.yaml" // what is appended as --config
	notifyFile    = "notify"
	outputFile    = "kubelet.log"
)

// Settings are the same for every start.
type Settings struct {
	Path      string   // of the kubelet's executable
	Arguments []string // its production command line, without the binary; never edited
	RunDir    string
	Journal   string        // journald's socket for log streams; empty: the log goes through a file
	Output    *os.File      // where the log goes, if not to the journal
	Watchdog  time.Duration // of the unit that it runs in; 0 = none
	Logger    *zap.Logger

	// AskRuntime says why the container runtime at this endpoint does not answer; nil = only its socket is looked at.
	AskRuntime func(ctx context.Context, endpoint string) error

	StartTimeout time.Duration // a kubelet that is not healthy by then is asked less often
	LockFile     string        // that kubelets with a configuration of ours hold while they live; empty: they are started without
}

// Launcher starts kubelets, one after the other.
type Launcher struct {
	Settings
	backoff *backoffSteps
	notify  *notifySocket
	secret  string // that the kubelets of this launcher have; empty before the first
	output  *output
	tasks   sync.WaitGroup

	countKills func() int // of our own cgroup, for lack of memory; -1 = unknown

	cannotLock atomic.Bool // a kubelet has said so
	lock       lockLooker

	collecting sync.Mutex // its holder may collect the kubelet's exit status
}

// Spec is what one kubelet is started with.
type Spec struct {
	File string // appended as --config; empty: the command line as it is
	Lock bool   // the lock file is appended too, where it can be
}

// NewLauncher makes no file and starts nothing yet.
func NewLauncher(s Settings) *Launcher {
	return &Launcher{Settings: s, backoff: newBackoff(), output: newOutput(filepath.Join(s.RunDir, outputFile), s.Output),
		countKills: func() int { return outOfMemoryKills(ownCgroupFile, cgroupFolder) }}
}

// Close ends what hears the kubelets. It is for after the last has been attended.
func (l *Launcher) Close() {
	if l.notify != nil {
		_ = l.notify.connection.Close()
	}
	l.tasks.Wait()
}

// Start starts a kubelet, which Attend has to be called for.
func (l *Launcher) Start(s Spec) (*Child, error) {
	return l.start(s, s.Lock && s.File != "" && l.lockable())
}

func (l *Launcher) start(s Spec, locked bool) (*Child, error) {
	arguments, local := l.Arguments, commandline.Parse(l.Arguments).Config
	file := local
	if s.File != "" {
		file = s.File
		arguments = append(append([]string(nil), l.Arguments...), "--config="+file)
	}
	if locked {
		arguments = append(arguments, lockFlag+l.LockFile)
	}
	child := &Child{launcher: l, file: file, given: s.File, locked: locked, done: make(chan struct{}), endpoints: kubeletconfig.EffectiveEndpoints(l.Arguments, file),
		killsBefore: l.countKills()}
	child.command = exec.Command(l.Path, arguments...)
	child.command.Env = l.environment()
	child.notify = l.notify
	attached := l.attach(child)
	child.logFrom = l.output.began.Load()
	defer attached()
	if err := l.begin(child.command); err != nil {
		return nil, fmt.Errorf("starting the kubelet: %w", err)
	}
	child.started = time.Now()
	child.begun = child.started
	return child, nil
}

// attach gives the kubelet somewhere to write: a journal stream of its own, else the file, else our own output. done is for after its
// start.
func (l *Launcher) attach(child *Child) (done func()) {
	if l.Journal != "" {
		done, err := attachJournal(l.Journal, child.command)
		if err == nil {
			child.journaled = true
			return done
		}
		l.Logger.Warn("the kubelet's log goes through a file: journald gives it no stream of its own", zap.Error(err))
	}
	if err := l.output.attach(child.command); err != nil {
		l.Logger.Warn("the kubelet writes to the supervisor's own output, its last words will not be known", zap.Error(err))
		child.command.Stdout, child.command.Stderr = l.Output, l.Output
	}
	return func() {}
}

// environment is the supervisor's own, except what systemd meant for the supervisor. The kubelet gets a notify socket of ours instead.
func (l *Launcher) environment() []string {
	env := Environment(os.Environ())
	secret, err := keepSecret(l.RunDir, l.secret)
	if err != nil {
		l.Logger.Warn("the secret of the run folder cannot be kept: a supervisor that comes after this one knows the kubelet by its user ids", zap.Error(err))
	}
	if secret != "" {
		l.secret, env = secret, append(env, secretVariable+secret)
	}
	if l.notify != nil && !l.notify.reachable() {
		_ = l.notify.connection.Close()
		l.notify = nil
	}
	if l.notify == nil {
		socket, err := listenNotify(filepath.Join(l.RunDir, notifyFile))
		if err != nil {
			l.Logger.Warn("the kubelet gets no notify socket", zap.Error(err))
			return env
		}
		l.hear(socket)
	}
	if interval := l.watchdog(); interval > 0 {
		env = append(env, fmt.Sprintf("WATCHDOG_USEC=%d", interval.Microseconds())) // without WATCHDOG_PID: for any process that reads it
	}
	return append(env, "NOTIFY_SOCKET="+l.notify.path)
}

func (l *Launcher) hear(socket *notifySocket) {
	l.notify = socket
	l.tasks.Go(socket.receive)
}

// begin starts the process, heard by the notify socket from its first word on.
func (l *Launcher) begin(command *exec.Cmd) error {
	if l.notify == nil {
		return command.Start()
	}
	return l.notify.begin(func() (int, error) {
		if err := command.Start(); err != nil {
			return 0, err
		}
		return command.Process.Pid, nil
	})
}
