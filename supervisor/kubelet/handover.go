//go:build linux

package kubelet

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// HandedLauncher is what the next start needs to know of the ones before, where another program takes over in the same process.
type HandedLauncher struct {
	Failures int // in a row: how far the backoff is
	Secret   string
	Output   handedOutput
}

// HandedChild is the kubelet that runs.
type HandedChild struct {
	Process
	Endpoints kubeletconfig.Endpoints
	Given     string // its configuration, where that was appended to its command line
	Runtime   string // of the fallback
	// FallbackHealthz is the healthz address of the fallback.
	FallbackHealthz string
	Age             time.Duration // on a clock that does not jump
	Healthy         time.Duration
	Journaled       bool
	Locked          bool
	Notes           kubeletNotes
}

// Hold stops the collecting of exit statuses and the copying of the log, so that a program that takes over finds both
// as they are: if the kubelet ends now, that is for that program. It is false where the exit status of the child has
// been collected and is about to be reported; child may be nil.
func (l *Launcher) Hold(child *Child) (release func(), held bool) {
	l.collecting.Lock()
	if child != nil && child.collected {
		l.collecting.Unlock()
		return nil, false
	}
	resume := l.output.pause()
	return func() {
		resume()
		l.collecting.Unlock()
	}, true
}

// NotifySocket is the descriptor of the kubelet's notify socket; -1 = none.
func (l *Launcher) NotifySocket() int {
	if l.notify == nil {
		return -1
	}
	return l.notify.descriptor()
}

// HandOver is for after Hold.
func (l *Launcher) HandOver() HandedLauncher {
	return HandedLauncher{Failures: l.backoff.failures, Secret: l.secret, Output: l.output.handOver()}
}

// HandOver returns what the program that takes over has to know of the child.
func (c *Child) HandOver() *HandedChild {
	h := &HandedChild{Process: c.Process(), Endpoints: c.endpoints, Given: c.given, Runtime: c.fallbackRuntime, FallbackHealthz: c.fallbackHealthz,
		Age: time.Since(c.started), Healthy: c.healthy.sofar(), Journaled: c.journaled, Locked: c.locked}
	h.Notes = c.notify.notes(c.command.Process.Pid)
	return h
}

// Inherit makes the launcher what the one before was. The notify socket is nil where there was none, and closed in any case.
func (l *Launcher) Inherit(h HandedLauncher, notify *os.File) {
	for range h.Failures {
		l.Delay()
	}
	l.secret = h.Secret
	l.output.inherit(h.Output)
	if socket := inheritNotify(notify, filepath.Join(l.RunDir, notifyFile)); socket != nil {
		l.hear(socket)
	}
}

// InheritChild gives the child that was handed over. It is for after Inherit.
func (l *Launcher) InheritChild(h *HandedChild) (*Child, error) {
	if err := unix.Waitid(unix.P_PID, h.PID, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil {
		return nil, fmt.Errorf("the kubelet with pid %d is not this process's child", h.PID) // one that has ended in between still is
	}
	held, err := os.FindProcess(h.PID)
	if err != nil {
		return nil, fmt.Errorf("the kubelet with pid %d cannot be held: %w", h.PID, err)
	}
	c := &Child{launcher: l, command: &exec.Cmd{Path: h.Executable, Process: held}, endpoints: h.Endpoints, given: h.Given, fallbackRuntime: h.Runtime, fallbackHealthz: h.FallbackHealthz,
		started: time.Now().Add(-h.Age), begun: time.Now().Add(-h.Age), locked: h.Locked, logFrom: l.output.began.Load(), journaled: h.Journaled, done: make(chan struct{}), killsBefore: l.countKills()}
	c.healthy.sum = h.Healthy
	c.notify = l.notify
	c.notify.inherit(h.Notes)
	return c, nil
}

func inheritNotify(file *os.File, path string) *notifySocket {
	if file == nil {
		return nil
	}
	defer func() { _ = file.Close() }() // FileConn makes a copy
	connection, err := net.FileConn(file)
	if err != nil {
		return nil
	}
	socket, is := connection.(*net.UnixConn)
	if !is {
		_ = connection.Close()
		return nil
	}
	return &notifySocket{path: path, connection: socket, kubelets: map[int]*hearing{}}
}
