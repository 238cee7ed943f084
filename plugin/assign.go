package plugin

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// changeOptions are the flags of the commands that change the assignment of nodes.
type changeOptions struct {
	chosen   view.Selection
	yes      bool
	parallel int
	wait     waitOptions
	dryRun   cmdutil.DryRun
	print    *genericclioptions.PrintFlags
}

func (o *changeOptions) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVarP(&o.chosen.Selector, "selector", "l", "", "nodes by label")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	flags.IntVar(&o.parallel, "parallel", 1, "how many nodes at a time; after a failure no other is begun")
	o.wait.addFlags(flags)
	o.dryRun.AddFlag(flags)
	o.print = cmdutil.PrintFlags(command, "")
}

// Complete takes the names of nodes.
func (o *changeOptions) Complete(_ *cobra.Command, arguments []string) error {
	o.chosen.Names = arguments
	o.wait.complete()
	return nil
}

// Validate requires that nodes are named or selected.
func (o *changeOptions) Validate() error {
	if o.parallel < 1 {
		return errors.New("--parallel is at least 1")
	}
	return errors.Join(o.chosen.Validate(true), o.wait.validate())
}

// assignOptions are the flags of assign.
type assignOptions struct {
	*cmdutil.Factory
	changeOptions
	config string // [NAMESPACE/]NAME[/KEY]
	pin    bool
}

func newAssign(f *cmdutil.Factory) *cobra.Command {
	o := &assignOptions{Factory: f}
	command := &cobra.Command{
		Use:   "assign (NODE... | -l SELECTOR) --config [NAMESPACE/]NAME[/KEY]",
		Short: "Assign a configuration to nodes, and wait until they run it",
		Long: `Assign a configuration to nodes, one after the other, and wait until each runs it.

What would change is shown first, field by field, with what that does to the node, and which of its running pods the restart would kill. A node that may not read the ConfigMap
yet gets read access. The assignment is written into the Node's annotation kubelet-supervisor.io/config-source, or into spec.configSource
where the API server keeps it. When a node refuses the configuration, or rolls it back, the command ends with the node's message.`,
		Example: `  kubectl kubelet assign n1 --config kubelet-config/workers-d5bf27f224
  kubectl kubelet assign -l pool=workers --config workers-d5bf27f224 --yes --parallel 5 --until=good`,
		ValidArgsFunction: f.CompleteNodes,
		RunE:              cmdutil.RunE(o),
	}
	command.Flags().StringVar(&o.config, "config", "", "the ConfigMap, and its key where that is not \"kubelet\" or the only one; with @UID for this one object only")
	command.Flags().BoolVar(&o.pin, "pin", false, "assign this one object: nodes refuse a later object of the same name")
	o.addFlags(command)
	return command
}

// Validate requires a configuration and nodes.
func (o *assignOptions) Validate() error {
	if err := o.changeOptions.Validate(); err != nil {
		return err
	}
	if o.config == "" {
		return errors.New("name a configuration with --config [NAMESPACE/]NAME[/KEY]; kubectl kubelet reset goes back to the node's own")
	}
	return nil
}

// Run assigns the configuration.
func (o *assignOptions) Run(ctx context.Context) error {
	wanted, err := document.ParseReference(o.config, o.Namespace())
	if err != nil {
		return err
	}
	client, err := o.Connect()
	if err != nil {
		return err
	}
	if wanted.IsLocal() {
		return resetNodes(ctx, o.Factory, client, o.changeOptions)
	}
	views, err := o.chosen.Nodes(ctx, client)
	if err != nil {
		return err
	}
	t, err := findTarget(ctx, client, wanted, o.changeOptions)
	if err != nil {
		return err
	}
	if t.views = views; o.pin {
		t.until.wanted.UID = t.until.uid
	}
	if err := mayShare(t.written, views, t.until.wanted); err != nil {
		return err
	}
	for _, warning := range t.written.Warnings {
		o.Note("warning: %s; kubelets ignore fields that they do not know", warning)
	}
	return changeNodes(ctx, o.Factory, client, o.changeOptions, []target{t}, "Assign "+t.until.wanted.String()+" to")
}

