package systemd

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"
)

// What is reported to the service manager, and when (sd_notify(3)).
const (
	readyWithin     = 30 * time.Second // a kubelet that is not healthy by then does not hold up the boot any longer
	stopSlack       = 10 * time.Second // what a stop takes in addition to the kubelet's own: the last write and the last report
	managerPatience = time.Second      // for a service manager that takes no messages
)

// Manager tells systemd, where systemd started us, how things are. A goroutine of its own sends, so that a service manager that
// does not listen holds nothing up. Its watchdog is fed only as long as the loop answers.
type Manager struct {
	send     func(message string) error
	Watchdog time.Duration // of our own unit; 0 = none
	Pulse    chan struct{} // the watched loop takes from it
	logger   *zap.Logger
	woken    chan struct{}
	begun    chan struct{}

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

// NewManager reads from the environment which service manager there is, if any.
func NewManager(logger *zap.Logger) *Manager {
	m := &Manager{
		Pulse: make(chan struct{}), logger: logger,
		woken: make(chan struct{}, 1), begun: make(chan struct{}, 1), over: make(chan struct{}),
	}
	m.send = func(message string) error {
		_, err := daemon.SdNotify(false, message)
		return err
	}
	var err error
	if m.Watchdog, err = daemon.SdWatchdogEnabled(false); err != nil {
		logger.Warn("the service manager's watchdog is not fed", zap.Error(err))
	}
	return m
}

// Run sends what is said until ctx ends, and what is left then.
func (m *Manager) Run(ctx context.Context) {
	defer close(m.over)
	late := time.NewTimer(math.MaxInt64)
	defer late.Stop()
	for {
		m.sendWaiting()
		select {
		case <-m.woken:
		case <-m.begun:
			late.Reset(readyWithin)
		case <-late.C:
			m.Ready()
		case <-ctx.Done():
			m.sendWaiting()
			return
		}
	}
}

func (m *Manager) sendWaiting() {
	m.mu.Lock()
	waiting := m.waiting
	m.waiting = nil
	m.mu.Unlock()
	for _, message := range waiting {
		if message.sent != nil {
			close(message.sent)
		} else if err := m.send(message.text); err != nil {
			m.logger.Debug("the service manager cannot be notified", zap.Error(err))
		}
	}
}

// Feed feeds the watchdog as long as the loop takes the pulse, until ctx ends.
func (m *Manager) Feed(ctx context.Context) {
	if m.Watchdog == 0 {
		return
	}
	for {
		select {
		case m.Pulse <- struct{}{}:
			m.tell(daemon.SdNotifyWatchdog)
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(m.Watchdog / 3):
		case <-ctx.Done():
			return
		}
	}
}

// tell queues one message. What the last one says is not queued again, and the watchdog's and the status only once, so that the queue stays
// short whatever happens. The others keep their order: the READY=1 that ends a reload is not that of the start.
func (m *Manager) tell(lines ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue(managerMessage{text: strings.Join(lines, "\n")})
}

func (m *Manager) queue(message managerMessage) {
	if message.text == daemon.SdNotifyWatchdog {
		m.waiting = slices.DeleteFunc(m.waiting, func(waiting managerMessage) bool { return waiting == message })
	}
	if last := len(m.waiting) - 1; last >= 0 && m.waiting[last] == message {
		return
	}
	m.waiting = append(m.waiting, message)
	select {
	case m.woken <- struct{}{}:
	default:
	}
}

// Starting asks for as much time as a start may take before it is ready.
func (m *Manager) Starting(stopTimeout time.Duration) {
	m.tell(extend(2*stopTimeout + readyWithin + stopSlack)) // a kubelet that was left behind is stopped first
}

// Begin is for when the first kubelet is about to be started: READY=1 follows readyWithin later at the latest.
func (m *Manager) Begin() {
	select {
	case m.begun <- struct{}{}:
	default:
	}
}

// Stopping asks for as much time as a stop may take.
func (m *Manager) Stopping(stopTimeout time.Duration) {
	m.tell(daemon.SdNotifyStopping, extend(stopTimeout+stopSlack))
}

// WasReady notes that the program before this one has said so, or does when its reload ends.
func (m *Manager) WasReady() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ready = true
}

// Reloading has to be followed by reloaded.
func (m *Manager) Reloading() {
	m.tell(daemon.SdNotifyReloading, strings.TrimSpace(daemon.SdNotifyMonotonicUsec()))
}

// Reloaded ends what Reloading began.
func (m *Manager) Reloaded() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ready = true
	m.queue(managerMessage{text: daemon.SdNotifyReady})
}

// Ready says so once.
func (m *Manager) Ready() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ready {
		m.ready = true
		m.queue(managerMessage{text: daemon.SdNotifyReady})
	}
}

// Status makes the words what `systemctl status` shows.
func (m *Manager) Status(words string) {
	words = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, words)
	m.mu.Lock()
	defer m.mu.Unlock()
	if words == m.status {
		return
	}
	m.waiting = slices.DeleteFunc(m.waiting, func(message managerMessage) bool { return strings.HasPrefix(message.text, "STATUS=") })
	m.status = words
	m.queue(managerMessage{text: "STATUS=" + words})
}

// Flush waits until what was said is sent, or sending is over, but not for long.
func (m *Manager) Flush() {
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
