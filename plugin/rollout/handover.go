package rollout

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// A handover returns the patch that changes which pool or user controls a node.
type handover func(pools []view.Pool, v view.Node, say notes) (map[string]any, error)

// handoverOptions are the flags of the commands that change which pool or user controls nodes.
type handoverOptions struct {
	*cmdutil.Factory
	nodes  view.Selection
	dryRun cmdutil.DryRun
	print  *genericclioptions.PrintFlags

	did string // as it is printed
	how handover
}

// handing completes a command that changes which pool or user controls nodes.
func (o *handoverOptions) handing(command *cobra.Command) *cobra.Command {
	command.Args = cobra.MinimumNArgs(1)
	command.ValidArgsFunction = o.CompleteNodes
	command.RunE = cmdutil.RunE(o)
	o.dryRun.AddFlag(command.Flags())
	o.print = cmdutil.PrintFlags(command, "")
	return command
}

// Complete takes the names of nodes.
func (o *handoverOptions) Complete(_ *cobra.Command, arguments []string) error {
	o.nodes.Names = arguments
	return nil
}

// Validate has nothing to refuse.
func (o *handoverOptions) Validate() error {
	return nil
}

// Run hands the nodes over, one after the other.
func (o *handoverOptions) Run(ctx context.Context) error {
	client, err := o.Connect()
	if err != nil {
		return err
	}
	views, err := o.nodes.Nodes(ctx, client)
	if err != nil {
		return err
	}
	pools, err := o.ListPools(ctx, client)
	if err != nil {
		return err
	}
	return cmdutil.EachNode(ctx, views, 1, func(ctx context.Context, v view.Node) error {
		return o.handOver(ctx, client, v, pools)
	})
}

// handOver patches the exact version of the Node that was read. If the Node has changed, it reads the Node again.
func (o *handoverOptions) handOver(ctx context.Context, client kubernetes.Interface, v view.Node, pools []view.Pool) error {
	did := o.did
	var said []string
	after := v.Node
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		said = nil
		patch, err := o.how(pools, v, func(format string, values ...any) { said = append(said, fmt.Sprintf(format, values...)) })
		if err != nil {
			return err
		}
		metadata := patch["metadata"].(map[string]any)
		if metadata["uid"] = v.UID; v.ResourceVersion != "" {
			metadata["resourceVersion"] = v.ResourceVersion
		}
		after, err = cmdutil.PatchNode(ctx, client, v.Node, patch, o.dryRun)
		if apierrors.IsConflict(err) {
			if now, failed := view.GetNode(ctx, client, v.Name); failed == nil {
				v = now
			}
		}
		return err
	})
	switch {
	case errors.Is(err, errNothingToDo):
		said, did, after = []string{err.Error()}, "unchanged", v.Node
	case err != nil:
		return fmt.Errorf("node %s: %w", v.Name, err)
	}
	for _, words := range said {
		o.Note("%s", words)
	}
	return o.PrintObject(o.print, o.dryRun.Did(did), after)
}
