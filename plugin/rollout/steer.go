package rollout

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
)

// steerOptions are the flags of the commands that change a field of spec.rollout of one pool.
type steerOptions struct {
	*cmdutil.Factory
	pool   string
	dryRun cmdutil.DryRun
	print  *genericclioptions.PrintFlags

	did    string // as it is printed
	change func(p pool, say notes) (map[string]any, error)
}

// steering completes a command that changes one pool.
func (o *steerOptions) steering(command *cobra.Command) *cobra.Command {
	command.Args = cobra.ExactArgs(1)
	command.ValidArgsFunction = o.CompletePools
	command.RunE = cmdutil.RunE(o)
	o.dryRun.AddFlag(command.Flags())
	o.print = cmdutil.PrintFlags(command, "")
	return command
}

// Complete takes the name of the pool.
func (o *steerOptions) Complete(_ *cobra.Command, arguments []string) error {
	o.pool = arguments[0]
	return nil
}

// Validate has nothing to refuse.
func (o *steerOptions) Validate() error {
	return nil
}

// Run patches the pool, and prints what was done.
func (o *steerOptions) Run(ctx context.Context) error {
	pools, err := o.PoolClient()
	if err != nil {
		return err
	}
	var said []string
	after, err := patchPool(ctx, pools, o.pool, o.dryRun, func(p pool) (map[string]any, error) {
		said = nil // about a version that has changed since
		return o.change(p, func(format string, values ...any) { said = append(said, fmt.Sprintf(format, values...)) })
	})
	did := o.did
	switch {
	case errors.Is(err, errNothingToDo):
		said, did = []string{err.Error()}, "unchanged"
	case err != nil:
		return err
	}
	for _, words := range said {
		o.Note("%s", words)
	}
	return o.PrintObject(o.print, o.dryRun.Did(did), after.Object)
}

// notes collects what is printed after the change is made.
type notes func(format string, values ...any)

// managers warns about other field managers of the field: a GitOps tool resets what it applies.
func (n notes) managers(p pool, field string) {
	for _, manager := range p.otherManagers(field) {
		n("warning: %s has set spec.rollout.%s, too, and may set it back; leave paused, pin and retry out of what it applies", manager, field)
	}
}

// inRollout returns a merge patch of fields of spec.rollout.
func inRollout(fields map[string]any) map[string]any {
	return map[string]any{"spec": map[string]any{"rollout": fields}}
}

// nothingToDo returns the error for a change that is made already.
func nothingToDo(format string, values ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errNothingToDo}, values...)...)
}
