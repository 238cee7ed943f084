package rollout

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

func NewCommand(s *cmdutil.Factory) *cobra.Command {
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
	command.AddCommand(newRolloutStatus(s), newRolloutHistory(s), newRolloutPause(s), newRolloutResume(s), newRolloutUndo(s), newRolloutUnpin(s),
		newRolloutRetry(s), newRolloutAdopt(s), newRolloutRelease(s))
	return command
}

// A pool is a pool, and how its revision reaches its nodes.
type pool struct{ view.Pool }

// openPool connects, and reads a pool.
func openPool(ctx context.Context, s *cmdutil.Factory, name string) (client kubernetes.Interface, pools dynamic.ResourceInterface, p pool, err error) {
	if client, err = s.Connect(); err != nil {
		return nil, nil, p, err
	}
	if pools, err = s.PoolClient(); err != nil {
		return nil, nil, p, err
	}
	p.Pool, err = view.GetPool(ctx, pools, name)
	return client, pools, p, err
}

// poolOptions are the flags of the commands that change a pool.
type poolOptions struct {
	dryRun cmdutil.DryRun
	print  *genericclioptions.PrintFlags
}

// steering makes a command that changes one pool.
func steering(s *cmdutil.Factory, command *cobra.Command, run func(ctx context.Context, name string, o poolOptions) error) *cobra.Command {
	var o poolOptions
	command.Args = cobra.ExactArgs(1)
	command.ValidArgsFunction = s.CompletePools
	command.RunE = func(command *cobra.Command, arguments []string) error { return run(command.Context(), arguments[0], o) }
	o.dryRun.AddFlag(command.Flags())
	o.print = cmdutil.PrintFlags(command, "")
	return command
}

// steer patches a pool, and prints what was done.
func steer(ctx context.Context, s *cmdutil.Factory, name, did string, o poolOptions, change func(pool, notes) (map[string]any, error)) error {
	pools, err := s.PoolClient()
	if err != nil {
		return err
	}
	var said []string
	after, err := patchPool(ctx, pools, name, o.dryRun, func(p pool) (map[string]any, error) {
		said = nil // of a version that was changed meanwhile
		return change(p, func(format string, values ...any) { said = append(said, fmt.Sprintf(format, values...)) })
	})
	switch {
	case errors.Is(err, errNothingToDo):
		said, did = []string{err.Error()}, "unchanged"
	case err != nil:
		return err
	}
	for _, words := range said {
		s.Note("%s", words)
	}
	return s.PrintObject(o.print, o.dryRun.Did(did), after.Object)
}

// notes takes what a person is told when the change is made.
type notes func(format string, values ...any)

// managers warns of who else sets the field: what a GitOps tool states it sets back.
func (n notes) managers(p pool, field string) {
	for _, manager := range p.otherManagers(field) {
		n("warning: %s has set spec.rollout.%s, too, and may set it back; leave paused, pin and retry out of what it applies", manager, field)
	}
}

// inRollout is a merge patch of fields of spec.rollout.
func inRollout(fields map[string]any) map[string]any {
	return map[string]any{"spec": map[string]any{"rollout": fields}}
}

// nothingToDo ends a change that is made already.
func nothingToDo(format string, values ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errNothingToDo}, values...)...)
}

func newRolloutPause(s *cmdutil.Factory) *cobra.Command {
	return steering(s, &cobra.Command{
		Use:   "pause POOL",
		Short: "Let no revision of a pool move",
		Long: `Let no revision of a pool move. What nodes were assigned already goes on, and is not taken back. Verdicts still stop the revision, and new
nodes still get the one that was completed last.`,
		Example: "  kubectl kubelet rollout pause workers",
	}, func(ctx context.Context, name string, o poolOptions) error {
		return steer(ctx, s, name, "paused", o, func(p pool, say notes) (map[string]any, error) { return setPaused(p, say, true) })
	})
}

func newRolloutResume(s *cmdutil.Factory) *cobra.Command {
	return steering(s, &cobra.Command{
		Use:   "resume POOL",
		Short: "Let a paused pool move again",
		Long: `Let a paused pool move again. A pool that was undone stays at the revision that it went back to; kubectl kubelet rollout unpin lets it follow
its layers again.`,
		Example: "  kubectl kubelet rollout resume workers",
	}, func(ctx context.Context, name string, o poolOptions) error {
		return steer(ctx, s, name, "resumed", o, func(p pool, say notes) (map[string]any, error) { return setPaused(p, say, false) })
	})
}

func setPaused(p pool, say notes, paused bool) (map[string]any, error) {
	if p.Spec.Rollout.Paused == paused {
		return nil, nothingToDo("pool %s is %s", p.Name, map[bool]string{true: "paused already", false: "not paused"}[paused])
	}
	say.managers(p, "paused")
	return inRollout(map[string]any{"paused": paused}), nil
}

func newRolloutUnpin(s *cmdutil.Factory) *cobra.Command {
	return steering(s, &cobra.Command{
		Use:   "unpin POOL",
		Short: "Let a pool that was undone follow its layers again",
		Long: `Let a pool follow its layers again, which one that was undone, or pinned by spec.rollout.pin, does not. Change the layers first: else what was
undone is rolled out again, by waves, unless it was stopped.`,
		Example: "  kubectl kubelet rollout unpin workers",
	}, func(ctx context.Context, name string, o poolOptions) error {
		return steer(ctx, s, name, "unpinned", o, func(p pool, say notes) (map[string]any, error) {
			if p.Spec.Rollout.Pin == nil {
				return nil, nothingToDo("pool %s is not pinned, it follows its layers", p.Name)
			}
			say.managers(p, "pin")
			return inRollout(map[string]any{"pin": nil}), nil
		})
	})
}
