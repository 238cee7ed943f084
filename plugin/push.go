package plugin

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
)

// pushOptions are the flags of push.
type pushOptions struct {
	*cmdutil.Factory
	name  string
	files []string // [KEY=]FILE, the configuration first; "-" is stdin
	edit  string   // the node whose configuration is edited and pushed

	overlay bool     // the first file sets a few fields
	set     []string // FIELD=VALUE
	layers  []string // NAME=FILE
	against string   // the node whose configuration the first file is compared with

	yes    bool
	strict bool
	dryRun cmdutil.DryRun
	print  *genericclioptions.PrintFlags
}

func newPush(f *cmdutil.Factory) *cobra.Command {
	o := &pushOptions{Factory: f}
	command := &cobra.Command{
		Use:   "push NAME (--set FIELD=VALUE... | --layer NAME=FILE... | -f [KEY=]FILE... [--overlay | --against NODE] | --edit NODE)",
		Short: "Make a ConfigMap of a configuration, named by its content, for nodes to be assigned",
		Long: `Make an immutable ConfigMap of a few fields to be laid over each node's own file, or of a whole KubeletConfiguration. Its name ends with a
hash of its content, the same that "kubectl create configmap NAME --from-file=kubelet=FILE --append-hash" gives; pushing the same again changes nothing.

A few fields: --set gives one, as --set evictionHard.memory.available=500Mi. Lists are YAML, as --set 'clusterDNS=[10.96.0.10]', and null takes a
field out of the node's own file. -f FILE --overlay has the fields in a file. --layer has several such files, each a layer of its own; the later wins, and --set
wins over them. Everything else stays as each node has it. That needs supervisors that know layers, and "assign" sees to it.

A whole file: -f without --overlay replaces the node's own. It is under the key "kubelet" unless KEY= names another. Further files are stored next to it on
the node, under their own names, and the configuration may name them by relative paths.

With --edit, what the kubelet of NODE runs with and is not a default of its version is opened in $KUBE_EDITOR or $EDITOR. Only what you change goes in, as a layer;
a line that you delete becomes null. Layers that the node runs stay below it, and in a whole file that it runs the change is made. --against NODE does the same
for a file that you edited before, such as what "config NODE" prints. What belongs to one node, such as providerID, is refused.`,
		Example: `  kubectl kubelet push workers --set maxPods=250 --set registerWithTaints=null
  kubectl kubelet push workers -f partial.yaml --overlay
  kubectl kubelet push workers --layer fleet=fleet.yaml --layer gpu=gpu.yaml
  kubectl kubelet push workers --edit n1
  kubectl kubelet push workers -f kubelet.yaml
  kubectl kubelet push workers -f kubelet.yaml -n kube-system --dry-run=client -o yaml`,
		Args: cobra.ExactArgs(1),
		RunE: cmdutil.RunE(o),
	}
	command.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "the configuration, and other files for its ConfigMap; - is stdin")
	command.Flags().StringArrayVar(&o.set, "set", nil, "FIELD=VALUE to lay over each node's own file; null takes it out of that")
	command.Flags().StringArrayVar(&o.layers, "layer", nil, "NAME=FILE with fields to lay over each node's own file; the later wins")
	command.Flags().BoolVar(&o.overlay, "overlay", false, "the file has a few fields to lay over each node's own")
	command.Flags().StringVar(&o.against, "against", "", "the file is what this node runs with, edited: lay what differs over each node's own")
	command.Flags().StringVar(&o.edit, "edit", "", "edit what this node's kubelet runs with, and lay what you change over each node's own")
	command.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask (with --edit)")
	command.Flags().BoolVar(&o.strict, "strict", false, "refuse fields that are unknown or appear twice, instead of naming them")
	o.dryRun.AddFlag(command.Flags())
	o.print = cmdutil.PrintFlags(command, "")
	return command
}

// Complete takes the name of the configuration.
func (o *pushOptions) Complete(_ *cobra.Command, arguments []string) error {
	o.name = arguments[0]
	return nil
}

