package plugin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// grantPatience is how long the API server may take to apply a new RoleBinding.
const grantPatience = 5 * time.Second

func nodeUser(node string) string { return "system:node:" + node }

func grantName(configMap string) string { return "kubelet-supervisor:" + configMap }

// canRead asks the API server whether a node may read a ConfigMap. known is false if the user may not ask that.
func canRead(ctx context.Context, client kubernetes.Interface, node string, r nodev1.Assignment) (allowed, known bool, err error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: nodeUser(node), Groups: []string{"system:nodes", "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: r.Namespace, Name: r.Name, Resource: "configmaps", Verb: "get"},
	}}
	answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return false, false, nil
	case err != nil:
		return false, false, fmt.Errorf("asking whether node %s may read ConfigMap %s/%s: %w", node, r.Namespace, r.Name, err)
	}
	return answer.Status.Allowed, true, nil
}

// A granter allows nodes to read a ConfigMap, for one command.
//
// The permission is a Role for this one ConfigMap, and one RoleBinding to the users of its nodes, written once for the
// whole command. A node takes about 80 bytes, so 10,000 nodes fit into an object. One RoleBinding per node would need a write per
// node, and the API server would evaluate thousands of objects for each request in that namespace. A shared RoleBinding that is
// extended node by node would be written to etcd as a whole each time.
type granter struct {
	*cmdutil.Factory
	client kubernetes.Interface
	wanted nodev1.Assignment
	nodes  []view.Node // the nodes of the command
	dry    cmdutil.DryRun

	ask  sync.Once
	all  bool // every node may read it
	once sync.Once
	err  error
}

// node grants read access to one node that lacks it, and with it to the command's other nodes.
func (g *granter) node(ctx context.Context, node string) error {
	g.ask.Do(func() { g.all = g.everyNode(ctx) })
	if g.all {
		return nil
	}
	allowed, known, err := canRead(ctx, g.client, node, g.wanted)
	// For a user who may not ask: `install` allows every node to read this namespace.
	if err != nil || allowed || !known && g.wanted.Namespace == cmdutil.ConfigNamespace {
		return err
	}
	first := false
	g.once.Do(func() {
		first = true
		g.err = g.grant(ctx, g.nodes)
	})
	if g.err != nil {
		return g.err
	}
	if !first && known && g.dry == cmdutil.DryRunNone { // otherwise this node was granted access a moment ago
		if allowed, _, err = canRead(ctx, g.client, node, g.wanted); err != nil || allowed {
			return err
		}
		if err := g.grant(ctx, []view.Node{{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}}}); err != nil { // prune has removed it since
			return err
		}
	}
	if !known || g.dry != cmdutil.DryRunNone {
		return nil
	}
	return g.awaitGrant(ctx, node)
}

// everyNode asks whether the group of all nodes may read it, as in the namespace that install makes.
func (g *granter) everyNode(ctx context.Context) bool {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		Groups:             []string{"system:nodes", "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: g.wanted.Namespace, Name: g.wanted.Name, Resource: "configmaps", Verb: "get"},
	}}
	answer, err := g.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	return err == nil && answer.Status.Allowed
}

