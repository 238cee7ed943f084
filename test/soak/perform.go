//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
)

// perform does one step, and then its pause. at is the world after it.
func (s *soaker) perform(ctx context.Context, one step, at world) error {
	_, _ = fmt.Fprintf(s.Log, "  %s\n", one)
	s.done = append(s.done, fmt.Sprintf("round %d, %s: %s", s.plan.rounds, time.Now().Format("15:04:05.000"), one))
	s.done = s.done[max(0, len(s.done)-lastSteps):]
	s.figures.count(one)
	if err := s.node.change(ctx, one, at); err != nil {
		return fmt.Errorf("%s: %w", one, err)
	}
	if err := s.approve(ctx, one.approve); err != nil {
		return fmt.Errorf("%s: %w", one, err)
	}
	if err := s.pods.change(ctx, one.pod); err != nil {
		return fmt.Errorf("%s: %w", one, err)
	}
	if err := s.do(ctx, one); err != nil {
		return fmt.Errorf("%s: %w", one, err)
	}
	if one.harm == mended && one.part != disk && one.part != answers && one.part != pages && at.reachable() && !at.broken["containerd"] {
		if err := s.node.insist(ctx, func() error { return s.revived(ctx, at) }); err != nil {
			return fmt.Errorf("%s: %w", one, err)
		}
	}
	select {
	case <-time.After(one.pause):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// revived waits a moment for the cluster to be ready. A part may have ended only now, of its signal or for want of another, and is
// started again when this is asked once more.
func (s *soaker) revived(ctx context.Context, at world) error {
	for _, part := range parts {
		if !isProcess(part) || at.broken[part] {
			continue
		}
		if err := s.cluster.Revive(part); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, reviveAfter)
	defer cancel()
	return s.cluster.Ready(ctx)
}

// do does to processes, network and clock what a step does.
func (s *soaker) do(ctx context.Context, one step) error {
	switch {
	case one.supervisor == "HUP":
		return s.reload()
	case one.supervisor != "":
		return s.service.signal(ctx, one.supervisor)
	case one.kubelet != "":
		s.signalKubelet(one.kubelet)
	case one.part == disk && one.harm == mended:
		return s.disk.thaw()
	case one.part == disk:
		return s.disk.hang()
	case one.part == answers:
		s.gateway.do(one.harm)
	case one.part == pages:
		return s.changeHugePages(ctx, one.harm)
	case one.part == network:
		return s.switchNetwork(one.harm)
	case one.harm == mended:
		if s.harmed[one.part] != frozen {
			s.cluster.End(one.part)
		}
		return s.cluster.Revive(one.part)
	case one.harm != "":
		s.harmed[one.part] = one.harm
		// One that was started before its time may have ended by itself.
		_ = s.cluster.Signal(one.part, systemSignals[signalName(one.harm)])
	case one.jump != 0:
		return s.jump(one.jump)
	}
	return nil
}

// reload sends SIGHUP to a supervisor that says it is there, as the command does: one that has just begun would die of it. It is
// not noted as a signal that ends it.
func (s *soaker) reload() error {
	record, running, _ := supervisor.ReadRecord(s.service.runDir())
	if running && record.Supervisor.PID == s.service.pid() {
		_ = syscall.Kill(record.Supervisor.PID, syscall.SIGHUP)
	}
	return nil
}

// signalKubelet signals whatever kubelet there is; there may be none just now.
func (s *soaker) signalKubelet(what signalName) {
	if what == "CONT" {
		_ = syscall.Kill(s.frozen, syscall.SIGCONT)
		return
	}
	for _, pid := range s.node.processTable().kubelets() {
		_ = syscall.Kill(pid, systemSignals[what])
		if what == "STOP" {
			s.frozen = pid
		}
	}
}

// switchNetwork takes the namespace's links down, or up. All there is in it is cut from all the rest, also the kubelet from its healthz.
func (s *soaker) switchNetwork(h harm) error {
	lines := "link set lo down\nlink set node down\n"
	if h == mended {
		lines = "link set lo up\nlink set node up\nroute replace default dev node\n"
	}
	ip := s.cluster.Command("ip", "-batch", "-")
	ip.Stdin = strings.NewReader(lines)
	if output, err := ip.CombinedOutput(); err != nil {
		return fmt.Errorf("switching the network with ip: %w: %s", err, output)
	}
	return nil
}
