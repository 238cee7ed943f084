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
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

func newRetry(s *session) *cobra.Command {
	var o changeOptions
	command := &cobra.Command{
		Use:   "retry (NODE... | -l SELECTOR)",
		Short: "Ask nodes to try again what they rejected",
		Long: `Ask nodes to try their assigned configuration again, after a rejection that was the node's fault and not the configuration's. What is
held against it is forgotten, and its trial begins anew, which restarts the kubelet.`,
		Example:           "  kubectl kubelet retry n1",
		ValidArgsFunction: s.completeNodes,
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := o.complete(arguments); err != nil {
				return err
			}
			client, err := s.connect()
			if err != nil {
				return err
			}
			views, err := o.chosen.Nodes(command.Context(), client)
			if err != nil {
				return err
			}
			if !o.yes && o.dryRun == dryRunNone {
				for _, v := range views {
					s.note("%s: tries %s again, and its kubelet restarts for that", v.Name, cmp.Or(bounded.Line(v.Says.Assignment), nodev1.Local))
				}
				if err := s.confirm("Let %s try again?", countNodes(views)); err != nil {
					return err
				}
			}
			return s.eachNode(command.Context(), views, o.parallel, func(ctx context.Context, v view.Node) error {
				return s.retryNode(ctx, client, v, o)
			})
		},
	}
	o.addFlags(command)
	return command
}

func (s *session) retryNode(ctx context.Context, client kubernetes.Interface, v view.Node, o changeOptions) error {
	wanted, ok := v.Current()
	switch {
	case !ok:
		return fmt.Errorf("node %s: the assignment %q is malformed, and no retry mends that; assign again", v.Name, v.Says.Assignment)
	case wanted.IsLocal():
		return fmt.Errorf("node %s: nothing is assigned, so there is nothing to try again", v.Name)
	}
	retry := s.now().UTC().Format(time.RFC3339Nano)
	g := goal{wanted: wanted, good: o.wait.until == "good"}
	if o.wait.wait && o.dryRun == dryRunNone {
		configMap, _, err := view.GetConfigMap(ctx, client, wanted)
		if err != nil {
			return fmt.Errorf("node %s: %w", v.Name, err)
		}
		g = goalOf(wanted, configMap, g.good)
	}
	g.text, g.retry = v.Says.Assignment, retry
	patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{nodev1.RetryAnnotation: retry}}}
	node, err := patchNode(ctx, client, v.Node, patch, o.dryRun)
	if err != nil {
		return fmt.Errorf("asking node %s to try again: %w", v.Name, err)
	}
	if err := s.printObject(o.print, o.dryRun.did("asked to try again"), node); err != nil || o.dryRun != dryRunNone || !o.wait.wait {
		return err
	}
	return s.await(ctx, client, v.Name, g, o.wait)
}
