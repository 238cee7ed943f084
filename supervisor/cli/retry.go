//go:build linux

package cli

import (
	"fmt"
	"io"
	"syscall"

	"github.com/spf13/cobra"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
)

func newRetry() *cobra.Command {
	return newAsk("retry", "Make the supervisor try a refused or rejected configuration again", syscall.SIGUSR1, askTimeout,
		func(before, now supervisor.Record) bool { return now.Generation > before.Generation },
		func(out io.Writer, now supervisor.Record) error {
			words := "the assigned configuration is tried again"
			if now.Condition.Reason == nodev1.ReasonLocal {
				words = "nothing is assigned: there is nothing to try again"
			}
			_, err := fmt.Fprintln(out, words)
			return err
		})
}
