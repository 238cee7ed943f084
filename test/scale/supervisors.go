//go:build linux

package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	startEvery = 5 * time.Millisecond // from the start of one supervisor to the next
	stopWithin = 3 * time.Minute      // all of them, on a machine that has other things to do
)

// supervisors are those of all nodes, running: each a process of the shipped program, or all in one process.
type supervisors []*cluster.Program

// startSupervisors returns when all have been started; the caller stops them.
func startSupervisors(ctx context.Context, c *cluster.Cluster, o Options, nodes []node, spread time.Duration) (s supervisors, err error) {
	if !o.Processes {
		host, err := startHost(c, o, nodes, spread)
		return supervisors{host}, err
	}
	for _, n := range nodes {
		program, err := n.supervise(c, o, spread)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("starting the supervisor of node %s: %w", n.Name, err), s.stop())
		}
		s = append(s, program)
		pause(ctx, startEvery)
	}
	return s, nil
}

// supervise starts one as a process of its own.
func (n node) supervise(c *cluster.Cluster, o Options, spread time.Duration) (*cluster.Program, error) {
	words := []string{o.binary(n), "run", "--state-dir=" + n.path("state"), "--run-dir=" + n.path("run"), "--edit-spread=" + spread.String(),
		"--trial-period=" + o.Trial.String(), "--log-format=json"}
	if o.Metrics != 0 {
		words = append(words, "--metrics-address="+o.metrics(n))
	}
	return c.Launch(n.log(), slices.Concat(words, []string{"--", o.FakeKubelet}, n.kubelet())...)
}

// startHost starts the process with all nodes' supervisors.
func startHost(c *cluster.Cluster, o Options, nodes []node, spread time.Duration) (*cluster.Program, error) {
	var of []map[string]any
	for _, n := range nodes {
		of = append(of, map[string]any{"Folder": n.Folder, "Arguments": n.kubelet()})
	}
	order, err := json.Marshal(map[string]any{"Kubelet": o.FakeKubelet, "Namespace": o.namespace(), "Spread": spread, "Trial": o.Trial,
		"Every": startEvery, "Nodes": of})
	if err != nil {
		return nil, err
	}
	file := c.Folder + "/host.json"
	if err := os.WriteFile(file, order, 0o600); err != nil {
		return nil, err
	}
	return c.Launch(c.Folder+"/log/host.log", o.Host, file)
}

// footprint is the mean of so many nodes.
func (s supervisors) footprint(nodes int) (mean Footprint, err error) {
	for _, program := range s {
		u, err := cluster.UsageOf(program.PID())
		if err != nil {
			return mean, err
		}
		mean.Resident += u.Resident / float64(nodes)
		mean.Anonymous += u.Anonymous / float64(nodes)
		mean.Files += float64(u.Files) / float64(nodes)
	}
	return mean, nil
}

// stop returns when all have ended, as SIGTERM ends them.
func (s supervisors) stop() (err error) {
	for _, program := range s {
		program.Signal(syscall.SIGTERM)
	}
	for _, program := range s {
		// Before a program that was just started has taken the signal over, it ends it.
		if err = errors.Join(err, program.Stop(stopWithin)); program.Err != nil && !endedBy(program.Err, syscall.SIGTERM) {
			err = errors.Join(err, fmt.Errorf("a supervisor ended with: %w%s", program.Err, program.LastWords()))
		}
	}
	return err
}

func endedBy(err error, signal syscall.Signal) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, is := exit.Sys().(syscall.WaitStatus)
	return is && status.Signaled() && status.Signal() == signal
}
