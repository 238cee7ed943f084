package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
)

func newInstall(f *cmdutil.Factory) *cobra.Command {
	o := &installOptions{Factory: f}
	command := &cobra.Command{
		Use:   "install",
		Short: "Install the cluster's part: a namespace for configurations, roles, and the admission policies",
		Long: `Install the namespace ` + cmdutil.ConfigNamespace + `, whose ConfigMaps every node may read, cluster roles for users who assign or look, without bindings, and the
admission policies that allow only users with permission to assign, and to change configurations there. Manual changes and additions are
replaced: without any, kubectl apply --server-side -k deploy/manifests makes the same.

With --controller also what pools need: the kind KubeletPool, its policies and roles, and two replicas of kubelet-supervisor-controller in a namespace of
their own. It has no public image: --image names yours, and --image=none leaves the program out. A node that hosts a replica is
root on all nodes, so they run on control-plane nodes alone. Where there are none, --` + hostsFlag + ` has to name the nodes that may: by a label that
few may write, as those of the prefix kubelet-supervisor.io/, which ask for the verb ` + deploy.AssignVerb + `.

With --controller=` + external + ` what a controller outside of the cluster needs: the same without the program. The rights are bound to the user
` + deploy.ControllerUser + ` and not to a ServiceAccount, so that no node and no pod has them.`,
		Example: `  kubectl kubelet install
  kubectl kubelet install --dry-run=client -o yaml
  kubectl kubelet install --controller --image=registry.example/kubelet-supervisor-controller:v1
  kubectl kubelet install --controller --image=registry.example/kubelet-supervisor-controller:v1 --controller-node-selector=kubelet-supervisor.io/controller
  kubectl kubelet install --controller=external`,
		Args: cobra.NoArgs,
		RunE: cmdutil.RunE(o),
	}
	command.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	command.Flags().StringVar(&o.controller, "controller", "", "also what pools need, and their controller; "+external+": one outside of the cluster")
	command.Flags().Lookup("controller").NoOptDefVal = inCluster
	command.Flags().StringVar(&o.image, "image", "", "the controller's image, or none")
	command.Flags().StringVar(&o.hosts, hostsFlag, "", "the labels of the nodes that may host the controller; without it control-plane nodes")
	o.dryRun.AddFlag(command.Flags())
	o.print = cmdutil.PrintFlags(command, "")
	return command
}

// Complete has nothing to take.
func (o *installOptions) Complete(*cobra.Command, []string) error { return nil }

// Validate refuses flags that contradict each other.
func (o *installOptions) Validate() error {
	_, err := o.objects()
	return err
}

// Run shows what is installed, asks, and installs it.
func (o *installOptions) Run(ctx context.Context) error {
	objects, err := o.objects()
	if err != nil {
		return err
	}
	if o.runs() && o.dryRun != cmdutil.DryRunClient {
		if err := o.examineHosts(ctx, o.Factory); err != nil {
			return err
		}
	}
	if o.controller != "" && o.dryRun != cmdutil.DryRunClient {
		if err := o.noteController(ctx, o.Factory, objects); err != nil {
			return err
		}
	}
	if !o.yes && o.dryRun == cmdutil.DryRunNone {
		for _, object := range objects {
			o.Note("  %s %s", object.GetKind(), object.GetName())
		}
		if err := o.Confirm("Install these?"); err != nil {
			return err
		}
	}
	return applyAll(ctx, o.Factory, objects, o.dryRun, o.print)
}

// manifests returns the objects of deploy/manifests in an order in which each comes after those that it needs.
func manifests() ([]*unstructured.Unstructured, error) {
	return readManifests(deploy.Manifests, "manifests/*.yaml")
}

