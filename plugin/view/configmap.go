package view

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/document"
)

// GetConfigMap reads the ConfigMap of an assignment, and sets the assignment's key if it has none.
func GetConfigMap(ctx context.Context, client kubernetes.Interface, r nodev1.Assignment) (*corev1.ConfigMap, nodev1.Assignment, error) {
	name := r.Namespace + "/" + r.Name
	found, err := client.CoreV1().ConfigMaps(r.Namespace).Get(ctx, r.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, r, fmt.Errorf("ConfigMap %s does not exist; see kubectl get configmaps -n %s, or push it", name, r.Namespace)
	case err != nil:
		return nil, r, fmt.Errorf("reading ConfigMap %s: %w", name, err)
	case r.UID != "" && r.UID != string(found.UID):
		return nil, r, fmt.Errorf("ConfigMap %s has the uid %s, and %s is asked for: it was made again", name, found.UID, r.UID)
	}
	if r.Key == "" {
		if r.Key, err = document.KeyOf(found); err != nil {
			return nil, r, err
		}
	}
	return found, r, nil
}

// IsVersion reports whether a ConfigMap is the exact version that a node names.
func IsVersion(found *corev1.ConfigMap, source *corev1.NodeConfigSource) bool {
	return found.UID == source.ConfigMap.UID && found.ResourceVersion == source.ConfigMap.ResourceVersion
}
