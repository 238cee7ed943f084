package plugin

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/cmdutil"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
)

// putConfigMap creates the ConfigMap unless it exists, and reports which.
func putConfigMap(ctx context.Context, client kubernetes.Interface, wanted *corev1.ConfigMap, dry cmdutil.DryRun) (*corev1.ConfigMap, string, error) {
	if dry == cmdutil.DryRunClient {
		return wanted, "created", nil
	}
	name := wanted.Namespace + "/" + wanted.Name
	api := client.CoreV1().ConfigMaps(wanted.Namespace)
	made, err := api.Create(ctx, wanted, metav1.CreateOptions{FieldManager: cmdutil.FieldManager, DryRun: dry.Option()})
	switch {
	case err == nil:
		return made, "created", nil
	case apierrors.IsNotFound(err):
		return nil, "", fmt.Errorf("making ConfigMap %s: %w; make the namespace: kubectl kubelet install, or kubectl create namespace %s", name, err, wanted.Namespace)
	case !apierrors.IsAlreadyExists(err):
		return nil, "", fmt.Errorf("making ConfigMap %s: %w", name, err)
	}
	found, err := api.Get(ctx, wanted.Name, metav1.GetOptions{})
	if err != nil {
		return nil, "", fmt.Errorf("reading ConfigMap %s: %w", name, err)
	}
	if !maps.Equal(found.Data, wanted.Data) || !maps.EqualFunc(found.BinaryData, wanted.BinaryData, slices.Equal) {
		return nil, "", fmt.Errorf("ConfigMap %s exists with another content, so it was edited: delete it, or push under another name", name)
	}
	if found.Immutable != nil && *found.Immutable && found.Labels[document.PurposeLabel] == document.PurposeConfiguration {
		return found, "unchanged", nil
	}
	// It may have been made by kubectl create --append-hash.
	patch := fmt.Sprintf(`{"immutable":true,"metadata":{"labels":{%q:%q},"annotations":{%q:%q}}}`,
		document.PurposeLabel, document.PurposeConfiguration, document.NameAnnotation, wanted.Annotations[document.NameAnnotation])
	made, err = api.Patch(ctx, wanted.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: cmdutil.FieldManager, DryRun: dry.Option()})
	if err != nil {
		return nil, "", fmt.Errorf("making ConfigMap %s immutable: %w", name, err)
	}
	return made, "made immutable", nil
}
