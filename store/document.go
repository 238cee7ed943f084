//go:build linux

package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"
)

// DocumentVersion is the apiVersion of every document. Supervisors of the same one read each other's.
const DocumentVersion = "kubelet-supervisor.io/v1"

// SaveDocument makes v the durable document meta/NAME, in YAML: apiVersion kubelet-supervisor.io/v1, the kind, and after
// them the fields of v, which must marshal to a JSON object that has neither.
func (s *Store) SaveDocument(name, kind string, v any) error {
	if err := checkDocumentName(name); err != nil {
		return err
	}
	content, err := encodeDocument(kind, v)
	if err != nil {
		return fmt.Errorf("saving %s: %w", name, err)
	}
	if err := s.saveMeta(name, content); err != nil {
		return fmt.Errorf("saving %s: %w", name, err)
	}
	return nil
}

// LoadDocument reads the document meta/NAME into v, a pointer; without such a document v stays as it is. What cannot be read,
// does not decode, or is of another kind or apiVersion is set aside, the error says so, and v stays as it is. Fields that v
// does not have are ignored: an older supervisor can read what a newer one of the same apiVersion wrote.
func (s *Store) LoadDocument(name, kind string, v any) error {
	if err := checkDocumentName(name); err != nil {
		return err
	}
	err := s.loadMeta(name, func(content []byte) error { return decodeDocument(content, kind, v) })
	if err != nil {
		return fmt.Errorf("loading %s: %w", name, err)
	}
	return nil
}

func checkDocumentName(name string) error {
	if err := checkName("document name", name); err != nil {
		return err
	}
	if name == string(Assigned) || name == string(LastKnownGood) {
		return fmt.Errorf("%s is a pointer, not a document", name)
	}
	return nil
}

func encodeDocument(kind string, v any) ([]byte, error) {
	content, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(content, &fields); err != nil || fields == nil {
		return nil, fmt.Errorf("%T is not marshalled to a JSON object", v)
	}
	if fields["apiVersion"] != nil || fields["kind"] != nil {
		return nil, fmt.Errorf("%T has an apiVersion or a kind of its own", v)
	}
	var file bytes.Buffer
	fmt.Fprintf(&file, "apiVersion: %s\nkind: %s\n", DocumentVersion, kind)
	if len(fields) > 0 {
		body, err := yaml.JSONToYAML(escapeUnprintable(content))
		if err != nil {
			return nil, err
		}
		file.Write(body)
	}
	return file.Bytes(), nil
}

// escapeUnprintable writes characters that JSON allows in strings and YAML refuses as YAML's escapes: a kubelet's words must
// not keep a verdict from being saved.
func escapeUnprintable(content []byte) []byte {
	var escaped strings.Builder
	for _, r := range string(content) {
		if unicode.IsPrint(r) {
			escaped.WriteRune(r)
		} else {
			fmt.Fprintf(&escaped, `\U%08x`, r)
		}
	}
	return []byte(escaped.String())
}

func decodeDocument(content []byte, kind string, v any) error {
	if err := checkAliases(content); err != nil {
		return err
	}
	asJSON, err := yaml.YAMLToJSON(content)
	if err != nil {
		return fmt.Errorf("does not decode: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(asJSON, &fields); err != nil {
		return errors.New("is not a YAML object")
	}
	var version, actual string
	_ = json.Unmarshal(fields["apiVersion"], &version) // what is no string is no version of ours
	_ = json.Unmarshal(fields["kind"], &actual)
	if version != DocumentVersion || actual != kind {
		return fmt.Errorf("is %.64q of %.64q instead of %s of %s", actual, version, kind, DocumentVersion)
	}
	delete(fields, "apiVersion")
	delete(fields, "kind")
	body, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("does not decode: %w", err)
	}
	decoded := reflect.New(reflect.TypeOf(v).Elem()) // v itself must not be left half filled
	if err := json.Unmarshal(body, decoded.Interface()); err != nil {
		return fmt.Errorf("does not decode: %w", err)
	}
	reflect.ValueOf(v).Elem().Set(decoded.Elem())
	return nil
}
