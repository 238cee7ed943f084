//go:build linux

package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
)

// Exit codes, part of the contract. Those of check and status stand with their commands.
const (
	exitOK       = 0
	exitUsage    = 2
	exitInternal = 70
)

// exitError ends the program with a code of its own. Without an error nothing more is said.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e exitError) Unwrap() error { return e.err }

func usage(format string, values ...any) error {
	return exitError{code: exitUsage, err: fmt.Errorf(format, values...)}
}

// isUsage reports whether the error is about the command line.
func isUsage(err error) bool {
	var exit exitError
	return errors.Is(err, supervisor.ErrUsage) || errors.As(err, &exit) && exit.code == exitUsage
}

// Execute runs one command line of the program of that version, and returns its exit code: 2 for an error of the command line, and what the
// command's help lists else. It prints the error to stderr. With run it may not return: a reload, or a start of the kubelet alone, executes
// another program in this process.
func Execute(version string, arguments []string, stdout, stderr io.Writer) int {
	stdout, stderr = bounded.NewWriter(stdout, 0), bounded.NewWriter(stderr, 0) // no text gets to a terminal as it is (rule 28)
	o := runOptions{Options: supervisor.Options{Version: version}}
	root := rootWith(&o)
	root.SetArgs(arguments)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := o.executeOrAlone(arguments, root.Execute)
	var exit exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		if exit.err != nil {
			complain(stderr, exit.err)
		}
		return exit.code
	case isUsage(err):
		complain(stderr, err)
		return exitUsage
	}
	complain(stderr, err)
	return exitInternal
}

// complain prints why the program ends. That end waits for an output that stalls, but not for long.
func complain(to io.Writer, err error) {
	said := make(chan struct{})
	go func() {
		defer close(said)
		_, _ = fmt.Fprintln(to, "kubelet-supervisor:", err)
	}()
	select {
	case <-said:
	case <-time.After(logPatience):
	}
}

func newRoot() *cobra.Command { return rootWith(new(runOptions)) }

func rootWith(run *runOptions) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubelet-supervisor",
		Short: "The parent of the kubelet: its configuration, changed through the Kubernetes API, safely",
		Long: `kubelet-supervisor runs the kubelet as its child and changes its configuration as the Node says:

  kubectl annotate node n1 kubelet-supervisor.io/config-source=kube-system/my-config/kubelet

A configuration is proved with the node's own kubelet first, put on trial, and rolled back automatically when it fails.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(command *cobra.Command, arguments []string) error {
			if len(arguments) > 0 {
				return usage("unknown command %q, see kubelet-supervisor --help", arguments[0])
			}
			return nil
		},
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return usage("%w, see %s --help", err, command.CommandPath())
	})
	root.Version = run.Version
	root.SetVersionTemplate(versionText(run.Version))
	root.AddCommand(run.command(), newStatus(), newCheck(), newExplain(), newReload(), newRetry(), newEnable(), newDisable(),
		newVersion(run.Version), newPackageFiles())
	return root
}

// noArguments refuses words that the command does not take.
func noArguments(command *cobra.Command, arguments []string) error {
	if len(arguments) > 0 {
		return usage("%s takes no arguments, and was given %q", command.CommandPath(), arguments[0])
	}
	return nil
}
