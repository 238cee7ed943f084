package plugin

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
)

// changeOptions are the flags of the commands that change what nodes are assigned.
type changeOptions struct {
	chosen   selection
	yes      bool
	parallel int
	wait     waitOptions
	dryRun   dryRun
	print    *genericclioptions.PrintFlags
}

func (o *changeOptions) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVarP(&o.chosen.selector, "selector", "l", "", "nodes by label")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	flags.IntVar(&o.parallel, "parallel", 1, "how many nodes at a time; after a failure no other is begun")
	o.wait.addFlags(flags)
	o.dryRun.addFlag(flags)
	o.print = printFlags(command, "")
}

func (o *changeOptions) complete(arguments []string) error {
	o.chosen.names = arguments
	if o.parallel < 1 {
		return errors.New("--parallel is at least 1")
	}
	return errors.Join(o.chosen.validate(true), o.wait.complete())
}

func newAssign(s *session) *cobra.Command {
	var o changeOptions
	var config string
	var pin bool
	command := &cobra.Command{
		Use:   "assign (NODE... | -l SELECTOR) --config [NAMESPACE/]NAME[/KEY]",
		Short: "Assign a configuration to nodes, and wait until they run it",
		Long: `Assign a configuration to nodes, one after the other, and wait until each runs it.

What would change is shown first, field by field, with what that does to the node and its pods. A node that may not read the ConfigMap
yet is let read it. The assignment is written into the Node's annotation kubelet-supervisor.io/config-source, or into spec.configSource
where the API server keeps it. When a node refuses the configuration, or rolls it back, the command ends with the node's own words.`,
		Example: `  kubectl kubelet assign n1 --config kubelet-config/workers-d5bf27f224
  kubectl kubelet assign -l pool=workers --config workers-d5bf27f224 --yes --parallel 5 --until=good`,
		ValidArgsFunction: s.completeNodes,
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := o.complete(arguments); err != nil {
				return err
			}
			if config == "" {
				return errors.New("name a configuration with --config [NAMESPACE/]NAME[/KEY]; kubectl kubelet reset goes back to the node's own")
			}
			wanted, err := parseReference(config, s.namespace())
			if err != nil {
				return err
			}
			return s.assign(command.Context(), o, wanted, pin)
		},
	}
	command.Flags().StringVar(&config, "config", "", "the ConfigMap, and its key where that is not \"kubelet\" or the only one; with @UID for this one object only")
	command.Flags().BoolVar(&pin, "pin", false, "assign this one object: one of the same name made anew is refused")
	o.addFlags(command)
	return command
}

func (s *session) assign(ctx context.Context, o changeOptions, wanted reference, pin bool) error {
	client, err := s.connect()
	if err != nil {
		return err
	}
	if wanted.local() {
		return s.reset(ctx, client, o)
	}
	views, err := o.chosen.nodes(ctx, client)
	if err != nil {
		return err
	}
	configMap, wanted, err := getConfigMap(ctx, client, wanted)
	if err != nil {
		return err
	}
	written, err := readDocument(payloadOf(configMap), wanted.key)
	if err != nil {
		return fmt.Errorf("ConfigMap %s/%s is not assigned: %w", wanted.namespace, wanted.name, err)
	}
	if pin {
		wanted.uid = string(configMap.UID)
	}
	for _, warning := range written.warnings {
		s.note("warning: %s; kubelets ignore fields that they do not know", warning)
	}
	s.preview(ctx, client, views, wanted, written)
	if !o.yes && o.dryRun == dryRunNone {
		if err := s.confirm("Assign %s to %s?", wanted, countNodes(views)); err != nil {
			return err
		}
	}
	target := goal{wanted: wanted, uid: string(configMap.UID), version: configMap.ResourceVersion, good: o.wait.until == "good"}
	return s.eachNode(ctx, views, o.parallel, func(ctx context.Context, v nodeView) error {
		return s.assignNode(ctx, client, v, target, o)
	})
}

func countNodes(views []nodeView) string {
	if len(views) == 1 {
		return "node " + views[0].Name
	}
	return fmt.Sprintf("%d nodes", len(views))
}

func (s *session) assignNode(ctx context.Context, client kubernetes.Interface, v nodeView, g goal, o changeOptions) error {
	if err := s.grant(ctx, client, v.Name, g.wanted, o.dryRun); err != nil {
		return err
	}
	after, err := write(ctx, client, v, g.wanted, o.dryRun)
	if err != nil {
		return err
	}
	if err := s.printObject(o.print, o.dryRun.did("assigned"), after.Node); err != nil || o.dryRun != dryRunNone {
		return err
	}
	if err := s.remember(ctx, client, v, g); err != nil {
		s.note("%s: the assignment is not recorded, so rollback will not know it: %v", v.Name, err)
	}
	if !o.wait.wait {
		return nil
	}
	g.text = after.assignment
	return s.await(ctx, client, v.Name, g, o.wait)
}
