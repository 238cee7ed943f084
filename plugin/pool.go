package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

func newPool(f *cmdutil.Factory) *cobra.Command {
	command := &cobra.Command{
		Use:     "pool COMMAND",
		Short:   "Look at pools before they are changed",
		Long:    "Look at KubeletPools before they are changed. To follow and steer one that is there, see kubectl kubelet rollout.",
		Example: "  kubectl kubelet pool diff workers -f pool.yaml",
		RunE: func(command *cobra.Command, arguments []string) error {
			if len(arguments) > 0 {
				return fmt.Errorf("unknown command %q for %q; see %s --help", arguments[0], command.CommandPath(), command.CommandPath())
			}
			return command.Help()
		},
	}
	command.AddCommand(newPoolDiff(f))
	return command
}

// poolDiffOptions are the flags of pool diff.
type poolDiffOptions struct {
	*cmdutil.Factory
	pool, file string
}

func newPoolDiff(f *cmdutil.Factory) *cobra.Command {
	o := &poolDiffOptions{Factory: f}
	command := &cobra.Command{
		Use:   "diff POOL -f FILE",
		Short: "Show what a pool would do if it were as a file has it",
		Long: `Show which revision a KubeletPool would make if it were as a file has it: the fields that change, with what that does to a node, the nodes that it
takes, and how many of them each wave reaches. The pool need not be there yet. The API server is asked whether it takes the file, by a dry run of
server-side apply. Nothing is kept.

The exit code is 0 when neither the revision nor the nodes are others than now, 1 when they are, and 2 for an error.`,
		Example:           "  kubectl kubelet pool diff workers -f pool.yaml",
		Args:              cobra.ExactArgs(1),
		Annotations:       map[string]string{comparesAnnotation: "yes"},
		ValidArgsFunction: f.CompletePools,
		RunE:              cmdutil.RunE(o),
	}
	command.Flags().StringVarP(&o.file, "filename", "f", "", "a KubeletPool, as YAML or JSON; - is stdin")
	return command
}

// Complete takes the name of the pool.
func (o *poolDiffOptions) Complete(_ *cobra.Command, arguments []string) error {
	o.pool = arguments[0]
	return nil
}

// Validate requires a file.
func (o *poolDiffOptions) Validate() error {
	if o.file == "" {
		return errors.New("name a file with -f; - is stdin")
	}
	return nil
}

// Run shows what would change, and returns errDiffers if something would.
func (o *poolDiffOptions) Run(ctx context.Context) error {
	wanted, content, err := readPool(o.Factory, o.pool, o.file)
	if err != nil {
		return err
	}
	client, err := o.Connect()
	if err != nil {
		return err
	}
	if err := tryPool(ctx, o.Factory, o.pool, content); err != nil {
		return err
	}
	pools, err := o.ListPools(ctx, client)
	if err != nil {
		return err
	}
	d, err := draftOf(ctx, o.Factory, client, pools, wanted)
	if err != nil {
		return err
	}
	switch {
	case d.then.Fault != "":
		return fmt.Errorf("pool %s: %s", wanted.Name, d.then.Fault)
	case d.then.Missing != "":
		return fmt.Errorf("pool %s: ConfigMap %s is not there", wanted.Name, d.then.Missing)
	}
	d.write(o.Out)
	if d.changesNothing() {
		return nil
	}
	return errDiffers
}

// readPool reads a pool from a file, and returns the file's content, too.
func readPool(f *cmdutil.Factory, name, file string) (*v1alpha1.KubeletPool, []byte, error) {
	content, err := readInput(f, file)
	if err != nil {
		return nil, nil, err
	}
	wanted := &v1alpha1.KubeletPool{}
	if err := yaml.UnmarshalStrict(content, wanted); err != nil {
		return nil, nil, fmt.Errorf("%s is no KubeletPool: %s", file, kubeletconfig.Quote(err.Error()))
	}
	switch {
	case wanted.Kind != "KubeletPool" || wanted.APIVersion != v1alpha1.GroupVersion().String():
		return nil, nil, fmt.Errorf("%s is no KubeletPool of %s", file, v1alpha1.GroupVersion())
	case wanted.Name != "" && wanted.Name != name:
		return nil, nil, fmt.Errorf("%s is of pool %q, not of %q", file, bounded.Line(wanted.Name), name)
	}
	wanted.Name, wanted.Status = name, v1alpha1.KubeletPoolStatus{}
	return wanted, content, nil
}

