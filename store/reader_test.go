package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A Reader sees what the Store that has the folder open has saved, and leaves all as it is.
func TestReaderBesideAStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir)
	assigned := source("1")
	payload := map[string]string{"kubelet": "a", "other": "b"}
	must(t, errors.Join(s.SaveCheckpoint(*assigned, payload), s.SaveSource(Assigned, assigned)))

	r, err := Look(dir)
	must(t, err)
	got, err := r.Source(Assigned)
	must(t, err)
	if diff := cmp.Diff(assigned, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if lastKnownGood, err := r.Source(LastKnownGood); lastKnownGood != nil || err != nil {
		t.Errorf("last known good is %v, %v", lastKnownGood, err)
	}
	seen, folder, err := r.Checkpoint(*got)
	must(t, err)
	if diff := cmp.Diff(payload, seen); diff != "" || folder != s.CheckpointFolder(*got) {
		t.Errorf("in %s (-want +got):\n%s", folder, diff)
	}

	changed := filepath.Join(folder, "kubelet")
	must(t, os.WriteFile(changed, []byte("A"), 0o600))
	_, _, err = r.Checkpoint(*got)
	wantError(t, err, "does not match its checksum")
	pointer := filepath.Join(dir, "meta", "assigned")
	must(t, os.WriteFile(pointer, []byte("{"), 0o600))
	_, err = r.Source(Assigned)
	wantError(t, err, "does not decode")
	for _, path := range []string{changed, pointer} {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("it was set aside: %v", err)
		}
	}
	_, _, err = r.Checkpoint(*source("2"))
	wantError(t, err, "no checkpoint for source /api/v1/namespaces/")
}

func TestReaderOfNoFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if _, err := Look(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	must(t, os.Symlink(t.TempDir(), dir))
	_, err := Look(dir)
	wantError(t, err, "is a symbolic link instead of a folder")
}
