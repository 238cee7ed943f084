package plugin

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/util/hash"
)

// hashedName adds to a ConfigMap's name the hash of its content that `kubectl create configmap --append-hash` adds.
func hashedName(name string, data map[string]string, binaryData map[string][]byte) (string, error) {
	digits, err := hash.ConfigMapHash(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data, BinaryData: binaryData})
	if err != nil {
		return "", fmt.Errorf("hashing ConfigMap %s: %w", name, err)
	}
	return name + "-" + digits, nil
}