// A target is a configuration, or local, and the nodes that will run it.
type target struct {
	views   []view.Node
	until   waitCondition
	pin     string // uid of an immutable ConfigMap, which distinguishes it from a later one of the same name
	written document.Document
}

// mayLayer returns an error that names the nodes which cannot have the target, because it consists of layers.
func (t *target) mayLayer() error {
	var failed []error
	for _, v := range t.views {
		if t.written.Over != nil {
			failed = append(failed, v.MayLayer())
		}
	}
	return errors.Join(failed...)
}

// findTarget reads the ConfigMap to assign.
func findTarget(ctx context.Context, client kubernetes.Interface, wanted nodev1.Assignment, o changeOptions) (target, error) {
	if wanted.IsLocal() {
		return target{}, nil
	}
	configMap, wanted, err := view.GetConfigMap(ctx, client, wanted)
	if err != nil {
		return target{}, err
	}
	written, err := document.Read(document.Payload(configMap), wanted.Key)
	if err != nil {
		return target{}, fmt.Errorf("ConfigMap %s/%s is not assigned: %w", wanted.Namespace, wanted.Name, err)
	}
	if err := written.Unmasked(); err != nil {
		return target{}, fmt.Errorf("ConfigMap %s/%s is not assigned: %w", wanted.Namespace, wanted.Name, err)
	}
	t := target{written: written, until: waitConditionOf(wanted, configMap, o.wait.until == "good")}
	if configMap.Immutable != nil && *configMap.Immutable {
		t.pin = string(configMap.UID)
	}
	return t, nil
}

// changeNodes shows the changes, asks, and makes them node by node.
func changeNodes(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, o changeOptions, targets []target, question string) error {
	var views []view.Node
	of := map[string]*target{}
	grants := map[*target]*granter{}
	for i := range targets {
		t := &targets[i]
		views = append(views, t.views...)
		for _, v := range t.views {
			of[v.Name] = t
		}
		if t.until.wanted.IsLocal() {
			previewReset(f, t.views)
			continue
		}
		if err := t.mayLayer(); err != nil {
			return err
		}
		preview(ctx, f, client, t.views, t.until.wanted.Unpinned(), t.written)
		grants[t] = &granter{Factory: f, client: client, wanted: t.until.wanted, nodes: t.views, dry: o.dryRun}
	}
	takesOut(ctx, f, client, targets)
	if !o.yes && o.dryRun == cmdutil.DryRunNone {
		if err := f.Confirm("%s %s?", question, view.CountNodes(views)); err != nil {
			return err
		}
	}
	w := newWriter(ctx, f, client, o.dryRun)
	leavers := &leavers{}
	err := cmdutil.EachNode(ctx, views, o.parallel, func(ctx context.Context, v view.Node) error {
		t := of[v.Name]
		if t.until.wanted.IsLocal() {
			return resetNode(ctx, f, w, v, o, leavers)
		}
		return assignNode(ctx, f, w, grants[t], v, *t, o)
	})
	return errors.Join(err, revokeAfterReset(ctx, f, client, leavers))
}

func assignNode(ctx context.Context, f *cmdutil.Factory, w *writer, grant *granter, v view.Node, t target, o changeOptions) error {
	if err := grant.node(ctx, v.Name); err != nil {
		return err
	}
	after, err := w.write(ctx, v, t.until.wanted, t.pin)
	if err != nil {
		return err
	}
	if err := f.PrintObject(o.print, o.dryRun.Did("assigned"), after.Node); err != nil || o.dryRun != cmdutil.DryRunNone {
		return err
	}
	if !o.wait.wait {
		return nil
	}
	g := t.until
	g.text = after.Says.Assignment
	if err := await(ctx, f, w.client, v.Name, g, o.wait); err != nil {
		w.recordFailure(ctx, v.Name)
		return err
	}
	return nil
}

// mayShare returns an error if several nodes would get a value that belongs to one node.
func mayShare(d document.Document, views []view.Node, wanted nodev1.Assignment) error {
	if err := d.Shareable(); err != nil && len(views) > 1 {
		return fmt.Errorf("ConfigMap %s/%s is not assigned to %d nodes: %w", wanted.Namespace, wanted.Name, len(views), err)
	}
	return nil
}
