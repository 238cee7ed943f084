package main

import (
	"syscall"

	"github.com/spf13/cobra"
)

func newRetry() *cobra.Command {
	return newAsk("retry", "Make the supervisor try a refused or rejected configuration again",
		"the assigned configuration is tried again", syscall.SIGUSR1)
}
