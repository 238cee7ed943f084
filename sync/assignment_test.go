package sync

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
)

const path = "spec.configSource.configMap."

func TestParseAssignment(t *testing.T) {
	long := strings.Repeat("x", 300<<10)
	for text, expect := range map[string]struct{ parts, err string }{
		"local":                         {parts: "local"},
		"ns/name/key":                   {parts: "ns|name|key|"},
		"ns/my.name/key.yaml":           {parts: "ns|my.name|key.yaml|"},
		"ns/name/key@12ab-34":           {parts: "ns|name|key|12ab-34"},
		"":                              {err: path + "namespace: Required value: namespace must be set"},
		"ns":                            {err: path + "name: Required value: name must be set"},
		"ns/name":                       {err: path + "kubeletConfigKey: Required value: kubeletConfigKey must be set"},
		"/name/key":                     {err: path + "namespace: Required value: namespace must be set"},
		"ns//key":                       {err: path + "name: Required value: name must be set"},
		"ns/name/":                      {err: path + "kubeletConfigKey: Required value: kubeletConfigKey must be set"},
		"../baz/name/key":               {err: path + `namespace: Invalid value: "..": a lowercase RFC 1123 label must consist of`},
		"ns/../bar/key":                 {err: path + `name: Invalid value: "..": a lowercase RFC 1123 subdomain must consist of`},
		"ns/name/../qux":                {err: path + `kubeletConfigKey: Invalid value: "../qux": a valid config key must consist of alphanumeric characters, '-', '_' or '.'`},
		"ns/name/..":                    {err: path + `kubeletConfigKey: Invalid value: "..": must not be '..'`},
		"ns/name/key/more":              {err: path + `kubeletConfigKey: Invalid value: "key/more"`},
		"my.ns/name/key":                {err: path + `namespace: Invalid value: "my.ns": must not contain dots`},
		"ns/name/key@":                  {err: path + "uid: Required value"},
		"ns/name/key@a/b":               {err: path + `uid: Invalid value: "a/b"`},
		"ns/name/key@..":                {err: path + `uid: Invalid value: ".."`},
		"ns/name/key@a@b":               {err: path + `uid: Invalid value: "a@b"`},
		" ns/name/key":                  {err: path + `namespace: Invalid value: " ns"`},
		"ns/name/key\n":                 {err: path + `kubeletConfigKey: Invalid value: "key\n"`},
		"local ":                        {err: path + `namespace: Invalid value: "local "`},
		"LOCAL":                         {err: path + `namespace: Invalid value: "LOCAL"`},
		"ns/na\x00me/key":               {err: path + `name: Invalid value: "na\x00me"`},
		"ns/\u202ename/key":             {err: path + `name: Invalid value: "\u202ename"`},
		long:                            {err: path + `namespace: Invalid value: "` + long[:64] + `…": must be no more than 63 characters`},
		"ns/" + long[:254] + "/key":     {err: path + `name: Invalid value: "` + long[:64] + `…": must be no more than 253 characters`},
		"ns/name/" + long[:254]:         {err: path + `kubeletConfigKey: Invalid value: "` + long[:64] + `…": must be no more than 253 characters`},
		"ns/name/key@" + long[:255]:     {parts: "ns|name|key|" + long[:255]},
		"ns/name/key@" + long[:256]:     {err: path + `uid: Invalid value: "` + long[:64] + `…"`},
		`{"configMap":{"name":"json"}}`: {err: path + "namespace: Invalid value"},
	} {
		namespace, name, key, uid, local, err := ParseAssignment(text)
		parts := strings.Join([]string{namespace, name, key, uid}, "|")
		if local {
			parts = "local"
		}
		switch {
		case expect.err == "" && (err != nil || parts != expect.parts):
			t.Errorf("%.40q: got %s, %v, expected %s", text, parts, err, expect.parts)
		case expect.err != "" && (err == nil || !strings.Contains(err.Error(), expect.err)):
			t.Errorf("%.40q: got %s, error %v, expected %s", text, parts, err, expect.err)
		}
	}
}

func FuzzParseAssignment(f *testing.F) {
	for _, seed := range []string{"local", "", "ns/name/key", "ns/name/key@uid", "/", "//", "ns/../key", "a/b/c/d", "ns/name/key@@", " a/b/c\n", "ns/\xff/key"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		namespace, name, key, uid, local, err := ParseAssignment(text)
		if err != nil {
			if local || namespace+name+key+uid != "" {
				t.Errorf("an error and a result")
			}
			words := err.Error()
			if !strings.Contains(words, path) || len(words) > 4096 || !utf8.ValidString(words) {
				t.Errorf("unfit for people: %q", words)
			}
			if strings.ContainsFunc(words, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("unprintable: %q", words)
			}
			return
		}
		written := namespace + "/" + name + "/" + key
		if uid != "" {
			written += "@" + uid
		}
		if local {
			written = "local"
		}
		if written != text {
			t.Errorf("%q was read as %q", text, written)
		}
		for _, part := range []string{namespace, name, key, uid} {
			if part == "." || part == ".." || strings.ContainsAny(part, "/\x00") || len(part) > 255 {
				t.Errorf("%q is no safe file name", part)
			}
		}
	})
}

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
					if source = textOf(a.source); source != c.source {
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
