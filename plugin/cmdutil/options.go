package cmdutil

import (
	"context"

	"github.com/spf13/cobra"
)

// Options are what a command line says to one command.
type Options interface {
	// Complete takes the arguments, and fills in what they leave open.
	Complete(command *cobra.Command, arguments []string) error
	// Validate refuses what cannot be meant, before anything is asked of the API server.
	Validate() error
	// Run does what the command is for.
	Run(ctx context.Context) error
}

// RunE has a command complete its options, validate them and run.
func RunE(o Options) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, arguments []string) error {
		if err := o.Complete(command, arguments); err != nil {
			return err
		}
		if err := o.Validate(); err != nil {
			return err
		}
		return o.Run(command.Context())
	}
}
