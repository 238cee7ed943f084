package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	startEvery = 5 * time.Millisecond // from the start of one supervisor to the next
	stopWithin = 3 * time.Minute      // all of them, on a machine that has other things to do
)

// supervisors are those of all nodes, at work.
type supervisors interface {
	// footprint is the mean of all.
	footprint() (Footprint, error)
	// stop returns when all have ended, as SIGTERM ends them.
	stop() error
}

// startSupervisors starts one for every node, in the cluster's network namespace.
func startSupervisors(ctx context.Context, c *cluster.Cluster, o Options, nodes []node, spread time.Duration) (supervisors, error) {
	if !o.Processes {
		return startHost(c, o, nodes, spread)
	}
	p := &processes{}
	for _, n := range nodes {
		if err := p.start(c, o, n, spread); err != nil {
			return nil, errors.Join(fmt.Errorf("starting the supervisor of node %s: %w", n.Name, err), p.stop())
		}
		pause(ctx, startEvery)
	}
	return p, nil
}

// processes are supervisors that are processes of the shipped program.
type processes struct{ running []*exec.Cmd }

func (p *processes) start(c *cluster.Cluster, o Options, n node, spread time.Duration) error {
	log, err := os.OpenFile(n.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	words := []string{"run", "--state-dir=" + n.path("state"), "--run-dir=" + n.path("run"), "--edit-spread=" + spread.String(),
		"--trial-period=" + o.Trial.String(), "--log-format=json", "--", o.FakeKubelet}
	command := c.Command(o.Binary, append(words, n.kubelet()...)...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return err
	}
	p.running = append(p.running, command)
	return nil
}

func (p *processes) footprint() (mean Footprint, err error) {
	count := float64(len(p.running))
	for _, command := range p.running {
		resident, anonymous, err := memoryOf(command.Process.Pid)
		if err != nil {
			return mean, err
		}
		files, err := filesOf(command.Process.Pid)
		if err != nil {
			return mean, err
		}
		mean.Resident += resident / count
		mean.Anonymous += anonymous / count
		mean.Files += float64(files) / count
	}
	return mean, nil
}

func (p *processes) stop() (err error) {
	for _, command := range p.running {
		_ = command.Process.Signal(syscall.SIGTERM)
	}
	deadline := time.AfterFunc(stopWithin, func() {
		for _, command := range p.running {
			_ = command.Process.Kill()
		}
	})
	defer deadline.Stop()
	for _, command := range p.running {
		if end := command.Wait(); end != nil {
			err = errors.Join(err, fmt.Errorf("a supervisor ended with: %w", end))
		}
	}
	p.running = nil
	return err
}
