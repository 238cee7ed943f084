//go:build linux

package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// The exact bytes of upstream's TestFsStoreSetAssigned.
const serializedSource = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: SerializedNodeConfigSource
source:
  configMap:
    kubeletConfigKey: kubelet
    name: name
    namespace: namespace
    resourceVersion: "1"
    uid: uid
`

func TestSaveSource(t *testing.T) {
	change := func(edit func(*corev1.ConfigMapNodeConfigSource)) *corev1.ConfigMapNodeConfigSource {
		changed := source("1")
		edit(changed)
		return changed
	}
	for _, row := range []struct {
		name   string
		source *corev1.ConfigMapNodeConfigSource
		bytes  string
		err    string
	}{
		{"local", nil, "", ""},
		{"a source", source("1"), serializedSource, ""},
		{"no uid", change(func(s *corev1.ConfigMapNodeConfigSource) { s.UID = "" }), "", "failed to write RemoteConfigSource, empty UID is ambiguous"},
		{"no resourceVersion", change(func(s *corev1.ConfigMapNodeConfigSource) { s.ResourceVersion = "" }), "", "failed to write RemoteConfigSource, empty ResourceVersion is ambiguous"},
		{"no namespace", change(func(s *corev1.ConfigMapNodeConfigSource) { s.Namespace = "" }), "", "the namespace \"\" is not one"},
		{"no name", change(func(s *corev1.ConfigMapNodeConfigSource) { s.Name = "" }), "", "the name \"\" is not one"},
		{"no key", change(func(s *corev1.ConfigMapNodeConfigSource) { s.KubeletConfigKey = "" }), "", "the kubeletConfigKey \"\" is not one"},
		{"a uid that climbs", change(func(s *corev1.ConfigMapNodeConfigSource) { s.UID = ".." }), "", "the UID \"..\" cannot be a file name"},
		{"a resourceVersion with a slash", change(func(s *corev1.ConfigMapNodeConfigSource) { s.ResourceVersion = "a/b" }), "", "the ResourceVersion \"a/b\" cannot be a file name"},
	} {
		for _, p := range []Pointer{Assigned, LastKnownGood} {
			t.Run(row.name+", "+string(p), func(t *testing.T) {
				s := open(t, t.TempDir())
				err := s.SaveSource(p, row.source)
				wantError(t, err, row.err)
				if err != nil {
					if _, err := os.Stat(metaPath(s, p)); !os.IsNotExist(err) {
						t.Errorf("a refused source left a file: %v", err)
					}
					return
				}
				written, err := os.ReadFile(metaPath(s, p))
				must(t, err)
				if diff := cmp.Diff(row.bytes, string(written)); diff != "" {
					t.Errorf("bytes (-want +got):\n%s", diff)
				}
				loaded, err := s.LoadSource(p)
				must(t, err)
				wantSource(t, loaded, row.source)
			})
		}
	}
}

func TestLoadSource(t *testing.T) {
	for _, row := range []struct {
		name, bytes string
		want        *corev1.ConfigMapNodeConfigSource
	}{
		{"empty", "", nil},
		{"upstream's bytes", serializedSource, source("1")},
		{"a field from the future", serializedSource + "  other: {}\nnew: 1\n", source("1")},
		{"JSON", `{"apiVersion":"kubelet.config.k8s.io/v1beta1","kind":"SerializedNodeConfigSource","source":{"configMap":
			{"namespace":"namespace","name":"name","uid":"uid","resourceVersion":"1","kubeletConfigKey":"kubelet"}}}`, source("1")},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := open(t, t.TempDir())
			loaded, err := s.LoadSource(Assigned)
			must(t, err)
			wantSource(t, loaded, nil) // the default
			must(t, os.MkdirAll(filepath.Dir(metaPath(s, Assigned)), 0o700))
			must(t, os.WriteFile(metaPath(s, Assigned), []byte(row.bytes), 0o600))
			loaded, err = s.LoadSource(Assigned)
			must(t, err)
			wantSource(t, loaded, row.want)
		})
	}
}

// Upstream's Reset tables, of which only the files are the store's: each pointer is changed alone.
func TestPointersAreIndependent(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	must(t, s.SaveSource(Assigned, source("2")))
	must(t, s.SaveSource(LastKnownGood, source("1")))
	must(t, s.SaveSource(Assigned, nil))
	must(t, s.Close())
	s = open(t, dir)
	for p, want := range map[Pointer]*corev1.ConfigMapNodeConfigSource{Assigned: nil, LastKnownGood: source("1")} {
		loaded, err := s.LoadSource(p)
		must(t, err)
		wantSource(t, loaded, want)
	}
}

// Upstream rewrote meta/assigned at each pass, and so began the trial again and again.
func TestUnchangedBytesAreNotWritten(t *testing.T) {
	s := open(t, t.TempDir())
	for _, save := range []struct {
		path string
		once func() error
	}{
		{"meta/assigned", func() error { return s.SaveSource(Assigned, source("1")) }},
		{"meta/trial", func() error { return s.SaveDocument("trial", "Trial", map[string]int{"failures": 1}) }},
		{"checkpoints/uid/1/kubelet", func() error { return s.SaveCheckpoint(*source("1"), map[string]string{"kubelet": "x"}) }},
		{"checkpoints/uid/1.sha256", func() error { return s.SaveCheckpoint(*source("1"), map[string]string{"kubelet": "x"}) }},
	} {
		must(t, save.once())
		before, err := os.Stat(filepath.Join(s.dir, save.path))
		must(t, err)
		must(t, save.once())
		after, err := os.Stat(filepath.Join(s.dir, save.path))
		must(t, err)
		if !os.SameFile(before, after) || before.ModTime() != after.ModTime() {
			t.Errorf("%s was written again", save.path)
		}
	}
}

func TestSavingReplacesWhateverIsInTheWay(t *testing.T) {
	for _, row := range obstacles {
		t.Run(row.name, func(t *testing.T) {
			s := open(t, t.TempDir())
			must(t, os.Mkdir(filepath.Join(s.dir, "meta"), 0o700))
			row.put(t, metaPath(s, Assigned))
			row.put(t, filepath.Join(s.dir, "meta", "tmp_assigned"))
			must(t, s.SaveSource(Assigned, source("1")))
			loaded, err := s.LoadSource(Assigned)
			must(t, err)
			wantSource(t, loaded, source("1"))
			if leftovers := list(t, s.dir, "meta"); strings.Contains(leftovers, "tmp_") {
				t.Errorf("left behind: %s", leftovers)
			}
		})
	}
}

func metaPath(s *Store, p Pointer) string { return filepath.Join(s.dir, "meta", string(p)) }

func wantSource(t *testing.T, got, want *corev1.ConfigMapNodeConfigSource) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("source (-want +got):\n%s", diff)
	}
}
