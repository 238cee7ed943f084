package document

import (
	"strings"
	"testing"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/deploy"
)

func TestParseReference(t *testing.T) {
	for _, test := range []struct {
		text string
		want nodev1.Assignment
		err  string // "" for none
	}{
		{"workers", nodev1.Assignment{Namespace: "kubelet-config", Name: "workers"}, ""},
		{"kube-system/workers", nodev1.Assignment{Namespace: "kube-system", Name: "workers"}, ""},
		{"kube-system/workers/key.yaml", nodev1.Assignment{Namespace: "kube-system", Name: "workers", Key: "key.yaml"}, ""},
		{"kube-system/workers/key@1234-ab", nodev1.Assignment{Namespace: "kube-system", Name: "workers", Key: "key", UID: "1234-ab"}, ""},
		{"workers@1234-ab", nodev1.Assignment{Namespace: "kubelet-config", Name: "workers", UID: "1234-ab"}, ""},
		{"local", nodev1.Assignment{}, ""},
		{"", nodev1.Assignment{}, "name must be set"},
		{"kube-system/", nodev1.Assignment{}, "name must be set"},
		{"kube-system/workers/", nodev1.Assignment{}, "ends with a slash"},
		{"workers@", nodev1.Assignment{}, "ends with @"},
		{"Workers", nodev1.Assignment{}, "RFC 1123"},
		{"a/b/../c", nodev1.Assignment{}, "kubeletConfigKey"},
		{"a/b/c/d", nodev1.Assignment{}, "kubeletConfigKey"},
	} {
		t.Run(test.text, func(t *testing.T) {
			got, err := ParseReference(test.text, deploy.Namespace)
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
		r, err := ParseReference(text, deploy.Namespace)
		if err != nil || r.IsLocal() {
			return
		}
		if r.Key == "" {
			r.Key = DefaultKey
		}
		// What is taken, a node takes too, and means the same by it.
		if back, err := nodev1.ParseAssignment(r.String()); err != nil || back != r {
			t.Errorf("%q is taken as %s, which a node reads as %v, %v", text, r, back, err)
		}
	})
}
