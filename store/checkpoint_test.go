//go:build linux

package store

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestSaveCheckpoint(t *testing.T) {
	many := map[string]string{}
	for i := range keysLimit + 1 {
		many[fmt.Sprint("key", i)] = ""
	}
	full := map[string]string{}
	for i := range keysLimit {
		full[fmt.Sprintf("%0253d", i)] = strings.Repeat("x", 1<<20/keysLimit)
	}
	for _, row := range []struct {
		name    string
		payload map[string]string
		err     string
	}{
		{"two keys", map[string]string{"foo": "foocontent", "bar": "barcontent"}, ""},
		{"no keys", map[string]string{}, ""},
		{"nil", nil, ""},
		{"an empty value", map[string]string{"kubelet": ""}, ""},
		{"binary data", map[string]string{"ca.der": "\x00\xff\n"}, ""},
		{"a key like a temporary file", map[string]string{"tmp_kubelet": "a", "kubelet": "b", "1.sha256": "c"}, ""},
		{"a key of 253 characters, the most that Kubernetes takes", map[string]string{strings.Repeat("k", 253): "x"}, ""},
		{"a key of 255 characters, the most that a file system takes", map[string]string{strings.Repeat("k", 255): "x"}, ""},
		{"1 MiB of values", map[string]string{"a": strings.Repeat("x", 1<<19), "b": strings.Repeat("x", 1<<19)}, ""},
		{"as many keys as there may be, as long as Kubernetes takes them, and 1 MiB of values", full, ""},
		{"all that fits", map[string]string{"a": strings.Repeat("x", payloadLimit-1)}, ""},
		{"an empty key", map[string]string{"": "x"}, `invalid file key: must not be empty: ""`},
		{"a key with a folder", map[string]string{"foo/bar": "x"}, `invalid file key "foo/bar", only base names are allowed`},
		{"an absolute key", map[string]string{"/bar": "x"}, `invalid file key "/bar", only base names are allowed`},
		{"the key .", map[string]string{".": "x"}, "invalid file key, may not be '.' or '..'"},
		{"the key ..", map[string]string{"..": "x"}, "invalid file key, may not be '.' or '..'"},
		{"a key of 256 characters", map[string]string{strings.Repeat("k", 256): "x"}, "must be less than 255 characters"},
		{"a key with a line break", map[string]string{"a\nb": "x"}, `invalid file key "a\nb", only letters`},
		{"too large", map[string]string{"a": strings.Repeat("x", payloadLimit)}, "the payload has 1309697 bytes, more than 1309696"},
		{"too many keys", many, "the payload has 1025 keys, more than 1024"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			_, err := s.LoadCheckpoint(*source("1"))
			wantError(t, err, "no checkpoint for source /api/v1/namespaces/namespace/configmaps/name")
			err = s.SaveCheckpoint(*source("1"), row.payload)
			wantError(t, err, row.err)
			must(t, s.Close())
			s = open(t, dir)
			loaded, err := s.LoadCheckpoint(*source("1"))
			if row.err != "" {
				wantError(t, err, "no checkpoint for source")
				wantList(t, s, "checkpoints", "")
				return
			}
			must(t, err)
			wantPayload(t, loaded, row.payload)
			wantList(t, s, "checkpoints/uid", "1 1.sha256")
		})
	}
}

