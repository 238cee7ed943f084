//go:build linux

package cli

import (
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
)

// reloadTimeout has room for the check of the program and for a kubelet that is just being stopped.
const reloadTimeout = time.Minute

func newReload() *cobra.Command {
	command := newAsk("reload", "Make the supervisor become the program that is now installed, and look at its files and the Node again",
		syscall.SIGHUP, reloadTimeout,
		func(before, now supervisor.Record) bool { return now.Reloads > before.Reloads },
		func(out io.Writer, now supervisor.Record) error {
			if now.ReloadFailure != "" {
				return fmt.Errorf("the reload was refused and the running program goes on: %s", now.ReloadFailure)
			}
			_, err := fmt.Fprintf(out, "kubelet-supervisor %s runs, with the same kubelet\n", now.Version)
			return err
		})
	reload := command.RunE
	command.RunE = func(command *cobra.Command, arguments []string) error {
		if err := reload(command, arguments); err != nil {
			return err
		}
		return tellStarts(command)
	}
	// The unit gives the flags of run as they are, so that the run folder is the one that was given there.
	command.FParseErrWhitelist.UnknownFlags = true
	command.Long = command.Short + `.

The kubelet goes on running and does not notice. The command line stays the one that the supervisor was started with: another one, as of
a changed unit, takes a restart. Of the flags of run, --run-dir is read and the others are ignored. The command waits for the answer. Exit
codes: 0 done, 1 no supervisor runs, 70 refused, or no answer.`
	return command
}
