//go:build linux

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
	for _, link := range []string{dir, dir + "/", dir + "/."} {
		_, err := Look(link)
		wantError(t, err, "is a symbolic link instead of a folder")
	}
}

// A Reader reads documents and copies of the node's own file, too, and says what it cannot read.
func TestReaderOfDocumentsAndBases(t *testing.T) {
	s := open(t, t.TempDir())
	one := *source("1")
	must(t, s.SaveDocument("trial", "Trial", trial{Of: "new"}))
	must(t, s.SaveBase(one, digestOf("own"), []byte("own")))
	r, err := Look(s.dir)
	must(t, err)
	var got trial
	must(t, r.Document("trial", "Trial", &got))
	must(t, r.Document("absent", "Trial", &got))
	if base, err := r.Base(one, digestOf("own")); err != nil || string(base) != "own" || got.Of != "new" {
		t.Errorf("%q, %v, %+v", base, err, got)
	}
	wantError(t, r.Document("trial", "Rejected", &got), `reading trial: `)
	wantError(t, r.Document("../trial", "Trial", &got), "cannot be a file name")
	_, err = r.Base(one, digestOf("other"))
	wantError(t, err, "reading the copy of the node's own configuration file: there is none")
	_, _, err = r.Checkpoint(*sourceOf("..", "1"))
	wantError(t, err, "cannot be a file name")
}

// A folder that has taken the place of the one that a Reader looks into is not taken for it.
func TestReaderOfAFolderThatWasReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	must(t, open(t, dir).SaveSource(Assigned, source("1")))
	r, err := Look(dir)
	must(t, err)
	must(t, os.Rename(dir, dir+"-before"))
	must(t, open(t, dir).SaveSource(Assigned, source("2")))
	_, err = r.Source(Assigned)
	wantError(t, err, "was removed or replaced while in use")
}