// Run makes the ConfigMap.
func (o *pushOptions) Run(ctx context.Context) error {
	client, err := o.Connect()
	if err != nil {
		return err
	}
	files, err := pushFiles(ctx, o.Factory, client, *o)
	if err != nil || files == nil {
		return err
	}
	configMap, err := document.NewConfigMap(o.Namespace(), o.name, files)
	if err != nil {
		return err
	}
	written, err := document.Read(configMap.Data, files[0].Key)
	if err != nil {
		return fmt.Errorf("%s is not pushed: %w", files[0].Name, err)
	}
	if err := cmp.Or(written.Shareable(), written.Unmasked()); err != nil {
		return fmt.Errorf("%s is not pushed: %w", files[0].Name, err)
	}
	if err := reviewDocument(o.Factory, written); err != nil {
		return err
	}
	if o.strict && len(written.Warnings) > 0 {
		return fmt.Errorf("%s is not pushed: %s (--strict)", files[0].Name, written.Warnings[0])
	}
	if o.edit != "" && !o.yes && o.dryRun == cmdutil.DryRunNone { // the user has seen a file, but not the node's configuration
		if err := o.Confirm("Push this as ConfigMap %s/%s?", configMap.Namespace, configMap.Name); err != nil {
			return err
		}
	}
	made, did, err := putConfigMap(ctx, client, configMap, o.dryRun)
	if err != nil {
		return err
	}
	if err := o.PrintObject(o.print, o.dryRun.Did(did), made); err != nil {
		return err
	}
	o.Note("Assign it: kubectl kubelet assign NODE --config %s", document.ShortReference(nodev1.Assignment{Namespace: made.Namespace, Name: made.Name, Key: files[0].Key}))
	return nil
}

// reviewDocument prints unusual parts of a configuration, and the sensitive fields that are not at their defaults,
// with their values.
func reviewDocument(f *cmdutil.Factory, d document.Document) error {
	for _, warning := range d.Warnings {
		f.Note("warning: %s; kubelets ignore fields that they do not know", warning)
	}
	if d.Over != nil {
		reviewLayers(f, d.Over)
		return nil
	}
	defaults, version, err := document.NewestDefaults()
	if err != nil {
		return err
	}
	values := document.Leaves(document.ChangedFrom(document.DefaultsFor(d.Tree, defaults), d.Tree))
	var lines []string
	root := false
	for _, path := range document.SortedKeys(values) {
		found, known := kubeletconfig.NearestField(path)
		mark := " "
		if document.GivesRoot(path) {
			root, mark = true, "!"
		} else if !known || found.Class.Harmless() {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s (%s)", mark, document.FieldName(path), document.Show(path, values[path]), found.Class))
	}
	if len(lines) > 0 {
		f.Note("Not as Kubernetes %s has it by default, where changing it can matter (assign shows what really changes, and what that does):", version)
	}
	for _, line := range lines {
		f.Note("%s", line)
	}
	if root {
		f.Note("A field with ! can give users root on the node: check it carefully.")
	}
	return nil
}

// pushFiles reads the files, or opens an editor; nil if the user changed nothing.
func pushFiles(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, o pushOptions) ([]document.File, error) {
	switch {
	case o.edit != "":
		return editConfig(ctx, f, client, o)
	case o.laysOver():
		return layerFiles(f, o)
	}
	var files []document.File
	for i, argument := range o.files {
		key, name, named := strings.Cut(argument, "=")
		if !named {
			name, key = argument, filepath.Base(argument)
			if i == 0 {
				key = document.DefaultKey
			}
		}
		content, err := readInput(f, name)
		if err != nil {
			return nil, err
		}
		files = append(files, document.File{Key: key, Name: name, Content: content})
	}
	if !utf8.Valid(files[0].Content) {
		return nil, fmt.Errorf("%s is no text; the configuration is YAML or JSON in UTF-8", files[0].Name)
	}
	if o.against != "" {
		return differences(ctx, f, client, o, files)
	}
	return files, nil
}

// maxInput is more bytes than a ConfigMap can hold.
const maxInput = 2 << 20

func readInput(f *cmdutil.Factory, name string) ([]byte, error) {
	input := f.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		input = file
	}
	content, err := bounded.Read(input, maxInput)
	if err != nil {
		return nil, fmt.Errorf("reading %s, which a ConfigMap has to hold: %w", name, err)
	}
	return content, nil
}
