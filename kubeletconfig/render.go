package kubeletconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
)

const (
	kind       = "KubeletConfiguration"
	apiVersion = "kubelet.config.k8s.io/v1beta1"
)

// pathFields are the fields whose relative paths the kubelet resolves against the folder of its file: KubeletConfigurationPathRefs of
// Kubernetes 1.36 (podLogsDir since 1.30).
var pathFields = [][]string{
	{"staticPodPath"},
	{"podLogsDir"},
	{"authentication", "x509", "clientCAFile"},
	{"tlsCertFile"},
	{"tlsPrivateKeyFile"},
	{"resolvConf"},
	{"volumePluginDir"},
}

// LoadError says why a payload cannot be a kubelet's configuration whatever the kubelet: the key is missing or empty, does not decode, or
// is of another kind or apiVersion. Words name the key and never quote the payload.
type LoadError struct{ Words string }

func (e *LoadError) Error() string { return e.Words }

// Render returns the file that the kubelet will be started with: payload[key], as JSON (which the kubelet reads as well as YAML, and reads
// in one way only). Two things are changed and nothing else:
//
//   - Relative paths become absolute against folder, the payload's place on disk, so that they mean what they would in a file lying there.
//   - localGates, the feature gates of the node's own file, are added where the payload does not name them. Up to 1.23 the kubelet itself
//     used the sum of the gates of flags, local file and dynamic configuration.
//
// Its errors are of type *[LoadError].
func Render(payload map[string]string, key, folder string, localGates map[string]bool) ([]byte, error) {
	tree, err := load(payload, key)
	if err != nil {
		return nil, err
	}
	resolvePaths(tree, folder)
	addGates(tree, localGates)
	var rendered bytes.Buffer
	encoder := json.NewEncoder(&rendered) // sorts keys: the same payload gives the same bytes
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(tree); err != nil {
		return nil, &LoadError{Words: fmt.Sprintf("key %q cannot be written as JSON", key)}
	}
	return rendered.Bytes(), nil
}

func load(payload map[string]string, key string) (map[string]any, error) {
	refuse := func(format string, words ...any) (map[string]any, error) {
		return nil, &LoadError{Words: fmt.Sprintf("key %q ", key) + fmt.Errorf(format, words...).Error()}
	}
	document, present := payload[key]
	switch {
	case !present:
		return refuse("is missing from the ConfigMap; add it, or assign a key that is there")
	case document == "":
		return refuse("is empty; it must hold a %s", kind)
	}
	tree, err := Decode([]byte(document))
	switch {
	case err != nil:
		return refuse("does not decode as YAML or JSON: %v", err)
	case AreLayers(tree):
		_, err := readLayers(tree, []byte(document))
		if err == nil {
			err = errors.New("is of layers that cannot be laid together here")
		}
		return refuse("%w", err)
	case tree["kind"] == nil:
		return refuse("has no kind; add \"kind: %s\"", kind)
	case tree["kind"] != kind:
		return refuse("is of another kind than %s", kind)
	case tree["apiVersion"] == nil:
		return refuse("has no apiVersion; add \"apiVersion: %s\"", apiVersion)
	case tree["apiVersion"] != apiVersion:
		return refuse("has another apiVersion than %s", apiVersion)
	}
	return tree, nil
}

func resolvePaths(tree map[string]any, folder string) {
	for _, field := range pathFields {
		resolvePath(tree, field, folder)
	}
}

// resolvePath leaves values of another type alone: the kubelet has its own message for them.
func resolvePath(tree map[string]any, field []string, folder string) {
	parent, name := parentOf(tree, field)
	if path, ok := parent[name].(string); ok && path != "" && !filepath.IsAbs(path) {
		parent[name] = filepath.Join(folder, path)
	}
}

func addGates(tree map[string]any, local map[string]bool) {
	if len(local) == 0 {
		return
	}
	gates, ok := tree["featureGates"].(map[string]any)
	if !ok {
		if tree["featureGates"] != nil {
			return
		}
		gates = map[string]any{}
		tree["featureGates"] = gates
	}
	for name, enabled := range local {
		if _, named := gates[name]; !named {
			gates[name] = enabled
		}
	}
}
