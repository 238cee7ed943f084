package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
)

const (
	askTimeout  = 30 * time.Second
	askInterval = 50 * time.Millisecond
)

// newAsk is a command that asks something of the running supervisor by a signal and waits until it was heard.
func newAsk(use, short, heard string, signal syscall.Signal) *cobra.Command {
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
			if !running {
				return notRunning(runDir, fmt.Errorf("the supervisor with pid %d is gone", record.Supervisor.PID))
			}
			if err := syscall.Kill(record.Supervisor.PID, signal); err != nil {
				return fmt.Errorf("signalling the supervisor with pid %d: %w", record.Supervisor.PID, err)
			}
			if err := awaitGeneration(command.Context(), runDir, record.Generation); err != nil {
				return err
			}
			_, err = fmt.Fprintln(command.OutOrStdout(), heard)
			return err
		},
	}
	runDirFlag(command.Flags(), &runDir)
	return command
}

func awaitGeneration(ctx context.Context, runDir string, before int) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for {
		record, running, err := supervisor.ReadRecord(runDir)
		switch {
		case err != nil:
			return err
		case !running:
			return fmt.Errorf("the supervisor with pid %d ended meanwhile", record.Supervisor.PID)
		case record.Generation > before:
			return nil
		}
		select {
		case <-time.After(askInterval):
		case <-ctx.Done():
			return fmt.Errorf("the supervisor with pid %d did not answer within %s", record.Supervisor.PID, askTimeout)
		}
	}
}
