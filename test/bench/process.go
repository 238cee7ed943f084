package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	pollInterval = 5 * time.Millisecond
	patience     = 2 * time.Minute // for what takes a second on an idle machine
	stopPatience = time.Minute
)

// A process is a supervisor or a kubelet that runs in the node.
type process struct {
	command *exec.Cmd
	log     string
	done    chan struct{} // closed when it has been waited for
}

func (b *bench) log(name string) string { return filepath.Join(b.cluster.Folder, "log", name+".log") }

// start starts a program in the node's network namespace, its output appended to log/NAME.log.
func (b *bench) start(name string, words []string) (*process, error) {
	p := &process{log: b.log(name), done: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.command = b.cluster.Command(words[0], words[1:]...)
	p.command.Stdout, p.command.Stderr = log, log
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() { // ends with the process, which stop waits for
		_ = p.command.Wait()
		close(p.done)
	}()
	return p, nil
}

func (p *process) pid() int { return p.command.Process.Pid }

// stop returns when the process has ended: asked by SIGTERM, killed when it takes too long over it, which is an error.
func (p *process) stop() error {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return nil
	case <-time.After(stopPatience):
	}
	_ = p.command.Process.Kill()
	<-p.done
	return fmt.Errorf("%s did not end within %s of SIGTERM (log: %s)", p.command.Path, stopPatience, p.log)
}

// logFrom gives what the process wrote after the first bytes of its log.
func (p *process) logFrom(offset int64) (string, error) {
	file, err := os.Open(p.log)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() <= offset {
		return "", err
	}
	content := make([]byte, info.Size()-offset)
	n, err := file.ReadAt(content, offset)
	return string(content[:n]), err
}

func (p *process) logSize() int64 { return sizeOf(p.log) }

// lastWords are for the error that they explain.
func (p *process) lastWords() string {
	text, _ := p.logFrom(max(0, p.logSize()-4000))
	return fmt.Sprintf("\nthe end of %s:\n%s", p.log, text)
}

// sizeOf is 0 for a file that is not there yet.
func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// kubeletOf gives the pid of the kubelet that a supervisor runs, from the process table; 0 when there is none. A pre-flight is told
// by its flags, and a fork that is not the kubelet yet by its program.
func kubeletOf(supervisor int, program string) int {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", supervisor))
	for _, file := range files {
		children, _ := os.ReadFile(file) // a thread may have ended, and so may a child
		for _, child := range strings.Fields(string(children)) {
			words, _ := os.ReadFile("/proc/" + child + "/cmdline")
			if strings.HasPrefix(string(words), program+"\x00") && !strings.Contains(string(words), "--exit-on-lock-contention") {
				pid, _ := strconv.Atoi(child)
				return pid
			}
		}
	}
	return 0
}

// await polls until seen returns nil; its error says what is there instead.
func await(ctx context.Context, what string, seen func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := seen()
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, errors.Join(context.Cause(ctx), err))
		}
	}
}

// settled waits, so that what was just done has no part in what is measured next.
func settled(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
