//go:build linux

package cli

import (
	"context"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
)

const (
	askTimeout  = 30 * time.Second
	askInterval = 50 * time.Millisecond
)

// answered reports whether the supervisor has answered what was asked when its record was before.
type answered func(before, now supervisor.Record) bool

// newAsk is a command that asks something of the running supervisor by a signal and waits until it has answered. The record then is for
// the caller.
func newAsk(use, short string, signal syscall.Signal, wait time.Duration,
	is answered, then func(out io.Writer, now supervisor.Record) error) *cobra.Command {
	var runDir string
	command := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := checkRunDir(runDir); err != nil {
				return err
			}
			record, running, err := supervisor.ReadRecord(runDir)
			if err != nil {
				return notRunning(runDir, err)
			}
			switch {
			case !running:
				return notRunning(runDir, fmt.Errorf("the supervisor with pid %d is gone", record.Supervisor.PID))
			case record.Alone != "": // the signal would be for the kubelet, which it would end
				return notRunning(runDir, fmt.Errorf("the kubelet runs without the supervisor until its unit is restarted: %s", record.Alone))
			}
			now, err := ask(command.Context(), runDir, record, signal, wait, is)
			if err != nil {
				return err
			}
			return then(command.OutOrStdout(), now)
		},
	}
	runDirFlag(command.Flags(), &runDir)
	return command
}

// ask signals and waits for the answer. A supervisor that took over from another since then may not have heard the signal: it is asked
// again.
func ask(ctx context.Context, runDir string, before supervisor.Record, signal syscall.Signal, wait time.Duration, is answered,
) (supervisor.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for asked := before; ; {
		if err := syscall.Kill(before.Supervisor.PID, signal); err != nil {
			return before, fmt.Errorf("signalling the supervisor with pid %d: %w", before.Supervisor.PID, err)
		}
		now, err := awaitRecord(ctx, runDir, func(now supervisor.Record) bool { return is(before, now) || now.Reloads > asked.Reloads })
		if err != nil || is(before, now) {
			return now, err
		}
		asked = now
	}
}

func awaitRecord(ctx context.Context, runDir string, is func(now supervisor.Record) bool) (supervisor.Record, error) {
	for {
		record, running, err := supervisor.ReadRecord(runDir)
		switch {
		case err != nil:
			return record, err
		case !running:
			return record, fmt.Errorf("the supervisor with pid %d ended before it answered", record.Supervisor.PID)
		case is(record):
			return record, nil
		}
		select {
		case <-time.After(askInterval):
		case <-ctx.Done():
			return record, fmt.Errorf("the supervisor with pid %d did not answer in time", record.Supervisor.PID)
		}
	}
}
