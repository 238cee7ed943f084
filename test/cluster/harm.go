//go:build linux

package cluster

import (
	"context"
	"fmt"
	"syscall"
)

// Signal sends a signal to kube-apiserver, etcd or containerd, as SIGKILL or SIGSTOP, and does not wait for what comes of it. One
// that does not run is an error.
func (c *Cluster) Signal(part string, s syscall.Signal) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	p := c.running[part]
	if p == nil || p.exited() {
		return fmt.Errorf("sending %s to %s: it does not run", s, part)
	}
	return syscall.Kill(p.PID(), s)
}

// End returns when a part has ended that was signalled; one that takes too long over it is killed.
func (c *Cluster) End(part string) { c.stopPart(part) }

// Revive lets a part go on that was stopped by SIGSTOP, and starts one that has ended. It does not wait until it is ready.
func (c *Cluster) Revive(part string) error {
	start := map[string]func() error{apiServer: c.startAPIServer, etcd: c.startEtcd, containerd: c.startContainerd}[part]
	if start == nil {
		return fmt.Errorf("reviving %s: there is no such part", part)
	}
	if c.Signal(part, syscall.SIGCONT) == nil {
		return nil
	}
	return start()
}

// Ready waits until containerd takes connections and the API server is ready.
func (c *Cluster) Ready(ctx context.Context) error {
	if err := c.waitForContainerd(ctx); err != nil {
		return err
	}
	return c.waitForAPIServer(ctx)
}

// ProcessID is that of kube-apiserver, etcd or containerd, for measuring it in /proc. One that does not run is an error.
func (c *Cluster) ProcessID(part string) (int, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	p := c.running[part]
	if p == nil || p.exited() {
		return 0, fmt.Errorf("looking for the process of %s: it does not run", part)
	}
	return p.PID(), nil
}
