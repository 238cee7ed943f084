package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func digestOf(document string) string { return digestPrefix + sumOf([]byte(document)) }

// What layers lie over is kept as long as it is asked for, and by nobody else's name.
func TestBase(t *testing.T) {
	s := open(t, t.TempDir())
	one, none := *source("1"), "the defaults"
	must(t, s.SaveCheckpoint(one, map[string]string{"kubelet": "x"}))
	must(t, s.SaveBase(one, digestOf("own"), []byte("own")))
	must(t, s.SaveBase(one, digestOf("own"), []byte("own")))
	must(t, s.SaveBase(one, noBase, []byte(none)))
	must(t, s.SaveBase(one, digestOf("older"), []byte("older")))
	for digest, want := range map[string]string{digestOf("own"): "own", noBase: none} {
		if got, err := s.LoadBase(one, digest); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", digest, got, err)
		}
	}
	must(t, s.Collect([]corev1.ConfigMapNodeConfigSource{one}, digestOf("own")))
	if got, err := s.LoadBase(one, digestOf("own")); err != nil || string(got) != "own" {
		t.Errorf("what was to be kept: %q, %v", got, err)
	}
	_, err := s.LoadBase(one, digestOf("older"))
	wantError(t, err, "there is none")
	payload, err := s.LoadCheckpoint(one)
	if err != nil || payload["kubelet"] != "x" {
		t.Errorf("the checkpoint: %q, %v", payload, err)
	}
	must(t, s.Collect(nil, digestOf("own")))
	_, err = s.LoadBase(one, digestOf("own"))
	wantError(t, err, "there is none")
}

func TestDefectBase(t *testing.T) {
	s := open(t, t.TempDir())
	one := *source("1")
	must(t, s.SaveBase(one, digestOf("own"), []byte("own")))
	path := filepath.Join(s.dir, checkpointsFolder, string(one.UID), "1"+baseInfix+strings.TrimPrefix(digestOf("own"), digestPrefix))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	must(t, os.WriteFile(path, []byte("another"), 0o600))
	_, err := s.LoadBase(one, digestOf("own"))
	wantError(t, err, "does not match its name")
	must(t, s.SaveBase(one, digestOf("own"), []byte("own")))
	for _, digest := range []string{"", "own", "sha256:../../x", "sha256:" + strings.Repeat("a", 65)} {
		wantError(t, s.SaveBase(one, digest, nil), "is no digest")
	}
	wantError(t, s.SaveBase(*source(""), noBase, nil), "empty ResourceVersion is ambiguous")
	wantError(t, s.SaveCheckpoint(*source("1" + baseInfix + "x"), nil), "the store gives such names")
}
