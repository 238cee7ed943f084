package supervisor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
)

// What the service manager is told, and when (sd_notify(3)).
const (
	readyWithin     = 30 * time.Second // a kubelet that is not healthy by then does not hold up the boot any longer
	stopSlack       = 10 * time.Second // what a stop takes beside the kubelet's own: the last write and the last report
	managerPatience = time.Second      // for a service manager that takes no messages
	statusLimit     = 300              // bytes
)

// serviceManager tells systemd, where systemd started us, how things are. A goroutine of its own sends, so that a service manager that
// does not listen holds nothing up. Its watchdog is fed only as long as the loop answers.
type serviceManager struct {
	send     func(message string) error
	watchdog time.Duration // of our own unit; 0 = none
	pulse    chan struct{} // the loop takes from it
	logger   *zap.Logger
	woken    chan struct{}

	over chan struct{} // closed at the end of run

	mu      sync.Mutex
	waiting []managerMessage // to be sent, oldest first
	status  string
	ready   bool
}

type managerMessage struct {
	text string
	sent chan struct{} // not nil: to be closed then
}

func newServiceManager(logger *zap.Logger) *serviceManager {
	m := &serviceManager{pulse: make(chan struct{}), logger: logger, woken: make(chan struct{}, 1), over: make(chan struct{})}
	m.send = func(message string) error {
		_, err := daemon.SdNotify(false, message)
		return err
	}
	var err error
	if m.watchdog, err = daemon.SdWatchdogEnabled(false); err != nil {
		logger.Warn("the service manager's watchdog is not fed", zap.Error(err))
	}
	return m
}

// run sends what is said until ctx ends, and what is left then.
func (m *serviceManager) run(ctx context.Context) {
	defer close(m.over)
	late := time.NewTimer(readyWithin)
	defer late.Stop()
	for {
		m.sendWaiting()
		select {
		case <-m.woken:
		case <-late.C:
			m.sayReady()
		case <-ctx.Done():
			m.sendWaiting()
			return
		}
	}
}

func (m *serviceManager) sendWaiting() {
	m.mu.Lock()
	waiting := m.waiting
	m.waiting = nil
	m.mu.Unlock()
	for _, message := range waiting {
		if message.sent != nil {
			close(message.sent)
		} else if err := m.send(message.text); err != nil {
			m.logger.Debug("the service manager cannot be told", zap.Error(err))
		}
	}
}

// feed feeds the watchdog as long as the loop takes the pulse, until ctx ends.
func (m *serviceManager) feed(ctx context.Context) {
	if m.watchdog == 0 {
		return
	}
	for {
		select {
		case m.pulse <- struct{}{}:
			m.say(daemon.SdNotifyWatchdog)
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(m.watchdog / 3):
		case <-ctx.Done():
			return
		}
	}
}

// say queues one message. A message that waits already is not queued twice, so that the queue stays short whatever happens.
func (m *serviceManager) say(lines ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue(managerMessage{text: strings.Join(lines, "\n")})
}

func (m *serviceManager) queue(message managerMessage) {
	if slices.Contains(m.waiting, message) {
		return
	}
	m.waiting = append(m.waiting, message)
	select {
	case m.woken <- struct{}{}:
	default:
	}
}

// starting asks for as much time as a start may take before it is ready.
func (m *serviceManager) starting(stopTimeout time.Duration) {
	m.say(extend(2*stopTimeout + readyWithin + stopSlack)) // a kubelet that was left behind is stopped first
}

func (m *serviceManager) stopping(stopTimeout time.Duration) {
	m.say(daemon.SdNotifyStopping, extend(stopTimeout+stopSlack))
}

// isReady notes that the program before this one has said so, or does when its reload ends.
func (m *serviceManager) isReady() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ready = true
}

// reloading has to be followed by reloaded.
func (m *serviceManager) reloading() {
	m.say(daemon.SdNotifyReloading, strings.TrimSpace(daemon.SdNotifyMonotonicUsec()))
}

func (m *serviceManager) reloaded() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ready = true
	m.queue(managerMessage{text: daemon.SdNotifyReady})
}

// sayReady says so once.
func (m *serviceManager) sayReady() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ready {
		m.ready = true
		m.queue(managerMessage{text: daemon.SdNotifyReady})
	}
}

// show makes the words what `systemctl status` shows.
func (m *serviceManager) show(words string) {
	words = decide.Shorten(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, words), statusLimit)
	m.mu.Lock()
	defer m.mu.Unlock()
	if words == m.status {
		return
	}
	m.waiting = slices.DeleteFunc(m.waiting, func(message managerMessage) bool { return strings.HasPrefix(message.text, "STATUS=") })
	m.status = words
	m.queue(managerMessage{text: "STATUS=" + words})
}

// flush waits until what was said is sent, or sending is over, but not for long.
func (m *serviceManager) flush() {
	sent := make(chan struct{})
	m.mu.Lock()
	m.queue(managerMessage{sent: sent})
	m.mu.Unlock()
	select {
	case <-sent:
	case <-m.over:
	case <-time.After(managerPatience):
	}
}

func extend(time time.Duration) string {
	return fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", time.Microseconds())
}

// tellManager says what runs, in the words of the Node's condition.
func (l *loop) tellManager() {
	l.manager.show(l.record.Condition.Reason + ": " + l.record.Condition.Message)
	if l.state.Child.Alive && l.state.Child.Healthy {
		l.manager.sayReady()
	}
}
