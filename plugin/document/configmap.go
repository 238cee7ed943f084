package document

import (
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kubectl/pkg/util/hash"
)

// Labels of the objects that the plugin made. The plugin never changes or prunes any other.
const (
	PurposeLabel         = "kubelet-supervisor.io/purpose"
	PurposeConfiguration = "configuration" // a ConfigMap made by push
	PurposeGrant         = "grant"         // a Role and its RoleBinding that allow nodes to read one ConfigMap
)

// NameAnnotation holds the name that a configuration was pushed under, without the hash.
const NameAnnotation = "kubelet-supervisor.io/config-name"

// maxPayload is the most bytes that nodes accept, over all values.
const maxPayload = 1 << 20

// A File becomes one key of a ConfigMap.
type File struct {
	Key, Name string // Name is the file's name as the user gave it
	Content   []byte
}

// NewConfigMap returns the immutable ConfigMap of files, without writing it. It fails for a key, a name or a size
// that nodes refuse.
func NewConfigMap(namespace, name string, files []File) (*corev1.ConfigMap, error) {
	configMap := &corev1.ConfigMap{Data: map[string]string{}}
	size := 0
	for _, file := range files {
		if problems := validation.IsConfigMapKey(file.Key); len(problems) > 0 {
			return nil, fmt.Errorf("key %q of %s: %s; name another with KEY=%s", file.Key, file.Name, strings.Join(problems, ", "), file.Name)
		}
		if _, twice := configMap.Data[file.Key]; twice || configMap.BinaryData[file.Key] != nil {
			return nil, fmt.Errorf("two files are key %q; name the keys with KEY=FILE", file.Key)
		}
		if size += len(file.Content); size > maxPayload {
			return nil, fmt.Errorf("the files are larger than 1 MiB together, and nodes refuse that; leave some out")
		}
		if utf8.Valid(file.Content) {
			configMap.Data[file.Key] = string(file.Content)
			continue
		}
		if configMap.BinaryData == nil {
			configMap.BinaryData = map[string][]byte{}
		}
		configMap.BinaryData[file.Key] = append([]byte{}, file.Content...)
	}
	hashed, err := HashedName(name, configMap.Data, configMap.BinaryData)
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
		Labels:      map[string]string{PurposeLabel: PurposeConfiguration},
		Annotations: map[string]string{NameAnnotation: name},
	}
	return configMap, nil
}

// IsPushed reports whether push made a ConfigMap, or could have: the label must match, and the name must end with
// the hash of the content. A ConfigMap that a user copied, edited or labelled does not qualify, so it is not
// pruned (rule 24).
func IsPushed(c *corev1.ConfigMap) bool {
	name, err := HashedName(c.Annotations[NameAnnotation], c.Data, c.BinaryData)
	return err == nil && name == c.Name && c.Labels[PurposeLabel] == PurposeConfiguration
}

// Payload returns the files of a ConfigMap.
func Payload(configMap *corev1.ConfigMap) map[string]string {
	payload := maps.Clone(configMap.Data)
	if payload == nil {
		payload = map[string]string{}
	}
	for key, value := range configMap.BinaryData {
		payload[key] = string(value)
	}
	return payload
}

// HashedName appends the hash of the content to a ConfigMap's name, as `kubectl create configmap --append-hash`
// does.
func HashedName(name string, data map[string]string, binaryData map[string][]byte) (string, error) {
	digits, err := hash.ConfigMapHash(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data, BinaryData: binaryData})
	if err != nil {
		return "", fmt.Errorf("hashing ConfigMap %s: %w", name, err)
	}
	return name + "-" + digits, nil
}
