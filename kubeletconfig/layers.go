package kubeletconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	yamlv2 "go.yaml.in/yaml/v2"
	sigsjson "sigs.k8s.io/json"
)

// The payload of layers: a few fields over each node's own file.
const (
	LayersKind       = "KubeletConfigurationLayers"
	LayersAPIVersion = "kubelet-supervisor.io/v1alpha1"
	BaseLocal        = "Local" // the layers are laid over the node's own file
	BaseNone         = "None"  // the layers are the whole file
	MaxLayers        = 16
)

// Layers is a payload of that kind.
type Layers struct {
	Base   string // BaseLocal or BaseNone
	Layers []Layer
}

// Layer is one of the patches, of which the later wins.
type Layer struct {
	Name  string
	From  string         // where it comes from, for people
	Patch map[string]any // RFC 7386: maps merge, lists replace, null deletes
}

// AreLayers reports whether a decoded document is of that kind, well-formed or not.
func AreLayers(tree map[string]any) bool { return tree["kind"] == LayersKind }

// ReadLayers reads a document of kind KubeletConfigurationLayers. It is strict with the envelope, whose fields are
// ours. Its errors name the field, and never quote a patch.
func ReadLayers(document []byte) (Layers, error) {
	tree, err := Decode(document)
	if err != nil {
		return Layers{}, fmt.Errorf("does not decode as YAML or JSON: %w", err)
	}
	return readLayers(tree, document)
}

func readLayers(tree map[string]any, document []byte) (Layers, error) {
	if tree["kind"] != LayersKind || tree["apiVersion"] != LayersAPIVersion {
		return Layers{}, fmt.Errorf("is no %s of %s", LayersKind, LayersAPIVersion)
	}
	if twice := doubledKeys(document); len(twice) > 0 {
		return Layers{}, fmt.Errorf("has %s twice; leave one", Quote(twice[0]))
	}
	if err := onlyKeys(tree, "kind", "apiVersion", "base", "layers"); err != nil {
		return Layers{}, err
	}
	read := Layers{Base: BaseLocal}
	if base, is := tree["base"]; is {
		if base != BaseLocal && base != BaseNone {
			return Layers{}, fmt.Errorf("has another base than %s or %s", BaseLocal, BaseNone)
		}
		read.Base = base.(string)
	}
	list, is := tree["layers"].([]any)
	if !is || len(list) == 0 || len(list) > MaxLayers {
		return Layers{}, fmt.Errorf("needs a list of 1 to %d layers", MaxLayers)
	}
	names := map[string]bool{}
	for i, item := range list {
		layer, err := readLayer(item)
		if err == nil && names[layer.Name] {
			err = fmt.Errorf("has the name of another one, %q", layer.Name)
		}
		if err != nil {
			return Layers{}, fmt.Errorf("has a fault in layer %d: it %w", i+1, err)
		}
		names[layer.Name] = true
		read.Layers = append(read.Layers, layer)
	}
	return read, nil
}

// dnsLabel leaves the length to maxLabel: a pattern that counts takes a tenth of a MiB for as long as the program runs.
var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

const maxLabel = 63

func readLayer(item any) (Layer, error) {
	fields, is := item.(map[string]any)
	if !is {
		return Layer{}, errors.New("is no mapping with name and patch")
	}
	if err := onlyKeys(fields, "name", "from", "patch"); err != nil {
		return Layer{}, err
	}
	name, is := fields["name"].(string)
	if value, given := fields["name"]; given && !is {
		return Layer{}, notText(value)
	}
	if len(name) > maxLabel || !dnsLabel.MatchString(name) {
		return Layer{}, errors.New("needs a name of at most 63 lower-case letters, digits and '-'")
	}
	from, is := fields["from"].(string)
	if !is && fields["from"] != nil {
		return Layer{}, errors.New("has a from that is no text")
	}
	patch, is := fields["patch"].(map[string]any)
	if !is {
		return Layer{}, errors.New("needs a patch, a mapping of the fields that it sets")
	}
	for field, only := range map[string]string{"kind": kind, "apiVersion": apiVersion} {
		if value, is := patch[field]; is && value != only {
			return Layer{}, fmt.Errorf("patches %s, which may only be %s", field, only)
		}
	}
	return Layer{Name: name, From: from, Patch: patch}, nil
}

// notText says why a name that looks like text is none: YAML 1.1 reads y, no and on as booleans, 12 and 1e3 as numbers, and ~ as null.
func notText(name any) error {
	switch name.(type) {
	case bool:
		return fmt.Errorf("has the name %v, which is a boolean, as y, n, yes, no, on and off are in YAML; put the name in quotes", name)
	case json.Number:
		return errors.New("has a number as its name; put the name in quotes")
	case nil:
		return errors.New("has null as its name; put the name in quotes")
	}
	return errors.New("has a name that is no text")
}

func onlyKeys(fields map[string]any, known ...string) error {
	for name := range fields {
		if !slices.Contains(known, name) {
			return fmt.Errorf("has the unknown field %q; allowed: %q", Quote(name), known)
		}
	}
	return nil
}

var inPatch = regexp.MustCompile(`^layers\[\d+\]\.patch\.`)

// doubledKeys lists the fields of an envelope that appear twice, of which decoders take the last in silence. In a patch they are a warning.
func doubledKeys(document []byte) (twice []string) {
	if isJSON(document) {
		var tree any
		strict, _ := sigsjson.UnmarshalStrict(document, &tree) // that it decodes is known
		for _, err := range strict {
			if match := jsonDuplicate.FindStringSubmatch(err.Error()); match != nil && !inPatch.MatchString(match[1][1:len(match[1])-1]) {
				twice = append(twice, match[1])
			}
		}
		return twice
	}
	var envelope yamlv2.MapSlice
	if yamlv2.Unmarshal(document, &envelope) != nil {
		return nil
	}
	twice = doubledIn(envelope)
	for _, field := range envelope {
		list, _ := field.Value.([]any)
		for _, item := range list {
			if layer, is := item.(yamlv2.MapSlice); is && field.Key == "layers" {
				twice = append(twice, doubledIn(layer)...)
			}
		}
	}
	return twice
}

func doubledIn(fields yamlv2.MapSlice) (twice []string) {
	seen := map[any]bool{}
	for _, field := range fields {
		name, is := field.Key.(string)
		if is && seen[name] {
			twice = append(twice, fmt.Sprintf("%q", name))
		}
		seen[name] = is
	}
	return twice
}
