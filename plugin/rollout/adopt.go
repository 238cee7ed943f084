package rollout

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

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
		Short: "Return nodes that were assigned by hand, or released, to their pool",
		Long: `Give nodes to the pool whose selector takes them. A pool leaves alone what a person assigned or reset: the mark pool-assigned, which this command
writes, lets the pool take the node as it is. It keeps what it runs until its turn comes, by waves and within maxUnavailable. The label
` + rollout.PoolLabel + `=none is removed.`,
		Example: "  kubectl kubelet rollout adopt n1",
	})
}

// adoption writes the mark of the pool that selects the node, with the node's current assignment, so nothing
// changes immediately. It removes an older retry, because otherwise a verdict on the user's assignment would count
// for a revision.
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