// awaitGrant waits until the API server applies the grant. It does not wait long, because the node tries again
// automatically.
func (g *granter) awaitGrant(ctx context.Context, node string) error {
	ticker := time.NewTicker(lookInterval / 5)
	defer ticker.Stop()
	for begin := time.Now(); time.Since(begin) < grantPatience; {
		if allowed, _, err := canRead(ctx, g.client, node, g.wanted); err != nil || allowed {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (g *granter) grant(ctx context.Context, nodes []view.Node) error {
	r := g.wanted
	who, name := view.CountNodes(nodes), fmt.Sprintf("RoleBinding %s/%s", r.Namespace, grantName(r.Name))
	if len(nodes) == 1 {
		who = nodes[0].Name
	}
	if g.dry == cmdutil.DryRunClient {
		g.Note("%s: would get read access to ConfigMap %s/%s, by %s", who, r.Namespace, r.Name, name)
		return nil
	}
	if err := makeGrant(ctx, g.client, nodes, r, g.dry); err != nil {
		err = fmt.Errorf("letting %s read ConfigMap %s/%s: %w", view.CountNodes(nodes), r.Namespace, r.Name, err)
		if apierrors.IsForbidden(err) {
			err = fmt.Errorf("%w; ask a user who may create Roles there, or push to namespace %s", err, cmdutil.ConfigNamespace)
		}
		return err
	}
	g.Note("%s: may read ConfigMap %s/%s, by %s", who, r.Namespace, r.Name, name)
	return nil
}

// grantConflicts retries while other commands write the same RoleBinding.
var grantConflicts = wait.Backoff{Steps: 12, Duration: 20 * time.Millisecond, Factor: 1.6, Jitter: 0.5, Cap: 2 * time.Second}

func makeGrant(ctx context.Context, client kubernetes.Interface, nodes []view.Node, r nodev1.Assignment, dry cmdutil.DryRun) error {
	meta := metav1.ObjectMeta{Name: grantName(r.Name), Namespace: r.Namespace, Labels: map[string]string{document.PurposeLabel: document.PurposeGrant}}
	options := metav1.CreateOptions{FieldManager: cmdutil.FieldManager, DryRun: dry.Option()}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{r.Name}, Verbs: []string{"get", "list", "watch"},
	}}}
	if err := makeGrantRole(ctx, client, role, options); err != nil {
		return err
	}
	var subjects []rbacv1.Subject
	for _, v := range nodes {
		subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: nodeUser(v.Name)})
	}
	bindings := client.RbacV1().RoleBindings(r.Namespace)
	wanted := &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}}
	_, err := bindings.Create(ctx, wanted, options)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return retry.RetryOnConflict(grantConflicts, func() error {
		found, err := bindings.Get(ctx, meta.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if found.RoleRef != wanted.RoleRef {
			return foreignGrant("RoleBinding", "is for "+found.RoleRef.Kind+" "+found.RoleRef.Name, found)
		}
		there := map[rbacv1.Subject]bool{}
		for _, subject := range found.Subjects {
			there[subject] = true
		}
		missing := slices.DeleteFunc(slices.Clone(subjects), func(subject rbacv1.Subject) bool { return there[subject] })
		if len(missing) == 0 {
			return nil
		}
		found.Subjects = append(found.Subjects, missing...)
		_, err = bindings.Update(ctx, found, metav1.UpdateOptions{FieldManager: cmdutil.FieldManager, DryRun: dry.Option()})
		return err
	})
}

// makeGrantRole makes the Role of a grant. An existing Role must be equal, because one with more permissions would
// give them to the nodes.
func makeGrantRole(ctx context.Context, client kubernetes.Interface, role *rbacv1.Role, options metav1.CreateOptions) error {
	roles := client.RbacV1().Roles(role.Namespace)
	_, err := roles.Create(ctx, role, options)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	found, err := roles.Get(ctx, role.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(found.Rules, role.Rules) {
		return foreignGrant("Role", "has other rules than reading this ConfigMap", found)
	}
	return nil
}

func foreignGrant(kind, why string, object metav1.Object) error {
	return fmt.Errorf("%s %s/%s exists and %s; find out who made it, then delete it: kubectl delete %s -n %s %s",
		kind, object.GetNamespace(), object.GetName(), bounded.Line(why), strings.ToLower(kind), object.GetNamespace(), object.GetName())
}

// leavers are nodes that a command has reset, and that no longer need to read their previous assignment.
type leavers struct {
	mutex sync.Mutex
	views []view.Node
}

func (l *leavers) add(v view.Node) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.views = append(l.views, v)
}

// revokeAfterReset removes the nodes' read access, in one write per grant. If the user has no permission for that,
// prune does it later, run by a user who has.
func revokeAfterReset(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, l *leavers) error {
	if len(l.views) == 0 {
		return nil
	}
	nodes, namespaces := map[string]bool{}, map[string]bool{}
	for _, v := range l.views {
		nodes[nodeUser(v.Name)] = true
		if r, ok := v.Current(); ok && !r.IsLocal() && r.Namespace != cmdutil.ConfigNamespace { // install allows reading there
			namespaces[r.Namespace] = true
		}
	}
	err := revoke(ctx, f, client, "", nodes)
	if !apierrors.IsForbidden(err) {
		return err
	}
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		if err := revoke(ctx, f, client, namespace, nodes); apierrors.IsForbidden(err) {
			f.Note("What %s may read in namespace %s stays (%v); kubectl kubelet prune removes it", view.CountNodes(l.views), namespace, err)
		} else if err != nil {
			return fmt.Errorf("%s reset, but: %w", view.CountNodes(l.views), err)
		}
	}
	return nil
}

