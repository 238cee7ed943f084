//go:build linux

package cluster

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// A Program runs in the node's network namespace, in a process group of its own, until it ends or is stopped.
type Program struct {
	Log  string        // its output, appended
	Done chan struct{} // closed when it has been waited for; Err is set then
	Err  error

	command *exec.Cmd
}

// Launch starts a program. Its process is the program's own. The caller stops it.
func (c *Cluster) Launch(log string, words ...string) (*Program, error) {
	return Start(c.Command(words[0], words[1:]...), log)
}

// Start starts a command, its output appended to a log.
func Start(command *exec.Cmd, log string) (*Program, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p := &Program{Log: log, Done: make(chan struct{}), command: command}
	if command.Stdout == nil {
		command.Stdout = file
	}
	command.Stderr = file
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting a program (log: %s): %w", log, err)
	}
	go func() { // ends with the process, which Stop waits for
		p.Err = command.Wait()
		close(p.Done)
	}()
	return p, nil
}

// PID is the program's process.
func (p *Program) PID() int { return p.command.Process.Pid }

// Signal sends a signal; one that comes too late is none.
func (p *Program) Signal(signal syscall.Signal) { _ = syscall.Kill(p.PID(), signal) }

// Stop returns when the program has ended: asked by SIGTERM, killed when it takes too long over it, which is an error.
func (p *Program) Stop(within time.Duration) error {
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.Done:
		return nil
	case <-time.After(within):
	}
	p.Signal(syscall.SIGKILL)
	<-p.Done
	return fmt.Errorf("%s did not end within %s of SIGTERM (log: %s)", p.command.Path, within, p.Log)
}

// LogSize is 0 for a log that is not there yet.
func (p *Program) LogSize() int64 {
	info, err := os.Stat(p.Log)
	if err != nil {
		return 0
	}
	return info.Size()
}

// LogFrom gives what was written after the first bytes of the log.
func (p *Program) LogFrom(offset int64) (string, error) {
	file, err := os.Open(p.Log)
	if err != nil {
		return "", err
	}
	defer file.Close()
	content, err := io.ReadAll(io.NewSectionReader(file, offset, 1<<40))
	return string(content), err
}

// LastWords are for the error that they explain.
func (p *Program) LastWords() string {
	text, _ := p.LogFrom(max(0, p.LogSize()-4000))
	return fmt.Sprintf("\nthe end of %s:\n%s", p.Log, strings.TrimSpace(text))
}
