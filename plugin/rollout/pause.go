package rollout

import (
	"github.com/spf13/cobra"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
)

func newPause(f *cmdutil.Factory) *cobra.Command {
	o := &steerOptions{Factory: f, did: "paused", change: setPaused(true)}
	return o.steering(&cobra.Command{
		Use:   "pause POOL",
		Short: "Pause a pool's rollout",
		Long: `Pause the rollout of a pool: no revision moves. Nodes keep what they were assigned already, and go on with it. Verdicts still stop the revision, and new
nodes still get the one that was completed last.`,
		Example: "  kubectl kubelet rollout pause workers",
	})
}

func newResume(f *cmdutil.Factory) *cobra.Command {
	o := &steerOptions{Factory: f, did: "resumed", change: setPaused(false)}
	return o.steering(&cobra.Command{
		Use:   "resume POOL",
		Short: "Let a paused pool move again",
		Long: `Let a paused pool move again. A pool that was undone stays at the revision that it went back to; kubectl kubelet rollout unpin lets it follow
its layers again.`,
		Example: "  kubectl kubelet rollout resume workers",
	})
}

// setPaused returns the change of spec.rollout.paused.
func setPaused(paused bool) func(pool, notes) (map[string]any, error) {
	return func(p pool, say notes) (map[string]any, error) {
		if p.Spec.Rollout.Paused == paused {
			return nil, nothingToDo("pool %s is %s", p.Name, map[bool]string{true: "paused already", false: "not paused"}[paused])
		}
		say.managers(p, "paused")
		return inRollout(map[string]any{"paused": paused}), nil
	}
}
