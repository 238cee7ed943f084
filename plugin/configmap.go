package plugin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// Labels by which the plugin knows what it made. Nothing else is ever changed or pruned.
const (
	purposeLabel         = "kubelet-supervisor.io/purpose"
	purposeConfiguration = "configuration" // a ConfigMap that push made
	purposeGrant         = "grant"         // a Role and its RoleBinding that let nodes read one ConfigMap
)

// nameAnnotation is the name that a configuration was pushed by, without the hash.
const nameAnnotation = "kubelet-supervisor.io/config-name"

// maxPayload is what nodes take at most: the bytes of all values.
const maxPayload = 1 << 20

func newConfigMap(namespace, name string, files []pushedFile) (*corev1.ConfigMap, error) {
	configMap := &corev1.ConfigMap{Data: map[string]string{}}
	size := 0
	for _, file := range files {
		if problems := validation.IsConfigMapKey(file.key); len(problems) > 0 {
			return nil, fmt.Errorf("key %q of %s: %s; name another with KEY=%s", file.key, file.name, strings.Join(problems, ", "), file.name)
		}
		if _, twice := configMap.Data[file.key]; twice || configMap.BinaryData[file.key] != nil {
			return nil, fmt.Errorf("two files are key %q; name the keys with KEY=FILE", file.key)
		}
		if size += len(file.content); size > maxPayload {
			return nil, fmt.Errorf("the files are larger than 1 MiB together, and nodes refuse that; leave some out")
		}
		if utf8.Valid(file.content) {
			configMap.Data[file.key] = string(file.content)
			continue
		}
		if configMap.BinaryData == nil {
			configMap.BinaryData = map[string][]byte{}
		}
		configMap.BinaryData[file.key] = append([]byte{}, file.content...)
	}
	hashed, err := hashedName(name, configMap.Data, configMap.BinaryData)
	if err != nil {
		return nil, err
	}
	if problems := validation.IsDNS1123Subdomain(hashed); len(problems) > 0 {
		return nil, fmt.Errorf("name %q: %s", hashed, strings.Join(problems, ", "))
	}
	immutable := true
	configMap.Immutable = &immutable
	configMap.ObjectMeta = metav1.ObjectMeta{
		Namespace: namespace, Name: hashed,
		Labels:      map[string]string{purposeLabel: purposeConfiguration},
		Annotations: map[string]string{nameAnnotation: name},
	}
	return configMap, nil
}

// isPushed proves that push has made a ConfigMap, or could have: by its label and by its whole name, whose hash is that of the content. One
// that a person copied, edited or labelled is not pruned (rule 24).
func isPushed(c *corev1.ConfigMap) bool {
	name, err := hashedName(c.Annotations[nameAnnotation], c.Data, c.BinaryData)
	return err == nil && name == c.Name && c.Labels[purposeLabel] == purposeConfiguration
}

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
	if found.Immutable != nil && *found.Immutable && found.Labels[purposeLabel] == purposeConfiguration {
		return found, "unchanged", nil
	}
	// Made by kubectl create --append-hash, say.
	patch := fmt.Sprintf(`{"immutable":true,"metadata":{"labels":{%q:%q},"annotations":{%q:%q}}}`,
		purposeLabel, purposeConfiguration, nameAnnotation, wanted.Annotations[nameAnnotation])
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
		if r.Key, err = keyOf(found); err != nil {
			return nil, r, err
		}
	}
	return found, r, nil
}

// payloadOf gives the files of a ConfigMap.
func payloadOf(configMap *corev1.ConfigMap) map[string]string {
	payload := maps.Clone(configMap.Data)
	if payload == nil {
		payload = map[string]string{}
	}
	for key, value := range configMap.BinaryData {
		payload[key] = string(value)
	}
	return payload
}
