package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// The parts that Up starts; also the names of their logs.
const (
	apiServer  = "kube-apiserver"
	etcd       = "etcd"
	containerd = "containerd"
)

const (
	pollInterval = 50 * time.Millisecond
	readyTimeout = 2 * time.Minute // a busy machine is slow; an idle one takes 4 s
	stopGrace    = 5 * time.Second
)

// A process is a part that runs, in a process group of its own so that a terminal's Ctrl-C does not reach it.
type process struct {
	name string
	id   int
	log  string
	done chan struct{} // closed when it has been waited for; err is set then
	err  error
}

// Command is a command in the cluster's network namespace, with the host's everything else. nsenter becomes the program,
// so the command's process is the program's.
func (c *Cluster) Command(name string, arguments ...string) *exec.Cmd {
	return exec.Command("nsenter", c.enter(name, arguments)...)
}

func (c *Cluster) commandContext(ctx context.Context, name string, arguments ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", c.enter(name, arguments)...)
}

// enter gives nsenter's arguments. `ip netns exec` would not do: it mounts a new /sys, without the cgroups.
func (c *Cluster) enter(name string, arguments []string) []string {
	return append([]string{"--net=" + c.namespace(), "--", name}, arguments...)
}

// start starts a part unless it runs, its output appended to log/NAME.log.
func (c *Cluster) start(name, program string, arguments ...string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.down {
		return fmt.Errorf("starting %s: the cluster is down", name)
	}
	if p := c.running[name]; p != nil && !p.exited() {
		return nil
	}
	log, err := os.OpenFile(c.path("log", name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	defer log.Close()
	command := c.Command(program, arguments...)
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), "PATH="+c.parts+":"+os.Getenv("PATH")+":/usr/sbin:/sbin")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	p := &process{name: name, id: command.Process.Pid, log: log.Name(), done: make(chan struct{})}
	go func() { // ends with the process, which Down waits for
		p.err = command.Wait()
		close(p.done)
	}()
	c.running[name] = p
	return nil
}

// stopPart stops a part with the grace it needs to leave its data in order; nil when it does not run.
func (c *Cluster) stopPart(name string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if p := c.running[name]; p != nil {
		p.stop(stopGrace)
		delete(c.running, name)
	}
}

// stop returns when the process is gone: asked by SIGTERM, killed after the grace.
func (p *process) stop(grace time.Duration) {
	if grace > 0 {
		_ = syscall.Kill(p.id, syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(grace):
		}
	}
	_ = syscall.Kill(-p.id, syscall.SIGKILL)
	<-p.done
}

func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// waitFor polls until ready returns nil, and gives up when ctx ends, after two minutes, or when the part has exited.
func (c *Cluster) waitFor(ctx context.Context, name string, ready func(context.Context) error) error {
	c.mutex.Lock()
	p := c.running[name]
	c.mutex.Unlock()
	if p == nil {
		return fmt.Errorf("waiting for %s: it was stopped", name)
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("waiting for %s: it exited (%w), its last words: %s", name, errors.Join(p.err, err), lastLine(p.log))
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s (log: %s): %w", name, p.log, errors.Join(ctx.Err(), err))
		case <-ticker.C:
		}
	}
}

func lastLine(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return lines[len(lines)-1]
}
