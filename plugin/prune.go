package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// pruneOptions are the flags of prune.
type pruneOptions struct {
	*cmdutil.Factory
	yes    bool
	minAge time.Duration
	dryRun cmdutil.DryRun
}

func newPrune(f *cmdutil.Factory) *cobra.Command {
	o := &pruneOptions{Factory: f}
	command := &cobra.Command{
		Use:   "prune",
		Short: "Remove configurations and permissions that no node uses",
		Long: `Remove what this plugin made and no node uses: configurations that no Node is assigned, runs or falls back to, that no pool has a layer from, and that
rollback would not go back to; permissions of nodes to read what they are not assigned. In all namespaces, or in that of -n. A ConfigMap whose name
has another hash than its content was edited or copied, and stays. What pools are rendered to is their controller's, and is not touched.`,
		Example: "  kubectl kubelet prune --dry-run=client",
		Args:    cobra.NoArgs,
		RunE:    cmdutil.RunE(o),
	}
	command.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	command.Flags().DurationVar(&o.minAge, "min-age", time.Hour, "keep younger configurations, because a user may be about to assign them")
	o.dryRun.AddFlag(command.Flags())
	return command
}

// Complete has nothing to take.
func (o *pruneOptions) Complete(*cobra.Command, []string) error { return nil }

// Validate has nothing to refuse.
func (o *pruneOptions) Validate() error {
	return nil
}

// Run shows what can be removed, asks, and removes it.
func (o *pruneOptions) Run(ctx context.Context) error {
	client, err := o.Connect()
	if err != nil {
		return err
	}
	find := func() (waste, error) { return findWaste(ctx, o.Factory, client, o.minAge) }
	found, err := find()
	if err != nil {
		return err
	}
	if len(found.configMaps) == 0 && len(found.grants) == 0 {
		o.Note("Nothing to remove: everything is used, or younger than --min-age.")
		return nil
	}
	if !o.yes && o.dryRun == cmdutil.DryRunNone {
		if err := confirmWaste(o.Factory, found); err != nil {
			return err
		}
		now, err := find() // an assignment may have been made before the user answered
		if err != nil {
			return err
		}
		found = stillWaste(o.Factory, found, now)
	}
	return removeWaste(ctx, o.Factory, client, found, o.dryRun)
}

// waste has what can be removed.
type waste struct {
	configMaps []corev1.ConfigMap
	grants     []rbacv1.RoleBinding // with the subjects that stay
}

func findWaste(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, minAge time.Duration) (waste, error) {
	nodes, err := view.Selection{}.Nodes(ctx, client)
	if err != nil {
		return waste{}, err
	}
	namespace := ""
	if f.Flags.Namespace != nil {
		namespace = *f.Flags.Namespace
	}
	configMaps, err := client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: document.PurposeLabel + "=" + document.PurposeConfiguration})
	if err != nil {
		return waste{}, fmt.Errorf("listing configurations: %w; with -n only one namespace is looked at", err)
	}
	bindings, err := client.RbacV1().RoleBindings(namespace).List(ctx, metav1.ListOptions{LabelSelector: document.PurposeLabel + "=" + document.PurposeGrant})
	if apierrors.IsForbidden(err) {
		f.Note("What nodes may read is left as it is: %v", err)
		bindings = &rbacv1.RoleBindingList{}
	} else if err != nil {
		return waste{}, fmt.Errorf("listing what nodes may read: %w", err)
	}
	u := usageOf(nodes)
	for _, v := range nodes {
		entries, err := v.Record()
		if err != nil { // without a record it is not known what rollback needs
			return waste{}, err
		}
		if revision, err := previous(v, entries); err == nil {
			u.use(entries[revision-1].Source)
		}
	}
	if err := useOfPools(ctx, f, client, u); err != nil {
		return waste{}, err
	}
	var w waste
	for _, c := range configMaps.Items {
		young := f.Now().Sub(c.CreationTimestamp.Time) < minAge
		if document.IsPushed(&c) && !u.configMaps[c.Namespace+"/"+c.Name] && !young {
			w.configMaps = append(w.configMaps, c)
		}
	}
	w.grants = u.staleGrants(bindings.Items)
	return w, nil
}

// usage has what Nodes use. A node's own status can only add to it.
type usage struct {
	configMaps map[string]bool   // by NAMESPACE/NAME
	assigned   map[string]string // by node, NAMESPACE/NAME
}

func usageOf(nodes []view.Node) usage {
	u := usage{map[string]bool{}, map[string]string{}}
	for _, v := range nodes {
		if r, ok := v.Current(); ok && !r.IsLocal() {
			u.assigned[v.Name] = r.Namespace + "/" + r.Name
		}
		u.use(v.Says.Assignment)
		if v.Spec.ConfigSource != nil { // an annotation may override it
			u.use(nodev1.AssignmentOf(v.Spec.ConfigSource).String())
		}
		for _, source := range []*corev1.NodeConfigSource{v.Says.Config.Assigned, v.Says.Config.Active, v.Says.Config.LastKnownGood} {
			u.use(nodev1.AssignmentOf(source).String())
		}
	}
	return u
}

