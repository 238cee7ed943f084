//go:build linux

package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestCollect(t *testing.T) {
	saved := []corev1.ConfigMapNodeConfigSource{*sourceOf("a", "1"), *sourceOf("a", "2"), *sourceOf("a", "22"), *sourceOf("b", "1")}
	for _, row := range []struct {
		name string
		keep []corev1.ConfigMapNodeConfigSource
		want map[string]string // folder → names
	}{
		{"nothing to keep", nil, map[string]string{"checkpoints": ""}},
		{"all", saved, map[string]string{"checkpoints": "a b", "checkpoints/a": "1 1.sha256 2 2.sha256 22 22.sha256", "checkpoints/b": "1 1.sha256"}},
		{"one version", saved[1:2], map[string]string{"checkpoints": "a", "checkpoints/a": "2 2.sha256"}},
		{"one uid", saved[3:], map[string]string{"checkpoints": "b", "checkpoints/b": "1 1.sha256"}},
		{"twice the same", append(saved[3:4:4], saved[3]), map[string]string{"checkpoints": "b", "checkpoints/b": "1 1.sha256"}},
		{"one that was never saved", []corev1.ConfigMapNodeConfigSource{*sourceOf("a", "9"), *sourceOf("c", "1")}, map[string]string{"checkpoints": "a", "checkpoints/a": ""}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := open(t, t.TempDir())
			must(t, s.Collect(row.keep)) // of an empty STATE_DIR
			for _, source := range saved {
				must(t, s.SaveCheckpoint(source, map[string]string{"kubelet": "x"}))
			}
			must(t, s.SaveSource(Assigned, source("1")))
			for range 2 {
				must(t, s.Collect(row.keep))
				for folder, want := range row.want {
					wantList(t, s, folder, want)
				}
				wantList(t, s, "meta", "assigned")
			}
		})
	}
}

func TestCollectRemovesLeftovers(t *testing.T) {
	s := open(t, t.TempDir())
	kept := *sourceOf("a", "1")
	must(t, s.SaveCheckpoint(kept, map[string]string{"tmp_key": "x"}))
	must(t, s.SaveSource(Assigned, &kept))
	for _, file := range []string{"meta/tmp_assigned", "checkpoints/a/tmp_2/kubelet", "checkpoints/a/3/kubelet", "checkpoints/a/4.sha256",
		"checkpoints/tmp_x", "checkpoints/stray", "checkpoints/b/tmp_1/kubelet", "meta/notes", "notes"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(s.dir, file)), 0o700))
		must(t, os.WriteFile(filepath.Join(s.dir, file), nil, 0o600))
	}
	must(t, s.Collect([]corev1.ConfigMapNodeConfigSource{kept}))
	for folder, want := range map[string]string{
		"":                "checkpoints lock meta notes", // what is none of ours to remove stays
		"meta":            "assigned notes",
		"checkpoints":     "a stray",
		"checkpoints/a":   "1 1.sha256",
		"checkpoints/a/1": "tmp_key",
	} {
		wantList(t, s, folder, want)
	}
}

func TestCollectBoundsWhatWasSetAside(t *testing.T) {
	s := open(t, t.TempDir())
	must(t, s.SaveCheckpoint(*sourceOf("a", "1"), nil))
	must(t, s.SaveCheckpoint(*sourceOf("gone", "1"), nil))
	must(t, s.SaveSource(Assigned, nil))
	names := []string{"z.corrupt-1", "a.corrupt-2", "z.corrupt-3", "a.corrupt-4", "z.corrupt-5", "a.corrupt-6", "z.corrupt-7"}
	for _, folder := range []string{"", "meta", "checkpoints", "checkpoints/a", "checkpoints/gone"} {
		for i, name := range names {
			path := filepath.Join(s.dir, folder, name)
			if i%2 == 0 {
				must(t, os.MkdirAll(filepath.Join(path, "x"), 0o700))
			} else {
				must(t, os.WriteFile(path, nil, 0o600))
			}
		}
	}
	must(t, s.Collect([]corev1.ConfigMapNodeConfigSource{*sourceOf("a", "1")}))
	const newest = "a.corrupt-4 a.corrupt-6 %sz.corrupt-3 z.corrupt-5 z.corrupt-7"
	wantList(t, s, "", fmt.Sprintf(newest, "checkpoints lock meta "))
	wantList(t, s, "meta", fmt.Sprintf("a.corrupt-4 a.corrupt-6 %sz.corrupt-3 z.corrupt-5 z.corrupt-7", "assigned "))
	wantList(t, s, "checkpoints", fmt.Sprintf("a "+newest, ""))
	wantList(t, s, "checkpoints/a", "1 1.sha256 "+fmt.Sprintf(newest, ""))
}

func TestCollectRemovesNothingForABadCaller(t *testing.T) {
	s := open(t, t.TempDir())
	must(t, s.SaveCheckpoint(*source("1"), nil))
	wantError(t, s.Collect([]corev1.ConfigMapNodeConfigSource{*source("")}), "empty ResourceVersion is ambiguous")
	_, err := s.LoadCheckpoint(*source("1"))
	must(t, err)
}

// Collect says what it could not reach.
func TestCollectOfFoldersThatAreNone(t *testing.T) {
	for _, folder := range []string{"meta", "checkpoints", "checkpoints/uid"} {
		t.Run(folder, func(t *testing.T) {
			s := open(t, t.TempDir())
			must(t, s.SaveSource(Assigned, source("1")))
			must(t, s.SaveCheckpoint(*source("1"), nil))
			must(t, os.RemoveAll(filepath.Join(s.dir, folder)))
			must(t, os.WriteFile(filepath.Join(s.dir, folder), nil, 0o600))
			wantError(t, s.Collect([]corev1.ConfigMapNodeConfigSource{*source("1")}), folder+" is a file instead of a folder")
		})
	}
}

func TestCollectFollowsNoLinks(t *testing.T) {
	s := open(t, t.TempDir())
	elsewhere := t.TempDir()
	must(t, os.WriteFile(filepath.Join(elsewhere, "1.sha256"), nil, 0o600))
	must(t, s.SaveCheckpoint(*source("1"), nil))
	must(t, os.Symlink(elsewhere, filepath.Join(s.dir, "checkpoints", "link")))
	must(t, os.Symlink(elsewhere, filepath.Join(s.dir, "checkpoints", "uid", "2")))
	must(t, s.Collect([]corev1.ConfigMapNodeConfigSource{*source("1")}))
	wantList(t, s, "checkpoints", "link uid")
	wantList(t, s, "checkpoints/uid", "1 1.sha256")
	if names := list(t, elsewhere); names != "1.sha256" {
		t.Errorf("behind the links is %q, want it untouched", names)
	}
}
