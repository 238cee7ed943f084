package plugin

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// retryOptions are the flags of retry.
type retryOptions struct {
	*cmdutil.Factory
	changeOptions
}

func newRetry(f *cmdutil.Factory) *cobra.Command {
	o := &retryOptions{Factory: f}
	command := &cobra.Command{
		Use:   "retry (NODE... | -l SELECTOR)",
		Short: "Ask nodes to try again what they rejected",
		Long: `Ask nodes to try their assigned configuration again, after a rejection that was the node's fault and not the configuration's. The
rejection is forgotten, and its trial begins again, which restarts the kubelet.`,
		Example:           "  kubectl kubelet retry n1",
		ValidArgsFunction: f.CompleteNodes,
		RunE:              cmdutil.RunE(o),
	}
	o.addFlags(command)
	return command
}

// Run asks, and makes the nodes try again.
func (o *retryOptions) Run(ctx context.Context) error {
	client, err := o.Connect()
	if err != nil {
		return err
	}
	views, err := o.chosen.Nodes(ctx, client)
	if err != nil {
		return err
	}
	if !o.yes && o.dryRun == cmdutil.DryRunNone {
		for _, v := range views {
			o.Note("%s: tries %s again, and its kubelet restarts for that", v.Name, cmp.Or(bounded.Line(v.Says.Assignment), nodev1.Local))
		}
		if err := o.Confirm("Let %s try again?", view.CountNodes(views)); err != nil {
			return err
		}
	}
	return cmdutil.EachNode(ctx, views, o.parallel, func(ctx context.Context, v view.Node) error {
		return retryNode(ctx, o.Factory, client, v, o.changeOptions)
	})
}

func retryNode(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, v view.Node, o changeOptions) error {
	wanted, ok := v.Current()
	switch {
	case !ok:
		return fmt.Errorf("node %s: the assignment %q is malformed, and no retry fixes that; assign again", v.Name, v.Says.Assignment)
	case wanted.IsLocal():
		return fmt.Errorf("node %s: nothing is assigned, so there is nothing to try again", v.Name)
	}
	retry := f.Now().UTC().Format(time.RFC3339Nano)
	g := waitCondition{wanted: wanted, good: o.wait.until == "good"}
	if o.wait.wait && o.dryRun == cmdutil.DryRunNone {
		configMap, _, err := view.GetConfigMap(ctx, client, wanted)
		if err != nil {
			return fmt.Errorf("node %s: %w", v.Name, err)
		}
		g = waitConditionOf(wanted, configMap, g.good)
	}
	g.text, g.retry = v.Says.Assignment, retry
	patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{nodev1.RetryAnnotation: retry}}}
	node, err := cmdutil.PatchNode(ctx, client, v.Node, patch, o.dryRun)
	if err != nil {
		return fmt.Errorf("asking node %s to try again: %w", v.Name, err)
	}
	if err := f.PrintObject(o.print, o.dryRun.Did("asked to try again"), node); err != nil || o.dryRun != cmdutil.DryRunNone || !o.wait.wait {
		return err
	}
	return await(ctx, f, client, v.Name, g, o.wait)
}
