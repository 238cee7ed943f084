package plugin

import (
	"strings"
	"testing"
)

func TestParseReference(t *testing.T) {
	for _, test := range []struct {
		text string
		want reference
		err  string // "" for none
	}{
		{"workers", reference{"kubelet-config", "workers", "", ""}, ""},
		{"kube-system/workers", reference{"kube-system", "workers", "", ""}, ""},
		{"kube-system/workers/key.yaml", reference{"kube-system", "workers", "key.yaml", ""}, ""},
		{"kube-system/workers/key@1234-ab", reference{"kube-system", "workers", "key", "1234-ab"}, ""},
		{"workers@1234-ab", reference{"kubelet-config", "workers", "", "1234-ab"}, ""},
		{"local", reference{}, ""},
		{"", reference{}, "name must be set"},
		{"kube-system/", reference{}, "name must be set"},
		{"kube-system/workers/", reference{}, "ends with a slash"},
		{"workers@", reference{}, "ends with @"},
		{"Workers", reference{}, "RFC 1123"},
		{"a/b/../c", reference{}, "kubeletConfigKey"},
		{"a/b/c/d", reference{}, "kubeletConfigKey"},
	} {
		t.Run(test.text, func(t *testing.T) {
			got, err := parseReference(test.text, configNamespace)
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			if got != test.want {
				t.Errorf("got %#v, want %#v", got, test.want)
			}
		})
	}
}

func FuzzParseReference(f *testing.F) {
	for _, text := range []string{"a", "a/b", "a/b/c", "a/b/c@d", "local", "@", "//"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseReference(text, configNamespace)
		if err != nil || r.local() {
			return
		}
		if r.key == "" {
			r.key = defaultKey
		}
		// What is taken, a node takes too, and means the same by it.
		if back, ok := parseAssignment(r.String()); !ok || back != r {
			t.Errorf("%q is taken as %s, which a node reads as %v, %v", text, r, back, ok)
		}
	})
}
