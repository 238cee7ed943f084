package plugin

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Execute runs one command line and gives its exit code: 0, or 1 for everything else, as kubectl has it.
func Execute(ctx context.Context, arguments []string, streams genericiooptions.IOStreams, version string) int {
	root := newRoot(newSession(streams), version)
	root.SetArgs(arguments)
	if err := root.ExecuteContext(ctx); err != nil {
		_, _ = fmt.Fprintln(streams.ErrOut, "error:", err)
		return 1
	}
	return 0
}

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
		Args:          cobra.NoArgs,
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
