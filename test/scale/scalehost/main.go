//go:build linux

// Command scalehost runs the supervisors of many nodes in one process, for package scale.
//
// It is built with the package supervisor of other commits, too (test/scale/before.sh). So it names nothing of this repository but what
// they all have: supervisor.Run, and the fields of its Options.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sys/unix"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
)

const filesPerNode = 16

// An order is what a host runs: the file that is its one argument.
type order struct {
	Kubelet              string
	Namespace            string
	Spread, Trial, Every time.Duration // Every: from the start of one supervisor to the next
	Nodes                []node
}

type node struct {
	Folder    string
	Arguments []string // of its kubelet
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs all supervisors until ctx ends.
func run(ctx context.Context, file string) error {
	debug.SetGCPercent(50) // as the shipped program does
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading what to host: %w", err)
	}
	var o order
	if err := json.Unmarshal(content, &o); err != nil {
		return fmt.Errorf("reading what to host: %w", err)
	}
	if err := allowFiles(len(o.Nodes)); err != nil {
		return err
	}
	var running sync.WaitGroup
	failures := make([]error, len(o.Nodes))
	ticker := time.NewTicker(o.Every)
	defer ticker.Stop()
	for i, n := range o.Nodes {
		running.Go(func() {
			if err := n.supervise(ctx, o); err != nil {
				failures[i] = fmt.Errorf("node %s: %w", filepath.Base(n.Folder), err)
			}
		})
		<-ticker.C
	}
	running.Wait()
	return errors.Join(failures...)
}

func (n node) supervise(ctx context.Context, o order) error {
	log, err := os.OpenFile(filepath.Join(n.Folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	encoder := zap.NewProductionEncoderConfig()
	options := supervisor.Options{
		Kubelet: o.Kubelet, Arguments: n.Arguments, StateDir: filepath.Join(n.Folder, "state"), RunDir: filepath.Join(n.Folder, "run"),
		Namespaces: []string{o.Namespace}, StopTimeout: 30 * time.Second,
		Preflight: "never", // as many at once on one machine would only run into its time limit
		Logger:    zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(encoder), zapcore.AddSync(log), zap.InfoLevel)), Output: log,
	}
	options.TrialPeriod, options.TrialFailures, options.StartTimeout, options.EditSpread = o.Trial, 3, 2*time.Minute, o.Spread
	return supervisor.Run(ctx, options)
}

// allowFiles raises this process's own limit.
func allowFiles(nodes int) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	need := uint64(nodes*filesPerNode + 1000)
	if limit.Cur >= need {
		return nil
	}
	limit.Cur, limit.Max = need, max(need, limit.Max)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("making room for the files of %d nodes (%d): %w", nodes, need, err)
	}
	return nil
}