func readManifests(from fs.FS, glob string) ([]*unstructured.Unstructured, error) {
	files, err := fs.Glob(from, glob)
	if err != nil {
		return nil, fmt.Errorf("reading the manifests: %w", err)
	}
	var namespaces, others []*unstructured.Unstructured
	for _, file := range files {
		if path.Base(file) == "kustomization.yaml" {
			continue
		}
		text, err := fs.ReadFile(from, file)
		if err != nil {
			return nil, fmt.Errorf("reading the manifests: %w", err)
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
		for {
			object := &unstructured.Unstructured{}
			err := decoder.Decode(object)
			if errors.Is(err, io.EOF) {
				break
			}
			switch {
			case err != nil:
				return nil, fmt.Errorf("reading manifest %s: %w", file, err)
			case len(object.Object) == 0: // only comments between two separators
			case object.GetKind() == "Namespace":
				namespaces = append(namespaces, object)
			default:
				others = append(others, object)
			}
		}
	}
	return append(namespaces, others...), nil
}

func applyAll(ctx context.Context, f *cmdutil.Factory, objects []*unstructured.Unstructured, dry cmdutil.DryRun, print *genericclioptions.PrintFlags) error {
	if dry == cmdutil.DryRunClient {
		for _, object := range objects {
			if err := f.PrintObject(print, dry.Did("installed"), object); err != nil {
				return err
			}
		}
		return nil
	}
	client, err := f.ConnectDynamic()
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	discovery, err := f.Flags.ToDiscoveryClient()
	if err != nil {
		return fmt.Errorf("asking the API server for its kinds: %w", err)
	}
	discovery.Invalidate() // the cache may be from before an upgrade
	mapper, err := f.Flags.ToRESTMapper()
	if err != nil {
		return fmt.Errorf("asking the API server for its kinds: %w", err)
	}
	for _, object := range objects {
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			if why := notInstalled(object); why != "" {
				f.Note("%s", why)
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("asking the API server about %s: %w", kind.Kind, err)
		}
		applied, err := applyObject(ctx, client, mapping, object, dry)
		if err != nil {
			return fmt.Errorf("installing %s %s: %w", kind.Kind, object.GetName(), err)
		}
		if err := f.PrintObject(print, dry.Did("installed"), applied); err != nil {
			return err
		}
	}
	return nil
}

// notInstalled returns what it means that the API server does not have the kind of an object; "" if another
// object's text covers it.
func notInstalled(object *unstructured.Unstructured) string {
	switch object.GetKind() {
	case "ValidatingAdmissionPolicyBinding":
		return ""
	case "ValidatingAdmissionPolicy":
		return fmt.Sprintf("This API server has no admission policies (Kubernetes 1.30 and later have), so %s is not installed: %s. RBAC alone limits that.",
			object.GetName(), withoutPolicy[object.GetName()])
	}
	return fmt.Sprintf("This API server has no %s of %s, so %s is not installed.", object.GetKind(), object.GetAPIVersion(), object.GetName())
}

// applyObject makes an object equal to its manifest, even after manual changes. Server-side apply overwrites
// changed values, but leaves values that were added to a list, for example a match condition. If the object still
// differs, it is replaced as a whole, for the version that was read; foreign labels and annotations stay.
func applyObject(ctx context.Context, client dynamic.Interface, mapping *meta.RESTMapping, object *unstructured.Unstructured, dry cmdutil.DryRun) (*unstructured.Unstructured, error) {
	var api dynamic.ResourceInterface = client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		api = client.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	now, err := api.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: cmdutil.FieldManager, Force: true, DryRun: dry.Option()})
	if err != nil || filledIn[object.GetKind()] || len(otherFields(now, object)) == 0 {
		return now, err
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		replaced, err := api.Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		for field := range replaced.Object {
			if !commonFields[field] {
				delete(replaced.Object, field)
			}
		}
		for field, value := range object.Object {
			if !commonFields[field] {
				replaced.Object[field] = runtime.DeepCopyJSONValue(value)
			}
		}
		now, err = api.Update(ctx, replaced, metav1.UpdateOptions{FieldManager: cmdutil.FieldManager, DryRun: dry.Option()})
		return err
	})
	return now, err
}

// filledIn has the kinds whose spec the API server completes, so that objects always differ from their manifests.
var filledIn = map[string]bool{"Namespace": true, "CustomResourceDefinition": true, "Deployment": true, "Service": true, "PodDisruptionBudget": true, "NetworkPolicy": true}

// commonFields are fields that do not affect what an object does.
var commonFields = map[string]bool{"apiVersion": true, "kind": true, "metadata": true, "status": true}

// otherFields names the fields in which an object differs from its manifest; those of a spec one by one.
func otherFields(object, manifest *unstructured.Unstructured) []string {
	var names []string
	differ := func(prefix string, a, b map[string]any) {
		both := maps.Clone(a)
		maps.Copy(both, b)
		for _, field := range slices.Sorted(maps.Keys(both)) {
			if !equality.Semantic.DeepEqual(a[field], b[field]) {
				names = append(names, prefix+field)
			}
		}
	}
	content := func(u *unstructured.Unstructured) (fields, spec map[string]any) {
		fields = maps.Clone(u.Object)
		maps.DeleteFunc(fields, func(field string, _ any) bool { return commonFields[field] })
		if spec, _ = fields["spec"].(map[string]any); spec == nil {
			spec = map[string]any{}
		}
		delete(fields, "spec")
		return fields, spec
	}
	aFields, aSpec := content(object)
	bFields, bSpec := content(manifest)
	differ("", aFields, bFields)
	differ("spec.", aSpec, bSpec)
	return names
}
