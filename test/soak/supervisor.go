//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	restartAfter = 100 * time.Millisecond // systemd's RestartSec of the shipped unit
	stopPatience = time.Minute
)

// A service is what systemd would be: it starts a supervisor, and the next when that has ended.
type service struct {
	cluster *cluster.Cluster
	binary  string
	folder  string // disk/, run/, log
	gateway string // the kubeconfig of what is between the supervisor and the API server
	log     *supervisorLog

	mutex    sync.Mutex // guards what follows
	process  *os.Process
	signals  []signalName // sent to it, those alone that end it
	frozen   bool         // by SIGSTOP
	lives    int
	stopping bool
	done     chan struct{} // closed when the last has ended; nil before the first
}

func newService(c *cluster.Cluster, binary string) *service {
	folder := filepath.Join(c.Folder, "supervisor")
	return &service{cluster: c, binary: binary, folder: folder, log: &supervisorLog{path: filepath.Join(folder, "log")}}
}

func (s *service) disk() string     { return filepath.Join(s.folder, "disk") } // a file system of its own
func (s *service) stateDir() string { return filepath.Join(s.disk(), "state") }
func (s *service) runDir() string   { return filepath.Join(s.folder, "run") }

// keep runs supervisors until ctx ends or stop is called. An end that nobody asked for is an error, told to fail.
func (s *service) keep(ctx context.Context, fail func(error)) error {
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return err
	}
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		for {
			if err := s.live(); err != nil {
				fail(err)
				return
			}
			select {
			case <-time.After(restartAfter):
			case <-ctx.Done():
				return
			}
			if s.asked() {
				return
			}
		}
	}()
	return nil
}

func (s *service) asked() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.stopping
}

// live runs one supervisor to its end.
func (s *service) live() error {
	arguments := append([]string{"run", "--state-dir=" + s.stateDir(), "--run-dir=" + s.runDir(), "--log-format=text",
		"--trial-period=5s", "--edit-spread=0", "--stop-timeout=10s", "--kubeconfig=" + s.gateway, "--"}, s.cluster.KubeletArguments()...)
	command := s.cluster.Command(s.binary, arguments...)
	log, err := os.OpenFile(s.log.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.mutex.Lock()
	if s.stopping {
		s.mutex.Unlock()
		return nil
	}
	if err := command.Start(); err != nil {
		s.mutex.Unlock()
		return fmt.Errorf("starting the supervisor: %w", err)
	}
	s.process, s.signals, s.frozen = command.Process, nil, false
	s.lives++
	s.mutex.Unlock()

	err = command.Wait()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.process = nil
	return judgeEnd(command.ProcessState, err, s.signals)
}

// judgeEnd: a supervisor ends only when it is asked to, and with the exit code of that.
func judgeEnd(state *os.ProcessState, err error, sent []signalName) error {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	status, _ := state.Sys().(syscall.WaitStatus)
	expected := map[signalName]bool{
		"KILL": status.Signaled() && status.Signal() == syscall.SIGKILL,
		// Before the program has taken the signal over, it ends it.
		"TERM": state.ExitCode() == 0 || status.Signaled() && status.Signal() == syscall.SIGTERM,
		"QUIT": state.ExitCode() == 2 || status.Signaled() && status.Signal() == syscall.SIGQUIT,
	}
	if slices.ContainsFunc(sent, func(s signalName) bool { return expected[s] }) {
		return nil
	}
	return fmt.Errorf("the supervisor ended (%s) though the signals it was sent are %q", state, sent)
}

var systemSignals = map[signalName]syscall.Signal{
	"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM, "QUIT": syscall.SIGQUIT, "HUP": syscall.SIGHUP, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT,
}

// signal sends a signal to the supervisor, once one runs. It does not wait for what comes of it.
func (s *service) signal(ctx context.Context, what signalName) error {
	for {
		s.mutex.Lock()
		if s.process != nil {
			defer s.mutex.Unlock()
			if what == "STOP" || what == "CONT" {
				s.frozen = what == "STOP"
			} else {
				s.signals = append(s.signals, what)
			}
			return s.process.Signal(systemSignals[what])
		}
		s.mutex.Unlock()
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// rested waits until no supervisor runs any more that was sent a signal to end.
func (s *service) rested(ctx context.Context) error {
	return await(ctx, stopPatience, "the supervisor ends that was asked to", func() error {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if s.process != nil && len(s.signals) > 0 {
			return fmt.Errorf("it was sent %q and runs", s.signals)
		}
		return nil
	})
}

// pid is that of the supervisor that runs, 0 when none does.
func (s *service) pid() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.process == nil {
		return 0
	}
	return s.process.Pid
}

// able: one runs that is neither frozen nor asked to end.
func (s *service) able() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.process != nil && !s.frozen && len(s.signals) == 0
}

// life counts the supervisors until now.
func (s *service) life() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.lives
}

// stop asks the supervisor to end, and waits until it has.
func (s *service) stop() error {
	if s.done == nil {
		return nil
	}
	s.mutex.Lock()
	s.stopping = true
	if s.process != nil {
		s.signals = append(s.signals, "TERM")
		_ = s.process.Signal(syscall.SIGTERM)
		_ = s.process.Signal(syscall.SIGCONT)
	}
	s.mutex.Unlock()
	select {
	case <-s.done:
		return nil
	case <-time.After(stopPatience):
	}
	s.mutex.Lock()
	if s.process != nil {
		_ = s.process.Kill()
	}
	s.mutex.Unlock()
	<-s.done
	return fmt.Errorf("the supervisor did not end within %s of SIGTERM", stopPatience)
}
