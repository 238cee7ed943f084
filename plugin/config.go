package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// configOptions are the flags of config.
type configOptions struct {
	*cmdutil.Factory
	node    string
	changed bool // only fields that differ from their defaults
	format  string
}

func newConfig(f *cmdutil.Factory) *cobra.Command {
	o := &configOptions{Factory: f}
	command := &cobra.Command{
		Use:   "config NODE",
		Short: "Print the configuration that a node's kubelet runs with, ready to be edited and pushed",
		Long: `Print the KubeletConfiguration that a node's kubelet runs with: its file, drop-in files, flags and defaults together.

It needs get on nodes/proxy. --changed leaves out what is as Kubernetes has it when nothing is configured.`,
		Example: `  kubectl kubelet config n1 >kubelet.yaml
  kubectl kubelet config n1 --changed`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.CompleteNodes,
		RunE:              cmdutil.RunE(o),
	}
	command.Flags().BoolVar(&o.changed, "changed", false, "only what differs from the defaults of the kubelet's version")
	command.Flags().StringVarP(&o.format, "output", "o", "yaml", "yaml or json")
	return command
}

// Complete takes the name of the node.
func (o *configOptions) Complete(_ *cobra.Command, arguments []string) error {
	o.node = arguments[0]
	return nil
}

// Validate refuses unknown formats.
func (o *configOptions) Validate() error {
	if o.format != "yaml" && o.format != "json" {
		return fmt.Errorf("-o %s is not known; give yaml or json", o.format)
	}
	return nil
}

// Run prints the running configuration of the node's kubelet.
func (o *configOptions) Run(ctx context.Context) error {
	client, err := o.Connect()
	if err != nil {
		return err
	}
	text, err := configText(ctx, o.Factory, client, o.node, o.changed, o.format)
	if err != nil {
		return err
	}
	return o.WriteWhole(o.format, func(to io.Writer) error {
		_, err := to.Write(text)
		return err
	})
}

// configText returns the running configuration as a KubeletConfiguration in YAML.
func configText(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, name string, changed bool, format string) ([]byte, error) {
	node, tree, err := runningConfig(ctx, f, client, name)
	if err != nil {
		return nil, err
	}
	if changed {
		if tree, err = onlyChanged(f, node, tree); err != nil {
			return nil, err
		}
	}
	tree = kubeletconfig.Masked(tree)
	if masked := kubeletconfig.MaskedFields(tree); len(masked) > 0 {
		f.Note("What may be a secret is masked, so what is printed cannot be pushed as it is: %s", view.FirstOf(masked, ", "))
	}
	if format == "json" {
		tree["apiVersion"], tree["kind"] = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"
		text, err := json.MarshalIndent(tree, "", "  ")
		return append(text, '\n'), err
	}
	return document.Encode(node.Name, tree)
}

// runningConfig asks the kubelet of a node for its running configuration.
func runningConfig(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, name string) (view.Node, map[string]any, error) {
	node, err := view.GetNode(ctx, client, name)
	if err != nil {
		return view.Node{}, nil, err
	}
	tree, err := f.Configz(ctx, client, node.Name)
	if err != nil {
		return view.Node{}, nil, fmt.Errorf("node %s: %w", node.Name, err)
	}
	return node, tree, nil
}

func onlyChanged(f *cmdutil.Factory, node view.Node, tree map[string]any) (map[string]any, error) {
	kubelet := node.Status.NodeInfo.KubeletVersion
	defaults, version, exact, err := document.Defaults(kubelet)
	if err != nil {
		return nil, err
	}
	if !exact {
		f.Note("Compared with the defaults of Kubernetes %s; %s runs %s: a default that changed in between shows as a difference, or hides one.", version, node.Name, node.Kubelet())
	}
	return document.ChangedFrom(defaults, tree), nil
}
