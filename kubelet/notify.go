package kubelet

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// notifySocket is what the kubelet gets in place of the service manager's: its READY=1 is the only sign of life of a kubelet without
// a healthz port, its WATCHDOG=1 says that it does not hang. Only messages that the kernel says come from the kubelet's own pid count.
type notifySocket struct {
	path       string
	connection *net.UnixConn

	mu sync.Mutex
	kubeletNotes
	readiness chan struct{} // closed with the kubelet's READY=1
}

// kubeletNotes is what one kubelet has said.
type kubeletNotes struct {
	PID   int
	Ready bool
	Pings int // WATCHDOG=1
}

func listenNotify(path string) (*notifySocket, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("replacing the notify socket: %w", err)
	}
	connection, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("listening on the notify socket: %w", err)
	}
	raw, err := connection.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("listening on the notify socket: %w", err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1) }); err != nil || failed != nil {
		return nil, fmt.Errorf("asking for the sender's pid: %w", errors.Join(err, failed))
	}
	return &notifySocket{path: path, connection: connection}, nil
}

// reachable tells whether the socket is still there to be written to: RUN_DIR may have been removed.
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

// begin starts a kubelet, whose messages alone count from then on. Nothing is heard until its pid is known.
func (s *notifySocket) begin(start func() (pid int, err error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, err := start()
	if err == nil {
		s.kubeletNotes, s.readiness = kubeletNotes{PID: pid}, make(chan struct{})
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
	if pid != s.PID {
		return
	}
	for line := range strings.SplitSeq(message, "\n") {
		switch line {
		case "READY=1":
			if !s.Ready {
				close(s.readiness)
			}
			s.Ready = true
		case "WATCHDOG=1":
			s.Pings++
		}
	}
}

func (s *notifySocket) inherit(notes kubeletNotes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kubeletNotes, s.readiness = notes, make(chan struct{})
}

// readiness is closed when the newest kubelet says READY=1; nil where that cannot be heard.
func (l *Launcher) readiness() <-chan struct{} {
	if l.notify == nil {
		return nil
	}
	l.notify.mu.Lock()
	defer l.notify.mu.Unlock()
	return l.notify.readiness
}

func (s *notifySocket) notes() kubeletNotes {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kubeletNotes
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
