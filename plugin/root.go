package plugin

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Execute runs one command line and gives its exit code: 0, or 1 for everything else, as kubectl has it. The commands that compare,
// diff and status --exit-code, end with 1 for a difference, and with 2 for everything else.
func Execute(ctx context.Context, arguments []string, streams genericiooptions.IOStreams, version string) int {
	return newSession(streams).execute(ctx, arguments, version)
}

func (s *session) execute(ctx context.Context, arguments []string, version string) int {
	s.interrupted = ctx.Done()
	root := newRoot(s, version)
	root.SetArgs(arguments)
	command, err := root.ExecuteContextC(ctx)
	if err = errors.Join(err, s.finish()); err == nil {
		return 0
	}
	if errors.Is(err, errDiffers) { // what differs was printed
		return 1
	}
	_, _ = fmt.Fprintln(s.ErrOut, "error:", err)
	if compares(command) {
		return 2
	}
	return 1
}

// errDiffers ends a command that compares, and found a difference.
var errDiffers = errors.New("there is a difference")

// compares tells whether a command's exit code 1 is an answer.
func compares(command *cobra.Command) bool {
	flag := command.Flags().Lookup(exitCodeFlag)
	return command.Annotations[comparesAnnotation] != "" || flag != nil && flag.Value.String() == "true"
}

const (
	comparesAnnotation = "compares"
	exitCodeFlag       = "exit-code"
)

func newRoot(s *session, version string) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-kubelet",
		Short: "Change the configuration of kubelets, node by node, safely",
		Long: `Change the configuration of kubelets on nodes that run kubelet-supervisor.

  kubectl kubelet push my-config --edit n1
  kubectl kubelet assign n1 --config kubelet-config/my-config-HASH
  kubectl kubelet status

The node proves a configuration with its own kubelet, puts it on trial, and rolls it back by itself when it fails.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl kubelet"},
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version,
		RunE:          func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.ErrOut)
	root.SetVersionTemplate("{{.Version}}\n")
	s.flags.AddFlags(root.PersistentFlags())
	root.AddCommand(
		newConfig(s), newPush(s), newAssign(s), newReset(s), newRetry(s), newRollback(s),
		newStatus(s), newDescribe(s), newDiff(s), newHistory(s), newDoctor(s),
		newInstall(s), newPrune(s), newPackageFiles(),
	)
	return root
}
