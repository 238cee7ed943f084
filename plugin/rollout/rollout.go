package rollout

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// NewCommand returns "kubectl kubelet rollout" with its subcommands.
func NewCommand(f *cmdutil.Factory) *cobra.Command {
	command := &cobra.Command{
		Use:   "rollout COMMAND",
		Short: "Follow and steer how a pool's configuration reaches its nodes",
		Long: `Follow and steer how a KubeletPool's configuration reaches its nodes, as kubectl rollout does for a Deployment and its pods.

None of these commands restarts anything itself: the controller does what the pool then says, by waves and within
maxUnavailable. Each of them can be done with kubectl patch kpool, too.`,
		Example: `  kubectl kubelet rollout status workers
  kubectl kubelet rollout undo workers`,
		RunE: func(command *cobra.Command, arguments []string) error {
			if len(arguments) > 0 {
				return fmt.Errorf("unknown command %q for %q; see %s --help", arguments[0], command.CommandPath(), command.CommandPath())
			}
			return command.Help()
		},
	}
	command.AddCommand(newStatus(f), newHistory(f), newPause(f), newResume(f), newUndo(f), newUnpin(f),
		newRetry(f), newAdopt(f), newRelease(f))
	return command
}

// A pool is a KubeletPool as it was read, with the methods of the rollout commands.
type pool struct{ view.Pool }

// openPool connects, and reads a pool.
func openPool(ctx context.Context, f *cmdutil.Factory, name string) (client kubernetes.Interface, pools dynamic.ResourceInterface, p pool, err error) {
	if client, err = f.Connect(); err != nil {
		return nil, nil, p, err
	}
	if pools, err = f.PoolClient(); err != nil {
		return nil, nil, p, err
	}
	p.Pool, err = view.GetPool(ctx, pools, name)
	return client, pools, p, err
}