// isGrant proves that the plugin has made a RoleBinding: by its label, its name and its Role. A copy made by a
// user is left alone (rule 24).
func isGrant(binding *rbacv1.RoleBinding) bool {
	return binding.Labels[document.PurposeLabel] == document.PurposeGrant && strings.HasPrefix(binding.Name, grantName("")) &&
		binding.RoleRef.Kind == "Role" && binding.RoleRef.Name == binding.Name
}

// revoke removes users from the grants in a namespace ("" for all), and removes grants without users.
func revoke(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface, namespace string, users map[string]bool) error {
	return retry.RetryOnConflict(grantConflicts, func() error {
		list, err := client.RbacV1().RoleBindings(namespace).List(ctx, metav1.ListOptions{LabelSelector: document.PurposeLabel + "=" + document.PurposeGrant})
		if err != nil {
			return fmt.Errorf("listing what nodes may read: %w", err)
		}
		for i := range list.Items {
			binding := &list.Items[i]
			left := slices.DeleteFunc(slices.Clone(binding.Subjects), func(subject rbacv1.Subject) bool { return users[subject.Name] })
			taken := len(binding.Subjects) - len(left)
			if taken == 0 || !isGrant(binding) {
				continue
			}
			if err := setSubjects(ctx, client, binding, left, cmdutil.DryRunNone); err != nil {
				return err
			}
			who := fmt.Sprintf("%d nodes", taken)
			if len(users) == 1 {
				for user := range users {
					who = strings.TrimPrefix(user, nodeUser(""))
				}
			}
			f.Note("%s: may no longer read the ConfigMap of RoleBinding %s/%s", who, binding.Namespace, binding.Name)
		}
		return nil
	})
}

// setSubjects changes the subjects of a grant; without subjects it removes the grant and its Role.
func setSubjects(ctx context.Context, client kubernetes.Interface, binding *rbacv1.RoleBinding, subjects []rbacv1.Subject, dry cmdutil.DryRun) error {
	if dry == cmdutil.DryRunClient {
		return nil
	}
	name := binding.Namespace + "/" + binding.Name
	if len(subjects) > 0 {
		changed := binding.DeepCopy()
		changed.Subjects = subjects
		if _, err := client.RbacV1().RoleBindings(binding.Namespace).Update(ctx, changed, metav1.UpdateOptions{FieldManager: cmdutil.FieldManager, DryRun: dry.Option()}); err != nil {
			return fmt.Errorf("changing RoleBinding %s: %w", name, err)
		}
		return nil
	}
	// Delete only the version that was read: a new assignment may have added a node.
	options := metav1.DeleteOptions{DryRun: dry.Option(), Preconditions: &metav1.Preconditions{ResourceVersion: &binding.ResourceVersion}}
	if err := client.RbacV1().RoleBindings(binding.Namespace).Delete(ctx, binding.Name, options); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing RoleBinding %s: %w", name, err)
	}
	return removeRole(ctx, client, binding, dry)
}

// removeRole removes the Role of a grant, unless it was not made by the plugin.
func removeRole(ctx context.Context, client kubernetes.Interface, binding *rbacv1.RoleBinding, dry cmdutil.DryRun) error {
	roles := client.RbacV1().Roles(binding.Namespace)
	role, err := roles.Get(ctx, binding.Name, metav1.GetOptions{})
	if err == nil && role.Labels[document.PurposeLabel] == document.PurposeGrant {
		err = roles.Delete(ctx, role.Name, metav1.DeleteOptions{DryRun: dry.Option(), Preconditions: &metav1.Preconditions{UID: &role.UID, ResourceVersion: &role.ResourceVersion}})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing Role %s/%s: %w", binding.Namespace, binding.Name, err)
	}
	return nil
}
