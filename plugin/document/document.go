package document

import (
	"encoding/json"
	"fmt"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kubelet/config/v1beta1"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// A Document is a KubeletConfiguration as somebody wrote it.
type Document struct {
	Tree     map[string]any // without kind and apiVersion; values as configz writes them: durations as 1m0s
	Warnings []string       // fields that are unknown or appear twice

	// over is a configuration of layers over each node's own file; nil for a whole file. tree is then what they come to without that file.
	Over *Layered
}

// Read decodes payload[key]. The error is for what no kubelet takes: a key that is missing, what is no KubeletConfiguration,
// a value of another type than the field's.
func Read(payload map[string]string, key string) (Document, error) {
	warnings := kubeletconfig.Warnings(payload, key, 0)
	over, err := readLayered(payload[key])
	if err != nil {
		return Document{}, fmt.Errorf("key %q %w", key, err)
	}
	if payload, err = WithoutBase(payload, key); err != nil {
		return Document{}, err
	}
	// Without a folder and gates Render changes nothing.
	rendered, err := kubeletconfig.Render(payload, key, "", nil)
	if err != nil {
		return Document{}, err
	}
	var typed v1beta1.KubeletConfiguration
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(rendered, &typed); err != nil {
		return Document{}, fmt.Errorf("key %q does not decode: %s%s; correct the field", key, faultyField(rendered), kubeletconfig.Quote(err.Error()))
	}
	normal, err := json.Marshal(typed)
	if err != nil {
		return Document{}, fmt.Errorf("key %q cannot be written again: %w", key, err)
	}
	var written, normalised map[string]any
	if err := utiljson.Unmarshal(rendered, &written); err != nil {
		return Document{}, fmt.Errorf("key %q does not decode: %w", key, err)
	}
	if err := utiljson.Unmarshal(normal, &normalised); err != nil {
		return Document{}, fmt.Errorf("key %q does not decode: %w", key, err)
	}
	delete(written, "kind")
	delete(written, "apiVersion")
	return Document{Tree: takeFrom(written, normalised), Warnings: warnings, Over: over}, nil
}

// faultyField finds the field that does not decode, as "NAME: ", for the library does not name it when it is a duration, say.
func faultyField(rendered []byte) string {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(rendered, &fields); err != nil {
		return ""
	}
	for _, name := range SortedKeys(fields) {
		one, err := json.Marshal(map[string]json.RawMessage{name: fields[name]})
		if err == nil && sigsjson.UnmarshalCaseSensitivePreserveInts(one, &v1beta1.KubeletConfiguration{}) != nil {
			return kubeletconfig.Quote(name) + ": "
		}
	}
	return ""
}

// takeFrom gives the fields of written with the values that normal has for them: a round trip through the types writes durations
// and quantities as a kubelet does, but drops what it does not know and adds what was not written.
func takeFrom(written, normal map[string]any) map[string]any {
	taken := make(map[string]any, len(written))
	for name, value := range written {
		other, has := normal[name]
		inner, isTree := value.(map[string]any)
		otherInner, otherIsTree := other.(map[string]any)
		switch {
		case !has:
			taken[name] = value
		case isTree && otherIsTree:
			taken[name] = takeFrom(inner, otherInner)
		default:
			taken[name] = other
		}
	}
	return taken
}

// Header is what every KubeletConfiguration begins with.
const Header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// Encode writes a node's configuration as a KubeletConfiguration in YAML.
func Encode(node string, tree map[string]any) ([]byte, error) {
	if len(tree) == 0 {
		return []byte(Header), nil
	}
	text, err := yaml.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("writing the configuration of %s: %w", node, err)
	}
	return append([]byte(Header), text...), nil
}
