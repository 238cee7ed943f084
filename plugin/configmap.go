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

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
)

// putConfigMap makes the ConfigMap, or finds it made, and says which.
func (s *session) putConfigMap(ctx context.Context, client kubernetes.Interface, wanted *corev1.ConfigMap, dry dryRun) (*corev1.ConfigMap, string, error) {
	if dry == dryRunClient {
		return wanted, "created", nil
	}
	name := wanted.Namespace + "/" + wanted.Name
	api := client.CoreV1().ConfigMaps(wanted.Namespace)
	made, err := api.Create(ctx, wanted, metav1.CreateOptions{FieldManager: fieldManager, DryRun: dry.option()})
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
		return nil, "", fmt.Errorf("ConfigMap %s exists with another content, so somebody edited it: delete it, or push by another name", name)
	}
	if found.Immutable != nil && *found.Immutable && found.Labels[document.PurposeLabel] == document.PurposeConfiguration {
		return found, "unchanged", nil
	}
	// Made by kubectl create --append-hash, say.
	patch := fmt.Sprintf(`{"immutable":true,"metadata":{"labels":{%q:%q},"annotations":{%q:%q}}}`,
		document.PurposeLabel, document.PurposeConfiguration, document.NameAnnotation, wanted.Annotations[document.NameAnnotation])
	made, err = api.Patch(ctx, wanted.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: fieldManager, DryRun: dry.option()})
	if err != nil {
		return nil, "", fmt.Errorf("making ConfigMap %s immutable: %w", name, err)
	}
	return made, "made immutable", nil
}

// getConfigMap reads the one that an assignment names, and gives the assignment its key where it has none.
func getConfigMap(ctx context.Context, client kubernetes.Interface, r nodev1.Assignment) (*corev1.ConfigMap, nodev1.Assignment, error) {
	name := r.Namespace + "/" + r.Name
	found, err := client.CoreV1().ConfigMaps(r.Namespace).Get(ctx, r.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, r, fmt.Errorf("ConfigMap %s does not exist; see kubectl get configmaps -n %s, or push it", name, r.Namespace)
	case err != nil:
		return nil, r, fmt.Errorf("reading ConfigMap %s: %w", name, err)
	case r.UID != "" && r.UID != string(found.UID):
		return nil, r, fmt.Errorf("ConfigMap %s has the uid %s, and %s is asked for: it was made anew", name, found.UID, r.UID)
	}
	if r.Key == "" {
		if r.Key, err = document.KeyOf(found); err != nil {
			return nil, r, err
		}
	}
	return found, r, nil
}
