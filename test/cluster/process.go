//go:build linux

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
	command := c.Command(program, arguments...)
	command.Env = append(os.Environ(), "PATH="+c.parts+":"+os.Getenv("PATH")+":/usr/sbin:/sbin")
	p, err := Start(command, c.path("log", name+".log"))
	if err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	c.running[name] = p
	return nil
}

// stopPart stops a part with the grace it needs to leave its data in order; nil when it does not run.
func (c *Cluster) stopPart(name string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if p := c.running[name]; p != nil {
		p.end(stopGrace)
		delete(c.running, name)
	}
}

// end returns when the process is gone: asked by SIGTERM, and killed with its group after the grace.
func (p *Program) end(grace time.Duration) {
	if grace > 0 {
		_ = p.Stop(grace)
	}
	_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
	<-p.Done
}

func (p *Program) exited() bool {
	select {
	case <-p.Done:
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
		case <-p.Done:
			return fmt.Errorf("waiting for %s: it exited (%w), its last words: %s", name, errors.Join(p.Err, err), lastLine(p.Log))
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s (log: %s): %w", name, p.Log, errors.Join(ctx.Err(), err))
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
