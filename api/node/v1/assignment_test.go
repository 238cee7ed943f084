package v1

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
		a, err := ParseAssignment(text)
		parts := strings.Join([]string{a.Namespace, a.Name, a.Key, a.UID}, "|")
		if err == nil && a.IsLocal() {
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
		a, err := ParseAssignment(text)
		if err != nil {
			if a != (Assignment{}) {
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
		if a.String() != text {
			t.Errorf("%q was read as %q", text, a)
		}
		for _, part := range []string{a.Namespace, a.Name, a.Key, a.UID} {
			if part == "." || part == ".." || strings.ContainsAny(part, "/\x00") || len(part) > 255 {
				t.Errorf("%q is no safe file name", part)
			}
		}
	})
}

func TestAssignmentValue(t *testing.T) {
	plain, pinned := Assignment{"ns", "name", "key", ""}, Assignment{"ns", "name", "key", "u1"}
	for name, row := range map[string]struct {
		a, b        Assignment
		same, equal bool
	}{
		"local":            {Assignment{}, Assignment{}, true, true},
		"local and not":    {Assignment{}, plain, false, false},
		"the same":         {plain, plain, true, true},
		"pinned":           {plain, pinned, false, true},
		"pinned elsewhere": {pinned, Assignment{"ns", "name", "key", "u2"}, false, false},
		"another key":      {plain, Assignment{"ns", "name", "other", ""}, false, false},
	} {
		if (row.a == row.b) != row.same || row.a.Equal(row.b) != row.equal || row.b.Equal(row.a) != row.equal {
			t.Errorf("%s: %v and %v", name, row.a, row.b)
		}
	}
	if pinned.Unpinned() != plain || plain.String() != "ns/name/key" || pinned.String() != "ns/name/key@u1" || (Assignment{}).String() != Local {
		t.Errorf("%v, %v, %v", pinned.Unpinned(), plain, pinned)
	}
	if s := pinned.Source(); s == nil || *s != (corev1.ConfigMapNodeConfigSource{Namespace: "ns", Name: "name", KubeletConfigKey: "key", UID: "u1"}) {
		t.Errorf("the source of %v is %v", pinned, s)
	}
	if (Assignment{}).Source() != nil {
		t.Error("local has a source")
	}
	of := func(s *corev1.ConfigMapNodeConfigSource) Assignment {
		return AssignmentOf(&corev1.NodeConfigSource{ConfigMap: s})
	}
	if of(pinned.Source()) != plain || !of(nil).IsLocal() || !AssignmentOf(nil).IsLocal() {
		t.Errorf("%v is the assignment of what %v names", of(pinned.Source()), pinned)
	}
}