// useOfPools adds the ConfigMaps that pools have layers from, including those of stored revisions. If they cannot
// be read, it fails, and nothing is removed.
func useOfPools(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, u usage) error {
	pools, err := f.ListPools(ctx, client)
	if err != nil {
		return fmt.Errorf("%w; so which configurations they have layers from is not known (ClusterRole %s lets you list them)", err, deploy.PoolViewerRole)
	}
	if len(pools) == 0 {
		return nil
	}
	for _, p := range view.CorePools(pools) {
		for _, layer := range p.Refs() {
			u.configMaps[rollout.Namespace+"/"+layer.Name] = true
		}
	}
	kept, err := view.ReadRevisions(ctx, client, "")
	if err != nil {
		return fmt.Errorf("%w; so which configurations they have layers from is not known (Role %s lets you list them)", err, deploy.PoolViewerRole)
	}
	for _, r := range kept {
		for _, layer := range r.Layers {
			u.configMaps[layer.From] = true
		}
	}
	return nil
}

func (u usage) use(assignment string) {
	if r, err := nodev1.ParseAssignment(assignment); err == nil && !r.IsLocal() {
		u.configMaps[r.Namespace+"/"+r.Name] = true
	}
}

// staleGrants returns the grants for nodes that are not assigned the ConfigMap, each with the subjects that stay.
func (u usage) staleGrants(bindings []rbacv1.RoleBinding) []rbacv1.RoleBinding {
	var stale []rbacv1.RoleBinding
	for _, binding := range bindings {
		if !isGrant(&binding) {
			continue
		}
		configMap := binding.Namespace + "/" + strings.TrimPrefix(binding.Name, grantName(""))
		left := slices.DeleteFunc(slices.Clone(binding.Subjects), func(subject rbacv1.Subject) bool {
			node, is := strings.CutPrefix(subject.Name, nodeUser(""))
			return is && u.assigned[node] != configMap
		})
		if len(left) < len(binding.Subjects) || len(left) == 0 {
			binding.Subjects = left
			stale = append(stale, binding)
		}
	}
	return stale
}

// confirmWaste shows what will be removed, and asks.
func confirmWaste(f *cmdutil.Factory, w waste) error {
	for _, c := range w.configMaps {
		f.Note("  ConfigMap %s/%s, %s old", c.Namespace, c.Name, view.Age(f.Now(), c.CreationTimestamp.Time))
	}
	for _, g := range w.grants {
		what := "altogether"
		if len(g.Subjects) > 0 {
			what = fmt.Sprintf("except for %d nodes that are assigned it", len(g.Subjects))
		}
		f.Note("  RoleBinding %s/%s, %s", g.Namespace, g.Name, what)
	}
	return f.Confirm("Remove these?")
}

// stillWaste returns the shown objects that still can be removed, in their current version, and prints those that
// cannot.
func stillWaste(f *cmdutil.Factory, shown, now waste) waste {
	var w waste
	for _, c := range shown.configMaps {
		i := slices.IndexFunc(now.configMaps, func(x corev1.ConfigMap) bool { return x.UID == c.UID && x.Namespace == c.Namespace && x.Name == c.Name })
		if i < 0 {
			f.Note("ConfigMap %s/%s stays, because it is in use now.", c.Namespace, c.Name)
			continue
		}
		w.configMaps = append(w.configMaps, now.configMaps[i])
	}
	for _, g := range shown.grants {
		i := slices.IndexFunc(now.grants, func(x rbacv1.RoleBinding) bool { return x.Namespace == g.Namespace && x.Name == g.Name })
		if i < 0 {
			f.Note("RoleBinding %s/%s stays, because it is in use now.", g.Namespace, g.Name)
			continue
		}
		w.grants = append(w.grants, now.grants[i])
	}
	return w
}

func removeWaste(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, w waste, dry cmdutil.DryRun) error {
	var errs []error
	for _, c := range w.configMaps {
		errs = append(errs, removeConfigMap(ctx, f, client, c, dry))
	}
	for _, g := range w.grants {
		err := setSubjects(ctx, client, &g, g.Subjects, dry)
		if err == nil {
			_, _ = fmt.Fprintf(f.Out, "rolebinding.rbac.authorization.k8s.io/%s %s\n", g.Name, dry.Did("pruned"))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func removeConfigMap(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, c corev1.ConfigMap, dry cmdutil.DryRun) error {
	if dry != cmdutil.DryRunClient {
		options := metav1.DeleteOptions{DryRun: dry.Option(), Preconditions: &metav1.Preconditions{UID: &c.UID, ResourceVersion: &c.ResourceVersion}}
		if err := client.CoreV1().ConfigMaps(c.Namespace).Delete(ctx, c.Name, options); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("removing ConfigMap %s/%s: %w", c.Namespace, c.Name, err)
		}
	}
	_, _ = fmt.Fprintf(f.Out, "configmap/%s %s\n", c.Name, dry.Did("pruned"))
	return nil
}