// setByServer are the fields of metadata that users do not write. An exported file has them, and its old
// resourceVersion or uid would make the dry run a conflict.
var setByServer = []string{"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"}

// tryPool asks the API server in a dry run whether it accepts the file, because only the API server knows the
// rules of the definition, webhooks and policies. A user without write permission on pools gets a note that this
// was not checked.
func tryPool(ctx context.Context, f *cmdutil.Factory, name string, content []byte) error {
	tree := map[string]any{}
	if err := yaml.Unmarshal(content, &tree); err != nil {
		return fmt.Errorf("reading the file again: %w", err)
	}
	object := &unstructured.Unstructured{Object: tree}
	object.SetName(name)
	delete(object.Object, "status")
	for _, field := range setByServer {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	body, err := object.MarshalJSON()
	if err != nil {
		return fmt.Errorf("writing pool %s: %w", name, err)
	}
	pools, err := f.PoolClient()
	if err != nil {
		return err
	}
	_, err = pools.Patch(ctx, name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "kubectl", Force: new(true), DryRun: []string{metav1.DryRunAll},
		FieldValidation: metav1.FieldValidationStrict})
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		f.Note("warning: the API server was not asked whether it takes the file: %s", bounded.Line(err.Error()))
		return nil
	case err != nil:
		return fmt.Errorf("the API server does not take pool %s: %w", name, err)
	}
	return nil
}

// A draft is a pool as it would be, along with the pool as it is.
type draft struct {
	wanted    *v1alpha1.KubeletPool
	is        *v1alpha1.KubeletPool // nil if the pool does not exist yet
	now, then rollout.View
	pinned    *v1alpha1.Pin
}

// draftOf merges a file into the existing pool, as server-side apply would: what an undo or a pause has set stays,
// unless the file sets it.
func draftOf(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, pools []view.Pool, wanted *v1alpha1.KubeletPool) (draft, error) {
	d := draft{wanted: wanted}
	kept, err := view.ReadRevisions(ctx, client, wanted.Name)
	if err != nil {
		return d, err
	}
	w := rollout.World{Now: f.Now(), Layers: map[rollout.Ref]rollout.Layer{}}
	for _, p := range pools {
		if p.Name == wanted.Name {
			d.is, wanted.Status = p.KubeletPool, p.Status
			d.pinned = wanted.Spec.Rollout.Pin
			if d.pinned == nil {
				d.pinned = p.Spec.Rollout.Pin
			}
			continue
		}
		w.Pools = append(w.Pools, rollout.ReadPool(p.KubeletPool, nil, time.LoadLocation))
	}
	wanted.Spec.Rollout.Pin = nil // the draft shows what the layers would do
	read := rollout.ReadPool(wanted, view.CoreRevisions(kept), time.LoadLocation)
	if err := readLayers(ctx, client, read, w.Layers); err != nil {
		return d, err
	}
	nodes, _, err := view.ListNodes(ctx, client, metav1.ListOptions{})
	if err != nil {
		return d, err
	}
	for i := range nodes {
		w.Nodes = append(w.Nodes, rollout.ReadNode(&nodes[i]))
	}
	others := w.Pools
	if d.is != nil {
		w.Pools = append(slices.Clone(others), rollout.ReadPool(d.is, view.CoreRevisions(kept), time.LoadLocation))
		d.now = rollout.Look(w, wanted.Name)
	}
	w.Pools = append(slices.Clone(others), read)
	d.then = rollout.Try(w, wanted.Name)
	return d, nil
}

// readLayers reads the ConfigMaps of a pool's layers.
func readLayers(ctx context.Context, client kubernetes.Interface, p rollout.Pool, into map[rollout.Ref]rollout.Layer) error {
	for _, ref := range p.Refs() {
		found, err := client.CoreV1().ConfigMaps(rollout.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			into[ref] = rollout.Layer{Missing: true}
		case err != nil:
			return fmt.Errorf("reading ConfigMap %s: %w", ref, err)
		default:
			into[ref] = rollout.ReadLayer(found.Data, ref.Key, found.ResourceVersion)
		}
	}
	return nil
}
