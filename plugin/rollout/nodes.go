package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

func newAdopt(f *cmdutil.Factory) *cobra.Command {
	o := &handoverOptions{Factory: f, did: "adopted", how: adoption}
	return o.handing(&cobra.Command{
		Use:   "adopt NODE...",
		Short: "Give nodes that somebody assigned by hand, or released, to their pool",
		Long: `Give nodes to the pool whose selector takes them. A pool leaves alone what a person assigned or reset: the mark pool-assigned, which this command
writes, lets the pool take the node as it is. It keeps what it runs until its turn comes, by waves and within maxUnavailable. The label
` + rollout.PoolLabel + `=none is removed.`,
		Example: "  kubectl kubelet rollout adopt n1",
	})
}

func newRelease(f *cmdutil.Factory) *cobra.Command {
	o := &handoverOptions{Factory: f, did: "released", how: releasing}
	return o.handing(&cobra.Command{
		Use:   "release NODE...",
		Short: "Take nodes out of their pool, as they are",
		Long: `Take nodes out of whatever pool selects them: the label ` + rollout.PoolLabel + `=none is set. The node keeps what it is assigned, and no pool
writes to it or counts it. A node that is released while it fails at a new revision stops that revision: it is the reason to release it, most likely.
kubectl kubelet rollout adopt gives it back.`,
		Example: "  kubectl kubelet rollout release n1",
	})
}

// A handover says by what patch a node changes hands.
type handover func(pools []view.Pool, v view.Node, say notes) (map[string]any, error)

// handoverOptions are the flags of the commands that change to whom nodes belong.
type handoverOptions struct {
	*cmdutil.Factory
	nodes  view.Selection
	dryRun cmdutil.DryRun
	print  *genericclioptions.PrintFlags

	did string // as it is printed
	how handover
}

// handing makes a command that changes to whom nodes belong.
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

// handOver patches exactly the Node that was looked at; one that has changed meanwhile is looked at anew.
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

// adoption writes the mark of the pool that selects the node, with the assignment that the node has: so nothing changes at once. An older
// retry goes, or a verdict on what a person assigned would be taken for one on a revision.
func adoption(pools []view.Pool, v view.Node, say notes) (map[string]any, error) {
	node := rollout.ReadNode(v.Node)
	owners := rollout.Owners(view.CorePools(pools), withoutLabel(&node, rollout.PoolLabel))
	switch {
	case len(owners) == 0 && len(pools) == 0:
		return nil, errors.New("there is no pool")
	case len(owners) == 0:
		return nil, errors.New("no pool selects it; see the selectors with kubectl get kpool -o yaml, and the node's labels with kubectl get node --show-labels")
	case len(owners) > 1:
		return nil, fmt.Errorf("the pools %s select it with the same priority; change one of their priorities or selectors", strings.Join(owners, ", "))
	}
	p := view.PoolNamed(pools, owners[0])
	mark := rollout.Mark{Pool: p.Name, Assignment: cmp.Or(node.Source, rollout.Unassigned), Attempt: 1}
	if _, wellFormed := v.Current(); !wellFormed {
		return nil, fmt.Errorf("its assignment %q is malformed; kubectl kubelet reset %s, and adopt it then", v.Says.Assignment, v.Name)
	}
	released := v.HeldOut()
	if !released && v.MemberOf() == p.Name {
		return nil, nothingToDo("node %s is in the hands of pool %s already", v.Name, p.Name)
	}
	metadata := map[string]any{}
	if released {
		metadata["labels"] = map[string]any{rollout.PoolLabel: nil}
	}
	if v.MemberOf() != p.Name {
		metadata["annotations"] = map[string]any{rollout.MarkAnnotation: mark.String(), nodev1.RetryAnnotation: nil}
	}
	target := "its revision"
	if t := p.Status.Target; t != nil {
		target = t.Text()
	}
	say("%s: pool %s moves it from %s to %s when its turn comes", v.Name, p.Name, bounded.Line(cmp.Or(v.Says.Assignment, nodev1.Local)), target)
	if node.Labels[rollout.RolloutLabel] == "hold" {
		say("warning: %s has the label %s=hold, and is not moved while it has", v.Name, rollout.RolloutLabel)
	}
	return map[string]any{"metadata": metadata}, nil
}

// releasing leaves the mark as it is: it is what tells of a node that fails, and is taken away, which revision that was.
func releasing(pools []view.Pool, v view.Node, say notes) (map[string]any, error) {
	if v.HeldOut() {
		return nil, nothingToDo("node %s is in no pool already", v.Name)
	}
	node := rollout.ReadNode(v.Node)
	of := "No pool selects it now, and none will"
	if owners := rollout.Owners(view.CorePools(pools), &node); len(owners) > 0 {
		of = "no longer in pool " + strings.Join(owners, ", ")
	}
	say("%s: %s; it keeps what it is assigned, %s", v.Name, of, bounded.Line(cmp.Or(v.Says.Assignment, nodev1.Local)))
	return map[string]any{"metadata": map[string]any{"labels": map[string]any{rollout.PoolLabel: view.NoPool}}}, nil
}

func withoutLabel(n *rollout.Node, key string) *rollout.Node {
	without := *n
	without.Labels = map[string]string{}
	for k, value := range n.Labels {
		if k != key {
			without.Labels[k] = value
		}
	}
	return &without
}
