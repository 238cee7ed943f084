package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// noteController prints, before anything is written, what happens to an existing controller: which identity loses
// its permissions, and what stays.
func (o installOptions) noteController(ctx context.Context, f *cmdutil.Factory, objects []*unstructured.Unstructured) error {
	client, err := f.Connect()
	if err != nil {
		return err
	}
	var loses, gets []string
	for _, object := range objects {
		if object.GetName() != deploy.ControllerName || !strings.HasSuffix(object.GetKind(), "RoleBinding") {
			continue
		}
		now, err := boundNow(ctx, client, object)
		if err != nil {
			return fmt.Errorf("looking whose the controller's rights are: %w", err)
		}
		var wanted rbacv1.RoleBinding
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &wanted); err != nil {
			return fmt.Errorf("reading the manifest of %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		gets = append(gets, subjectNames(wanted.Subjects)...)
		loses = append(loses, subjectNames(now)...)
	}
	loses = slices.DeleteFunc(loses, func(subject string) bool { return slices.Contains(gets, subject) })
	if len(loses) > 0 {
		f.Note("The rights of the controller go to %s. These lose them, so a controller that runs as one of them changes nothing afterwards: %s", view.FirstOf(unique(gets), ", "), view.FirstOf(unique(loses), ", "))
	}
	if o.controller == external {
		return noteDeployment(ctx, f, client)
	}
	return nil
}

// noteDeployment names the program that install --controller has made: a controller outside of the cluster
// replaces it, and install deletes nothing.
func noteDeployment(ctx context.Context, f *cmdutil.Factory, client kubernetes.Interface) error {
	_, err := client.AppsV1().Deployments(deploy.ControllerNamespace).Get(ctx, deploy.ControllerName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("looking for the controller's Deployment: %w", err)
	}
	f.Note("Deployment %s/%s stays, and its pods have no rights. Remove it: kubectl delete deployment,poddisruptionbudget,service,networkpolicy %s -n %s",
		deploy.ControllerNamespace, deploy.ControllerName, deploy.ControllerName, deploy.ControllerNamespace)
	return nil
}

// boundNow returns the current subjects of a binding; none if it does not exist.
func boundNow(ctx context.Context, client kubernetes.Interface, object *unstructured.Unstructured) (subjects []rbacv1.Subject, err error) {
	if object.GetNamespace() == "" {
		var binding *rbacv1.ClusterRoleBinding
		if binding, err = client.RbacV1().ClusterRoleBindings().Get(ctx, object.GetName(), metav1.GetOptions{}); err == nil {
			subjects = binding.Subjects
		}
	} else {
		var binding *rbacv1.RoleBinding
		if binding, err = client.RbacV1().RoleBindings(object.GetNamespace()).Get(ctx, object.GetName(), metav1.GetOptions{}); err == nil {
			subjects = binding.Subjects
		}
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return subjects, err
}

func subjectNames(subjects []rbacv1.Subject) (names []string) {
	for _, subject := range subjects {
		name := subject.Name
		if subject.Namespace != "" {
			name = subject.Namespace + "/" + name
		}
		names = append(names, subject.Kind+" "+name)
	}
	return names
}

func unique(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }
