package sync

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

const path = "spec.configSource.configMap."

func TestAssignmentOf(t *testing.T) {
	field := func(namespace, name, key string) *corev1.NodeConfigSource {
		return &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{Namespace: namespace, Name: name, KubeletConfigKey: key}}
	}
	pinnedField := field("ns", "a", "k")
	pinnedField.ConfigMap.UID, pinnedField.ConfigMap.ResourceVersion = "u", "1"
	text := func(s string) *string { return &s }
	for name, c := range map[string]struct {
		annotation *string
		field      *corev1.NodeConfigSource
		text       string
		source     string // "" for none
		err        string
		shadowed   bool
	}{
		"nothing":                         {},
		"annotation":                      {annotation: text("ns/a/k"), text: "ns/a/k", source: "ns/a/k"},
		"field":                           {field: field("ns", "a", "k"), text: "ns/a/k", source: "ns/a/k"},
		"both, the same":                  {annotation: text("ns/a/k"), field: field("ns", "a", "k"), text: "ns/a/k", source: "ns/a/k"},
		"both, the annotation with a uid": {annotation: text("ns/a/k@u"), field: field("ns", "a", "k"), text: "ns/a/k@u", source: "ns/a/k"},
		"both, they differ":               {annotation: text("ns/a/k"), field: field("ns", "b", "k"), text: "ns/a/k", source: "ns/a/k", shadowed: true},
		"local wins over the field":       {annotation: text("local"), field: field("ns", "b", "k"), text: "local", shadowed: true},
		"local and an empty field":        {annotation: text("local"), field: &corev1.NodeConfigSource{}, text: "local"},
		"malformed annotation":            {annotation: text("a/k"), field: field("ns", "b", "k"), text: "a/k", err: path + "kubeletConfigKey: Required value: kubeletConfigKey must be set"},
		"empty field":                     {field: &corev1.NodeConfigSource{}, err: "invalid NodeConfigSource, exactly one subfield must be non-nil, but all were nil"},
		"field without namespace":         {field: field("", "a", "k"), text: "/a/k", err: path + "namespace: Required value: namespace must be set"},
		"field with uid and version": {field: pinnedField, text: "ns/a/k",
			err: "[" + path + "uid: Forbidden: uid must not be set in spec, " + path + "resourceVersion: Forbidden: resourceVersion must not be set in spec]"},
		"namespace not allowed": {annotation: text("other/a/k"), text: "other/a/k",
			err: path + `namespace: Forbidden: namespace "other" is not allowed on this node, allowed: ns, more`},
		"field's namespace not allowed": {field: field("other", "a", "k"), text: "other/a/k",
			err: path + `namespace: Forbidden: namespace "other" is not allowed on this node, allowed: ns, more`},
	} {
		t.Run(name, func(t *testing.T) {
			a := assignmentOf(c.annotation, c.field, []string{"ns", "more"})
			if a.text != c.text || a.shadowed != c.shadowed {
				t.Errorf("text %q, shadowed %v", a.text, a.shadowed)
			}
			if c.err == "" {
				if a.problem != nil {
					t.Errorf("problem: %+v", *a.problem)
				}
				if source := ""; a.source != nil {
					if source = nodev1.FieldText(a.source); source != c.source {
						t.Errorf("source %q", source)
					}
				} else if c.source != "" {
					t.Error("no source")
				}
				return
			}
			if a.problem == nil || a.problem.Error != "failed to sync: "+c.err || !a.problem.Malformed || a.problem.Words == "" {
				t.Errorf("problem: %+v", a.problem)
			}
		})
	}
	if a := assignmentOf(text("anywhere/a/k"), nil, []string{"*"}); a.problem != nil {
		t.Errorf("with * every namespace is allowed, got %+v", a.problem)
	}
	if a := assignmentOf(text(strings.Repeat("é", 100<<10)), nil, nil); len(a.text) > maxAssignment+len("…") || !utf8.ValidString(a.text) {
		t.Errorf("an endless assignment is kept with %d bytes", len(a.text))
	}
}
