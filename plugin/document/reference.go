package document

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// DefaultKey is the key that push writes, and the key of an assignment without one.
const DefaultKey = "kubelet"

// ParseReference reads an assignment as a user writes it: NAME, NAMESPACE/NAME or NAMESPACE/NAME/KEY, each with or
// without @UID, or local. The key is "" if none is given.
func ParseReference(text, namespace string) (nodev1.Assignment, error) {
	if text == nodev1.Local {
		return nodev1.Assignment{}, nil
	}
	body, uid, pinned := strings.Cut(text, "@")
	parts := strings.SplitN(body, "/", 3)
	if len(parts) == 1 {
		parts = []string{namespace, parts[0]}
	}
	r := nodev1.Assignment{Namespace: parts[0], Name: parts[1], UID: uid}
	if len(parts) == 3 {
		r.Key = parts[2]
		if r.Key == "" {
			return nodev1.Assignment{}, fmt.Errorf("%q ends with a slash; write NAMESPACE/NAME or NAMESPACE/NAME/KEY", text)
		}
	}
	probe := r
	if probe.Key == "" {
		probe.Key = DefaultKey
	}
	if pinned && uid == "" {
		return nodev1.Assignment{}, fmt.Errorf("%q ends with @; write a uid after it, or leave it out", text)
	}
	if _, err := nodev1.ParseAssignment(probe.String()); err != nil {
		return nodev1.Assignment{}, fmt.Errorf("%q names no configuration: %w; write NAMESPACE/NAME, NAMESPACE/NAME/KEY or local", text, err)
	}
	return r, nil
}

// KeyOf returns the key that holds the configuration if the user named none: the usual one, or the only one.
func KeyOf(configMap *corev1.ConfigMap) (string, error) {
	if _, is := configMap.Data[DefaultKey]; is {
		return DefaultKey, nil
	}
	var keys []string
	for key := range configMap.Data {
		keys = append(keys, key)
	}
	if len(keys) == 1 {
		return keys[0], nil
	}
	slices.Sort(keys)
	name := configMap.Namespace + "/" + configMap.Name
	if len(keys) == 0 {
		return "", fmt.Errorf("ConfigMap %s holds nothing; push a configuration", name)
	}
	return "", fmt.Errorf("ConfigMap %s has the keys %s; name the one with the KubeletConfiguration: %s/KEY", name, strings.Join(keys, ", "), name)
}

// ShortReference omits the key if an assignment without one means the same.
func ShortReference(r nodev1.Assignment) string {
	if r.Key == DefaultKey && r.UID == "" {
		return r.Namespace + "/" + r.Name
	}
	return r.String()
}
