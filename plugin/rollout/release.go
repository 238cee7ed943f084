package rollout

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

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

// releasing does not change the mark: if the node fails and is removed, the mark says which revision it had.
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
