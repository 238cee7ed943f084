package main

import (
	"syscall"

	"github.com/spf13/cobra"
)

func newReload() *cobra.Command {
	return newAsk("reload", "Make the supervisor look at the local files, the kubeconfig and the Node again",
		"looked at again", syscall.SIGHUP)
}
