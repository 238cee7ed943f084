package plugin

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	configsync "github.com/kubelet-supervisor/kubelet-supervisor/sync"
)

// defaultKey is the key that push writes and that an assignment without a key means.
const defaultKey = "kubelet"

// localText assigns the node's own configuration.
const localText = "local"

// A reference names a configuration. Its zero value is local.
type reference struct {
	namespace, name, key string
	uid                  string // "" unless it is pinned to one object
}

func (r reference) local() bool { return r == reference{} }

// String writes it as the annotation has it.
func (r reference) String() string {
	switch {
	case r.local():
		return localText
	case r.uid != "":
		return fmt.Sprintf("%s/%s/%s@%s", r.namespace, r.name, r.key, r.uid)
	}
	return fmt.Sprintf("%s/%s/%s", r.namespace, r.name, r.key)
}

// unpinned is the same without a uid.
func (r reference) unpinned() reference {
	r.uid = ""
	return r
}

// parseReference reads what a person wrote: NAME, NAMESPACE/NAME or NAMESPACE/NAME/KEY, each with @UID or without, or local.
// The key is "" where none is given.
func parseReference(text, namespace string) (reference, error) {
	if text == localText {
		return reference{}, nil
	}
	body, uid, pinned := strings.Cut(text, "@")
	parts := strings.SplitN(body, "/", 3)
	if len(parts) == 1 {
		parts = []string{namespace, parts[0]}
	}
	r := reference{namespace: parts[0], name: parts[1], uid: uid}
	if len(parts) == 3 {
		r.key = parts[2]
		if r.key == "" {
			return reference{}, fmt.Errorf("%q ends with a slash; write NAMESPACE/NAME or NAMESPACE/NAME/KEY", text)
		}
	}
	probe := r
	if probe.key == "" {
		probe.key = defaultKey
	}
	if pinned && uid == "" {
		return reference{}, fmt.Errorf("%q ends with @; write a uid after it, or leave it out", text)
	}
	if _, _, _, _, _, err := configsync.ParseAssignment(probe.String()); err != nil {
		return reference{}, fmt.Errorf("%q names no configuration: %w; write NAMESPACE/NAME, NAMESPACE/NAME/KEY or local", text, err)
	}
	return r, nil
}

// parseAssignment reads what stands on a Node. ok is false for what no node would follow.
func parseAssignment(text string) (r reference, ok bool) {
	namespace, name, key, uid, local, err := configsync.ParseAssignment(text)
	if err != nil || local {
		return reference{}, err == nil
	}
	return reference{namespace, name, key, uid}, true
}

// referenceTo is how the source of a status would be assigned, without its uid.
func referenceTo(source *corev1.NodeConfigSource) reference {
	if source == nil || source.ConfigMap == nil {
		return reference{}
	}
	c := source.ConfigMap
	return reference{namespace: c.Namespace, name: c.Name, key: c.KubeletConfigKey}
}

// keyOf finds the key that holds the configuration where a person named none: the usual one, or the only one.
func keyOf(configMap *corev1.ConfigMap) (string, error) {
	if _, is := configMap.Data[defaultKey]; is {
		return defaultKey, nil
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
