package main

import (
	"fmt"
	"io"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
)

func newRetry() *cobra.Command {
	return newAsk("retry", "Make the supervisor try a refused or rejected configuration again", syscall.SIGUSR1, askTimeout,
		func(before, now supervisor.Record) bool { return now.Generation > before.Generation },
		func(out io.Writer, _ supervisor.Record) error {
			_, err := fmt.Fprintln(out, "the assigned configuration is tried again")
			return err
		})
}
