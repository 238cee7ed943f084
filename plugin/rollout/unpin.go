package rollout

import (
	"github.com/spf13/cobra"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
)

func newUnpin(f *cmdutil.Factory) *cobra.Command {
	o := &steerOptions{Factory: f, did: "unpinned", change: unpin}
	return o.steering(&cobra.Command{
		Use:   "unpin POOL",
		Short: "Let a pool that was undone follow its layers again",
		Long: `Let a pool follow its layers again, which one that was undone, or pinned by spec.rollout.pin, does not. Change the layers first: else what was
undone is rolled out again, by waves, unless it was stopped.`,
		Example: "  kubectl kubelet rollout unpin workers",
	})
}

// unpin removes the pin.
func unpin(p pool, say notes) (map[string]any, error) {
	if p.Spec.Rollout.Pin == nil {
		return nil, nothingToDo("pool %s is not pinned, it follows its layers", p.Name)
	}
	say.managers(p, "pin")
	return inRollout(map[string]any{"pin": nil}), nil
}
