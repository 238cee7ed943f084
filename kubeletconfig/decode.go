package kubeletconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"unicode"

	yamlv2 "go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml"
)

// What a document may become, for our memory's sake and the kubelet's. The YAML library bounds the number of nodes that aliases make, not
// their size: a payload of 1 MiB that repeats one long string could become gigabytes. And what is written with an indentation grows with
// the square of its depth: 18 KB of brackets were seen to become 162 MB. A KubeletConfiguration is some six deep.
const (
	maxWritten = 8 << 20 // bytes, aliases followed
	maxValues  = 100_000 // mappings, lists and scalars, aliases followed
	maxDepth   = 100
)

// errNotMapping: the document decodes, but is a list, a scalar or nothing.
var errNotMapping = errors.New("it is not a mapping")

// Decode reads a YAML or JSON document into an untyped tree whose numbers keep their digits. Like the kubelet it takes what begins with a
// brace for JSON and nothing else, reads only the first YAML document and lets the last of two equal keys win. Its errors never quote the
// document.
func Decode(document []byte) (map[string]any, error) {
	asJSON, err := toJSON(document)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return nil, jsonError(asJSON, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the end of the JSON document")
	}
	mapping, ok := tree.(map[string]any)
	if !ok {
		return nil, errNotMapping
	}
	return mapping, checkSize(tree)
}

func isJSON(document []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeftFunc(document, unicode.IsSpace), []byte("{"))
}

// toJSON converts YAML to JSON and leaves JSON as it is.
func toJSON(document []byte) (asJSON []byte, err error) {
	if isJSON(document) {
		return document, nil
	}
	// A payload comes from outside, and the supervisor is the kubelet's parent: a library that panics over it must not take the kubelet
	// along.
	defer func() {
		if recover() != nil {
			asJSON, err = nil, errors.New("the YAML decoder gave up on it")
		}
	}()
	if bytes.ContainsRune(document, '*') { // without an alias nothing expands
		var tree any
		if err := yamlv2.Unmarshal(document, &tree); err != nil {
			return nil, yamlError(err)
		}
		if err := checkSize(tree); err != nil {
			return nil, err
		}
	}
	asJSON, err = yaml.YAMLToJSON(document)
	if err != nil {
		return nil, yamlError(err)
	}
	return asJSON, nil
}

// checkSize refuses a tree that is too deep, has too many values, or is too large once it is written with an indentation of two. It stops
// at the first excess.
func checkSize(tree any) error {
	left, values := maxWritten, 0
	var visit func(node any, depth int) error
	visit = func(node any, depth int) error {
		if depth > maxDepth {
			return fmt.Errorf("it is nested deeper than %d levels", maxDepth)
		}
		if values++; values > maxValues {
			return fmt.Errorf("it has more than %d values, aliases followed", maxValues)
		}
		var err error
		each := func(child any) bool {
			err = visit(child, depth+1)
			return err == nil
		}
		left -= 2*depth + 2
		switch node := node.(type) {
		case string:
			left -= len(node)
		case map[string]any:
			for key, value := range node {
				if left -= len(key); !each(value) {
					return err
				}
			}
		case map[any]any:
			for key, value := range node {
				if !each(key) || !each(value) {
					return err
				}
			}
		case []any:
			for _, value := range node {
				if !each(value) {
					return err
				}
			}
		}
		if left < 0 {
			return fmt.Errorf("it is larger than %d MiB when it is written out, aliases followed", maxWritten>>20)
		}
		return nil
	}
	return visit(tree, 0)
}

// harmless matches the YAML library's messages that are fixed texts. Others quote the document (`unknown anchor '…' referenced`, `invalid
// map key: …`).
var harmless = regexp.MustCompile(`^yaml: (line \d+: )?(did not find|could not find|found|mapping keys|mapping values|block sequence entries|control characters|document contains|exceeded max depth) [^\n]*$`)

var lineNumber = regexp.MustCompile(`line \d+`)

func yamlError(err error) error {
	message := err.Error()
	if harmless.MatchString(message) {
		return errors.New(message)
	}
	if line := lineNumber.FindString(message); line != "" {
		return fmt.Errorf("%s is not valid YAML", line)
	}
	return errors.New("it is not valid YAML")
}

func jsonError(document []byte, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return errors.New("it is not complete JSON")
	}
	end := min(int(syntax.Offset), len(document))
	return fmt.Errorf("line %d is not valid JSON", 1+bytes.Count(document[:end], []byte("\n")))
}
