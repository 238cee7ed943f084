package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

func newExplain(f *cmdutil.Factory) *cobra.Command {
	o := &explainOptions{Factory: f}
	command := &cobra.Command{
		Use:   "explain NODE [FIELD...]",
		Short: "Say what sets a field of a node's kubelet configuration, as far as that is seen from outside",
		Long: `Say, field by field, what a node's kubelet runs with, and which layer, or which assigned file, sets it. What kubelet runs with comes from its
configz, and the layers from the ConfigMap that the node says it runs.

From outside a node's own file, its drop-in files and its flags are not seen. What no layer sets is by one of them, or a default. Where the kubelet runs
with another value than a layer sets, one of them wins. On the node, "kubelet-supervisor explain" shows which.

FIELD is the path of a field, such as evictionHard.memory.available, or of what it is in, such as evictionHard. Without one, it is what is assigned that
is explained; with --all, every field.`,
		Example: `  kubectl kubelet explain n1
  kubectl kubelet explain n1 maxPods evictionHard
  kubectl kubelet explain n1 --all -o json`,
		Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: func(command *cobra.Command, arguments []string, begun string) ([]string, cobra.ShellCompDirective) {
			return completeExplain(f, command, arguments, begun)
		},
		RunE: cmdutil.RunE(o),
	}
	command.Flags().BoolVar(&o.all, "all", false, "every field that the kubelet runs with")
	command.Flags().StringVarP(&o.format, "output", "o", "", "json for machines")
	return command
}

// Complete takes the name of the node, and fields.
func (o *explainOptions) Complete(_ *cobra.Command, arguments []string) error {
	o.node, o.fields = arguments[0], nil
	for _, field := range arguments[1:] {
		o.fields = append(o.fields, strings.ReplaceAll(field, `\.`, "."))
	}
	return nil
}

// Validate refuses unknown formats.
func (o *explainOptions) Validate() error {
	if o.format != "" && o.format != "json" {
		return fmt.Errorf("-o %s is not known; give json", o.format)
	}
	return nil
}

// explainOptions are the flags of explain.
type explainOptions struct {
	*cmdutil.Factory
	node   string
	fields []string
	all    bool
	format string
}

// byNode names what may set a field that no layer sets, as far as it can be known without access to the node.
const byNode = "the node's own file, a drop-in file, a flag or a default"

// Run explains the fields.
func (o *explainOptions) Run(ctx context.Context) error {
	client, err := o.Connect()
	if err != nil {
		return err
	}
	node, tree, err := runningConfig(ctx, o.Factory, client, o.node)
	if err != nil {
		return err
	}
	list, err := explanations(ctx, client, node, tree)
	if err != nil {
		return fmt.Errorf("node %s: %w", node.Name, err)
	}
	for _, field := range o.fields {
		if kubeletconfig.IsField(field) || slices.ContainsFunc(list, func(e kubeletconfig.Explanation) bool { return e.Explains(field) }) {
			continue
		}
		_, _, err := document.FieldSteps(field)
		return err
	}
	list = slices.DeleteFunc(list, func(e kubeletconfig.Explanation) bool {
		if len(o.fields) > 0 {
			return !slices.ContainsFunc(o.fields, e.Explains)
		}
		return !o.all && e.By.Kind == kubeletconfig.ByNode && len(e.Over) == 0
	})
	runs := "its own configuration"
	if active := nodev1.AssignmentOf(node.Says.Config.Active); !active.IsLocal() {
		runs = bounded.Line(active.String())
	}
	if o.format == "json" {
		if list == nil {
			list = []kubeletconfig.Explanation{}
		}
		return o.WriteWhole("json", func(to io.Writer) error {
			encoder := json.NewEncoder(to)
			encoder.SetEscapeHTML(false)
			encoder.SetIndent("", "  ")
			return encoder.Encode(struct {
				Node   string                      `json:"node"`
				Runs   string                      `json:"explained"`
				Fields []kubeletconfig.Explanation `json:"fields"`
			}{node.Name, runs, list})
		})
	}
	_, _ = fmt.Fprintf(o.Out, "%s runs %s:\n", node.Name, runs)
	for _, e := range list {
		if _, err := io.WriteString(o.Out, e.Text(len(o.fields) > 0)); err != nil {
			return err
		}
	}
	switch {
	case len(list) == 0 && len(o.fields) == 0:
		o.Note("Nothing is assigned. What its kubelet runs with is by %s; --all lists it, and kubelet-supervisor explain on the node tells by which.", byNode)
	case len(list) == 0:
		o.Note("Its kubelet does not report the field: nothing sets it, or the kubelet does not know it.")
	}
	return nil
}

// explanations explains the kubelet's running configuration by the node's assignment.
func explanations(ctx context.Context, client kubernetes.Interface, node view.Node, tree map[string]any) ([]kubeletconfig.Explanation, error) {
	text, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	sources := kubeletconfig.Sources{}
	if sources.Told, err = kubeletconfig.Decode(text); err != nil {
		return nil, err
	}
	if active := nodev1.AssignmentOf(node.Says.Config.Active); !active.IsLocal() {
		found, active, err := view.GetConfigMap(ctx, client, active)
		switch {
		case err != nil:
			return nil, err
		case !view.IsVersion(found, node.Says.Config.Active):
			return nil, fmt.Errorf("ConfigMap %s/%s was changed since the node took it", active.Namespace, active.Name)
		}
		sources.Payload, sources.Key = document.Payload(found), active.Key
		sources.Folder = checkpointIn(sources.Told, node)
	}
	list, err := sources.Explain()
	for i := range list {
		list[i] = seenFromOutside(list[i])
	}
	return list, err
}

// seenFromOutside changes an explanation for which a value made by the kubelet and one set by a flag look the
// same.
func seenFromOutside(e kubeletconfig.Explanation) kubeletconfig.Explanation {
	switch {
	case e.By.Kind == kubeletconfig.ByDefault:
		e.By = kubeletconfig.Origin{Kind: kubeletconfig.ByNode, Name: byNode}
	case e.Runs != nil:
		e.Over = append([]kubeletconfig.Said{e.Said}, e.Over...)
		e.Said = kubeletconfig.Said{By: kubeletconfig.Origin{Kind: kubeletconfig.ByNode, Name: "a flag or a drop-in file of the node, or the kubelet itself"}, Value: e.Runs}
		e.Runs = nil
	}
	return e
}

// checkpointIn returns the folder of the node's assignment, from the paths in the kubelet's running configuration.
func checkpointIn(told map[string]any, node view.Node) string {
	source := node.Says.Config.Active.ConfigMap
	mark := fmt.Sprintf("/checkpoints/%s/%s", source.UID, source.ResourceVersion)
	for _, value := range document.Leaves(told) {
		path, _ := value.(string)
		if before, _, is := strings.Cut(path, mark+"/"); is {
			return before + mark
		}
	}
	return ""
}

// completeExplain completes nodes first, then fields.
func completeExplain(f *cmdutil.Factory, command *cobra.Command, arguments []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(arguments) == 0 {
		return f.CompleteNodes(command, arguments, begun)
	}
	var names []string
	for _, field := range kubeletconfig.Fields() {
		if strings.HasPrefix(field.Path, begun) {
			names = append(names, field.Path)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
