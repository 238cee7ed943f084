//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	sectionStart = "start"
	execPoll     = time.Millisecond
	deadAddress  = "10.99.0.77" // of the node's network; what is sent there nobody takes, and nobody answers
)

// starts measures the time from the start of the supervisor to that of its kubelet, with an assigned configuration on disk whose
// verdict is kept, unless a row says otherwise.
func (b *bench) starts(ctx context.Context) error {
	kubelet := b.node.kubelet()
	supervisor, _, err := b.running(ctx, "starts", "bench-good", kubelet) // leaves a state folder with a configuration that ran
	if err != nil {
		return err
	}
	if err := b.end(supervisor); err != nil {
		return err
	}
	if err := b.startRow(ctx, "API server up", 30, kubelet, nil); err != nil {
		return err
	}
	dead, err := b.blackHole()
	if err != nil {
		return err
	}
	if err := b.startRow(ctx, "API server black-holed", 30, b.node.kubelet("--kubeconfig="+dead), nil); err != nil {
		return err
	}
	b.cluster.StopAPIServer()
	verdicts := filepath.Join(b.stateDir("starts"), "meta", "preflight")
	err = errors.Join(
		b.startRow(ctx, "API server down", 30, kubelet, nil),
		b.startRow(ctx, "API server down, no verdict kept (so the pre-flight comes first)", 0, kubelet, func() error { return os.RemoveAll(verdicts) }),
		b.coldRow(ctx, kubelet),
		b.cluster.StartAPIServer(ctx))
	return err
}

// blackHole makes an address to which connections are never made and never refused, and gives a kubeconfig with it.
func (b *bench) blackHole() (kubeconfig string, err error) {
	// With a neighbour that need not be asked for, packets leave for the other end of the veth pair, which drops them.
	ip := b.cluster.Command("ip", "neigh", "replace", deadAddress, "lladdr", "02:00:00:00:00:77", "dev", "node", "nud", "permanent")
	if output, err := ip.CombinedOutput(); err != nil {
		return "", fmt.Errorf("making an address that does not answer: %w: %s", err, output)
	}
	content, err := os.ReadFile(b.cluster.KubeletKubeconfig())
	if err != nil {
		return "", err
	}
	kubeconfig = filepath.Join(b.cluster.Folder, "black-hole.kubeconfig")
	return kubeconfig, os.WriteFile(kubeconfig, []byte(strings.ReplaceAll(string(content), "127.0.0.1:6443", deadAddress+":6443")), 0o600)
}

// startRow starts a supervisor for each round, after prepare. budget is in ms, 0 = none; then half of the rounds are enough.
func (b *bench) startRow(ctx context.Context, name string, budget float64, kubelet []string, prepare func() error) error {
	rounds := (b.Rounds + 1) / 2
	row := b.result.row(sectionStart, "supervisor started → kubelet executed, "+name, "ms").against(b.bareRestart)
	if budget > 0 {
		rounds = b.Rounds
		row.within(budget, fmt.Sprintf("%g ms", budget))
	}
	var traces []trace
	for range rounds {
		if prepare != nil {
			if err := prepare(); err != nil {
				return err
			}
		}
		t, err := b.startOnce(ctx, kubelet)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		row.addTime(t.took)
		traces = append(traces, t)
	}
	if budget > 0 {
		b.result.StartTrace = medianTrace(traces).phases()
	}
	return nil
}

func (b *bench) startOnce(ctx context.Context, kubelet []string) (t trace, err error) {
	logged := (&process{Log: b.log("starts")}).LogSize()
	t = trace{began: time.Now(), end: "the process table has the kubelet"}
	supervisor, err := b.supervisorProcess("starts", kubelet, "--stop-timeout=10s")
	if err != nil {
		return t, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(execPoll)
	defer ticker.Stop()
	for kubeletOf(supervisor.PID(), kubelet[0]) == 0 {
		select {
		case <-ticker.C:
		case <-supervisor.Done:
			return t, errors.New("the supervisor ended")
		case <-ctx.Done():
			return t, fmt.Errorf("waiting for the kubelet: %w", context.Cause(ctx))
		}
	}
	t.ended = time.Now()
	t.took = t.ended.Sub(t.began)
	// It is stopped when it has come up: a stop in the middle of a start takes its own time.
	if _, err := b.upAgain(ctx, t.began); err != nil {
		return t, err
	}
	log, err := supervisor.LogFrom(logged)
	t.lines = ownLines(log)
	return t, errors.Join(err, b.end(supervisor))
}

// coldRow measures with nothing of any program in memory, where the machine allows that; it comes last, for all are slower then.
func (b *bench) coldRow(ctx context.Context, kubelet []string) error {
	const dropCaches = "/proc/sys/vm/drop_caches"
	if !b.Cold {
		b.result.Unproved = append(b.result.Unproved, "A cold start: it was not asked for.")
		return nil
	}
	drop := func() error {
		unix.Sync()
		return os.WriteFile(dropCaches, []byte("3"), 0)
	}
	if err := drop(); err != nil {
		b.result.Unproved = append(b.result.Unproved,
			fmt.Sprintf("A cold start (nothing of the supervisor and the kubelet in the page cache): this machine does not allow it (%v).", err))
		return nil
	}
	return b.startRow(ctx, "API server down, cold (page cache dropped)", 0, kubelet, drop)
}
