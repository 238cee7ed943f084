//go:build linux

package store

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func FuzzDecodeSource(f *testing.F) {
	for _, seed := range []string{"", "{", serializedSource, serializedSource[:120], "a: &a [*a]", "\x00", "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: SerializedNodeConfigSource\nsource: {}\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		decoded, err := decodeSource(content)
		if err != nil {
			return
		}
		if decoded != nil && checkSource(*decoded) != nil {
			t.Fatalf("decoded a source that cannot have a checkpoint: %+v", decoded)
		}
		encoded, err := encodeSource(decoded)
		must(t, err)
		again, err := decodeSource(encoded)
		must(t, err)
		wantSource(t, again, decoded)
	})
}

func FuzzDecodeDocument(f *testing.F) {
	for _, seed := range []string{"", "{}", "- 1", "apiVersion: kubelet-supervisor.io/v1\nkind: Trial\nwords: x\nnumbers: [1, 9223372036854775807]\n", "apiVersion: kubelet-supervisor.io/v1\nkind: Trial\n1: 2\n"} {
		f.Add([]byte(seed))
	}
	type document struct {
		Words   string          `json:"words"`
		Numbers []int64         `json:"numbers"`
		Inner   map[string]bool `json:"inner"`
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		before := document{Words: "before"}
		decoded := before
		if err := decodeDocument(content, "Trial", &decoded); err != nil {
			if diff := cmp.Diff(before, decoded); diff != "" {
				t.Fatalf("failed and changed the value (-want +got):\n%s", diff)
			}
			return
		}
		encoded, err := encodeDocument("Trial", decoded)
		must(t, err)
		var again document
		must(t, decodeDocument(encoded, "Trial", &again))
		if diff := cmp.Diff(decoded, again); diff != "" {
			t.Fatalf("after encoding again (-want +got):\n%s", diff)
		}
	})
}

// Whatever words a kubelet finds must not keep a document from being saved.
func FuzzEncodeDocument(f *testing.F) {
	for _, seed := range []string{"", "x", "\x7f\u0085", "\xff", "a: b\n", "\U0010ffff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, words string) {
		encoded, err := encodeDocument("Trial", map[string]string{"words": words})
		must(t, err)
		var decoded, want map[string]string
		must(t, decodeDocument(encoded, "Trial", &decoded))
		asJSON, err := json.Marshal(map[string]string{"words": words}) // which replaces what is no UTF-8
		must(t, err)
		must(t, json.Unmarshal(asJSON, &want))
		if diff := cmp.Diff(want, decoded); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func FuzzDecodeMarker(f *testing.F) {
	good := string(encodeMarker("1", sumsOf(map[string]string{"kubelet": "x", "ca.crt": ""})))
	for _, seed := range []string{"", "\n", good, good[:100], good + good, sumOf(nil) + "  1/../x\n", sumOf(nil) + " *1/kubelet\n"} {
		f.Add("1", []byte(seed))
	}
	f.Fuzz(func(t *testing.T, version string, marker []byte) {
		sums, err := decodeMarker(version, marker)
		if err != nil {
			return
		}
		for key, sum := range sums {
			if checkKey(key) != nil || len(sum) != 64 {
				t.Errorf("took %q for %q", sum, key)
			}
		}
		if diff := cmp.Diff(string(marker), string(encodeMarker(version, sums))); diff != "" {
			t.Errorf("after encoding again (-want +got):\n%s", diff)
		}
	})
}
