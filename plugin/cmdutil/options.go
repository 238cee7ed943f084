package cmdutil

import (
	"context"

	"github.com/spf13/cobra"
)

// Options has the flags and arguments of one command.
type Options interface {
	// Complete takes the arguments and fills in defaults.
	Complete(command *cobra.Command, arguments []string) error
	// Validate returns an error for invalid combinations, before any request to the API server.
	Validate() error
	// Run executes the command.
	Run(ctx context.Context) error
}

// RunE returns a cobra function that completes, validates and runs options.
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