func TestCheckpointNames(t *testing.T) {
	s := open(t, t.TempDir())
	for _, row := range []struct{ uid, version, err string }{
		{"", "1", "empty UID is ambiguous"},
		{"uid", "", "empty ResourceVersion is ambiguous"},
		{"..", "1", "cannot be a file name"},
		{"uid", ".", "cannot be a file name"},
		{"u/d", "1", "cannot be a file name"},
		{"uid", "1\x00", "cannot be a file name"},
		{"uid", "ä", "cannot be a file name"},
		{"uid", strings.Repeat("1", 245), "at most 244 letters"},
		{"uid", "1.sha256", "files of its own"},
		{"uid", "tmp_1", "files of its own"},
		{"uid", "1.corrupt-2", "files of its own"},
	} {
		bad := *sourceOf(row.uid, row.version)
		wantError(t, s.SaveCheckpoint(bad, nil), row.err)
		_, err := s.LoadCheckpoint(bad)
		wantError(t, err, row.err)
		wantError(t, err, "failed to determine whether checkpoint exists for source /api/v1/namespaces/namespace/configmaps/name, UID: ")
		if folder := s.CheckpointFolder(bad); folder != "" {
			t.Errorf("CheckpointFolder of %q, %q is %q, want none", row.uid, row.version, folder)
		}
	}
	good := *sourceOf("aAzZ09-._", strings.Repeat("1", 244))
	must(t, s.SaveCheckpoint(good, nil))
	if _, err := os.Stat(s.CheckpointFolder(good)); err != nil {
		t.Error(err)
	}
}

func TestCheckpointWithoutMarkerDoesNotExist(t *testing.T) {
	s := open(t, t.TempDir())
	payload := map[string]string{"kubelet": "x"}
	must(t, s.SaveCheckpoint(*source("1"), payload))
	must(t, os.Remove(s.CheckpointFolder(*source("1"))+".sha256"))
	_, err := s.LoadCheckpoint(*source("1"))
	wantError(t, err, "no checkpoint for source")
	wantList(t, s, "checkpoints/uid", "1") // nor is it corrupt

	must(t, s.SaveCheckpoint(*source("1"), map[string]string{"kubelet": "y"}))
	loaded, err := s.LoadCheckpoint(*source("1"))
	must(t, err)
	wantPayload(t, loaded, map[string]string{"kubelet": "y"})
}

func TestCheckpointsOfOneUIDAreApart(t *testing.T) {
	s := open(t, t.TempDir())
	for _, version := range []string{"1", "11", "2"} {
		must(t, s.SaveCheckpoint(*source(version), map[string]string{"kubelet": version}))
	}
	must(t, s.SaveCheckpoint(*source("1"), map[string]string{"kubelet": "replaced", "more": ""}))
	for version, want := range map[string]map[string]string{
		"1": {"kubelet": "replaced", "more": ""}, "11": {"kubelet": "11"}, "2": {"kubelet": "2"},
	} {
		loaded, err := s.LoadCheckpoint(*source(version))
		must(t, err)
		wantPayload(t, loaded, want)
	}
}

// A payload with `volumePluginDir: plugins` has the kubelet make a folder in the checkpoint.
func TestFoldersOfTheKubeletDoNotCorruptACheckpoint(t *testing.T) {
	s := open(t, t.TempDir())
	payload := map[string]string{"kubelet": "volumePluginDir: plugins"}
	must(t, s.SaveCheckpoint(*source("1"), payload))
	plugins := filepath.Join(s.CheckpointFolder(*source("1")), "plugins")
	must(t, os.MkdirAll(filepath.Join(plugins, "vendor~driver"), 0o755))
	loaded, err := s.LoadCheckpoint(*source("1"))
	must(t, err)
	wantPayload(t, loaded, payload)
	must(t, s.SaveCheckpoint(*source("1"), payload))
	if _, err := os.Stat(plugins); err != nil {
		t.Errorf("the kubelet's folder: %v", err)
	}
}

func TestMarkerIsThatOfSha256sum(t *testing.T) {
	if _, err := exec.LookPath("sha256sum"); err != nil {
		t.Skip("no sha256sum here")
	}
	s := open(t, t.TempDir())
	must(t, s.SaveCheckpoint(*source("1"), map[string]string{"kubelet": "x", "ca.crt": "", "b-B_9": "\xff"}))
	run := exec.Command("sh", "-c", "LC_ALL=C sha256sum 1/* | diff - 1.sha256 && sha256sum --check --strict 1.sha256")
	run.Dir = filepath.Join(s.dir, "checkpoints", "uid")
	if output, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, output)
	}
}

func wantPayload(t *testing.T, got, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("payload (-want +got):\n%s", diff)
	}
}
