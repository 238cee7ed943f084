//go:build linux

package kubelet

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/umask"
)

// notifySocket is what the kubelet gets in place of the service manager's: its READY=1 is the only sign of life of a kubelet without
// a healthz port, its WATCHDOG=1 says that it does not hang. Only messages that the kernel says come from a kubelet's own pid count. There
// are two at most: one that runs, and one that waits at its lock.
type notifySocket struct {
	path       string
	connection *net.UnixConn

	mu       sync.Mutex
	kubelets map[int]*hearing // by pid
}

// hearing is what one kubelet has said.
type hearing struct {
	kubeletNotes
	readiness chan struct{} // closed with its READY=1
}

// kubeletNotes is that, for another program.
type kubeletNotes struct {
	PID   int
	Ready bool
	Pings int // WATCHDOG=1
}

func listenNotify(path string) (*notifySocket, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("replacing the notify socket: %w", err)
	}
	var connection *net.UnixConn
	listen := func() (err error) {
		connection, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
		return err
	}
	err := umask.With(0o177, listen)
	if errors.Is(err, umask.ErrUnavailable) { // what others write to it counts for nothing anyway
		err = listen()
	}
	if err != nil {
		return nil, fmt.Errorf("listening on the notify socket: %w", err)
	}
	if err := askForSenders(connection); err != nil {
		return nil, fmt.Errorf("asking for the sender's pid: %w", errors.Join(err, connection.Close()))
	}
	return &notifySocket{path: path, connection: connection, kubelets: map[int]*hearing{}}, nil
}

func askForSenders(connection *net.UnixConn) error {
	raw, err := connection.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1) })
	return errors.Join(err, failed)
}

// reachable reports whether the socket is still there to be written to: RUN_DIR may have been removed.
func (s *notifySocket) reachable() bool {
	_, err := os.Lstat(s.path)
	return !errors.Is(err, os.ErrNotExist)
}

// descriptor is the socket's, for as long as it is open.
func (s *notifySocket) descriptor() (fd int) {
	fd = -1
	if raw, err := s.connection.SyscallConn(); err == nil {
		_ = raw.Control(func(its uintptr) { fd = int(its) })
	}
	return fd
}

// begin starts a kubelet, whose messages count from then on. Nothing is heard until its pid is known.
func (s *notifySocket) begin(start func() (pid int, err error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, err := start()
	if err == nil {
		s.kubelets[pid] = &hearing{kubeletNotes: kubeletNotes{PID: pid}, readiness: make(chan struct{})}
	}
	return err
}

// receive hears messages until the socket is closed.
func (s *notifySocket) receive() {
	message, control := make([]byte, 4<<10), make([]byte, unix.CmsgSpace(unix.SizeofUcred))
	for {
		n, c, _, _, err := s.connection.ReadMsgUnix(message, control)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		if pid, known := sender(control[:c]); known {
			s.hear(pid, string(message[:n]))
		}
	}
}

func (s *notifySocket) hear(pid int, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kubelet := s.kubelets[pid]
	if kubelet == nil {
		return
	}
	for line := range strings.SplitSeq(message, "\n") {
		switch line {
		case "READY=1":
			if !kubelet.Ready {
				close(kubelet.readiness)
			}
			kubelet.Ready = true
		case "WATCHDOG=1":
			kubelet.Pings++
		}
	}
}

// The socket is nil where there is none: nothing was heard then.

func (s *notifySocket) inherit(notes kubeletNotes) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kubelets[notes.PID] = &hearing{kubeletNotes: notes, readiness: make(chan struct{})}
}

// of returns what a kubelet has said. The caller has the lock.
func (s *notifySocket) of(pid int) *hearing {
	if kubelet := s.kubelets[pid]; kubelet != nil {
		return kubelet
	}
	return &hearing{}
}

func (s *notifySocket) notes(pid int) kubeletNotes {
	if s == nil {
		return kubeletNotes{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(pid).kubeletNotes
}

// readiness is closed when the kubelet says READY=1; nil where that cannot be heard.
func (s *notifySocket) readiness(pid int) <-chan struct{} {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(pid).readiness
}

// countAnew forgets the pings of a kubelet that waited: from 1.35 on it pings before it does anything else.
func (s *notifySocket) countAnew(pid int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(pid).Pings = 0
}

// forget is for a kubelet that has ended.
func (s *notifySocket) forget(pid int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kubelets, pid)
}

func sender(control []byte) (pid int, known bool) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0, false
	}
	for i := range messages {
		if len(messages[i].Data) < unix.SizeofUcred { // ParseUnixCredentials looks at the first byte of nothing
			continue
		}
		if credentials, err := unix.ParseUnixCredentials(&messages[i]); err == nil {
			return int(credentials.Pid), true
		}
	}
	return 0, false
}
