package plugin

import (
	"context"
	"fmt"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// grantPatience is how long the API server may take to know a new RoleBinding.
const grantPatience = 5 * time.Second

func nodeUser(node string) string { return "system:node:" + node }

func grantName(configMap string) string { return "kubelet-supervisor:" + configMap }

// canRead asks the API server whether a node may read a ConfigMap. known is false for people who may not ask that.
func canRead(ctx context.Context, client kubernetes.Interface, node string, r reference) (allowed, known bool, err error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: nodeUser(node), Groups: []string{"system:nodes", "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: r.namespace, Name: r.name, Resource: "configmaps", Verb: "get"},
	}}
	answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return false, false, nil
	case err != nil:
		return false, false, fmt.Errorf("asking whether node %s may read ConfigMap %s/%s: %w", node, r.namespace, r.name, err)
	}
	return answer.Status.Allowed, true, nil
}

// grant lets a node read a ConfigMap, unless it may already: by a Role for this one ConfigMap, and a RoleBinding to the users of
// the nodes that it is assigned to.
func (s *session) grant(ctx context.Context, client kubernetes.Interface, node string, r reference, dry dryRun) error {
	allowed, known, err := canRead(ctx, client, node, r)
	// Who may not ask: `install` lets every node read this namespace.
	if err != nil || allowed || !known && r.namespace == configNamespace {
		return err
	}
	name := fmt.Sprintf("RoleBinding %s/%s", r.namespace, grantName(r.name))
	if dry == dryRunClient {
		s.note("%s: would be let read ConfigMap %s/%s, by %s", node, r.namespace, r.name, name)
		return nil
	}
	if err := makeGrant(ctx, client, node, r, dry); err != nil {
		return fmt.Errorf("letting node %s read ConfigMap %s/%s: %w; ask somebody who may make Roles there, or push to namespace %s", node, r.namespace, r.name, err, configNamespace)
	}
	s.note("%s: may read ConfigMap %s/%s, by %s", node, r.namespace, r.name, name)
	if !known || dry != dryRunNone {
		return nil
	}
	ticker := time.NewTicker(lookInterval / 5)
	defer ticker.Stop()
	for begin := time.Now(); !allowed && time.Since(begin) < grantPatience; {
		if allowed, _, err = canRead(ctx, client, node, r); err != nil || allowed {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil // the node tries again by itself
}

func makeGrant(ctx context.Context, client kubernetes.Interface, node string, r reference, dry dryRun) error {
	meta := metav1.ObjectMeta{Name: grantName(r.name), Namespace: r.namespace, Labels: map[string]string{purposeLabel: purposeGrant}}
	options := metav1.CreateOptions{FieldManager: fieldManager, DryRun: dry.option()}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{r.name}, Verbs: []string{"get", "list", "watch"},
	}}}
	if _, err := client.RbacV1().Roles(r.namespace).Create(ctx, role, options); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: nodeUser(node)}
	bindings := client.RbacV1().RoleBindings(r.namespace)
	_, err := bindings.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
	}, options)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		found, err := bindings.Get(ctx, meta.Name, metav1.GetOptions{})
		if err != nil || slices.Contains(found.Subjects, subject) {
			return err
		}
		found.Subjects = append(found.Subjects, subject)
		_, err = bindings.Update(ctx, found, metav1.UpdateOptions{FieldManager: fieldManager, DryRun: dry.option()})
		return err
	})
}

// revoke takes away from a node what grants let it read in a namespace ("" for all), and removes grants that are for nobody any more.
func (s *session) revoke(ctx context.Context, client kubernetes.Interface, namespace, node string, dry dryRun) error {
	list, err := client.RbacV1().RoleBindings(namespace).List(ctx, metav1.ListOptions{LabelSelector: purposeLabel + "=" + purposeGrant})
	if err != nil {
		return fmt.Errorf("listing what nodes may read: %w", err)
	}
	for i := range list.Items {
		binding := &list.Items[i]
		left := slices.DeleteFunc(slices.Clone(binding.Subjects), func(subject rbacv1.Subject) bool { return subject.Name == nodeUser(node) })
		if len(left) == len(binding.Subjects) {
			continue
		}
		if err := setSubjects(ctx, client, binding, left, dry); err != nil {
			return err
		}
		s.note("%s: may not read the ConfigMap of RoleBinding %s/%s any more", node, binding.Namespace, binding.Name)
	}
	return nil
}

// setSubjects changes whom a grant is for; without anybody it goes, and its Role.
func setSubjects(ctx context.Context, client kubernetes.Interface, binding *rbacv1.RoleBinding, subjects []rbacv1.Subject, dry dryRun) error {
	if dry == dryRunClient {
		return nil
	}
	name := binding.Namespace + "/" + binding.Name
	if len(subjects) > 0 {
		changed := binding.DeepCopy()
		changed.Subjects = subjects
		if _, err := client.RbacV1().RoleBindings(binding.Namespace).Update(ctx, changed, metav1.UpdateOptions{FieldManager: fieldManager, DryRun: dry.option()}); err != nil {
			return fmt.Errorf("changing RoleBinding %s: %w", name, err)
		}
		return nil
	}
	// Only what was looked at goes: an assignment of this moment may have added a node.
	options := metav1.DeleteOptions{DryRun: dry.option(), Preconditions: &metav1.Preconditions{ResourceVersion: &binding.ResourceVersion}}
	if err := client.RbacV1().RoleBindings(binding.Namespace).Delete(ctx, binding.Name, options); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing RoleBinding %s: %w", name, err)
	}
	if err := client.RbacV1().Roles(binding.Namespace).Delete(ctx, binding.Name, metav1.DeleteOptions{DryRun: dry.option()}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing Role %s: %w", name, err)
	}
	return nil
}
