package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// Every entry belongs to root, has the label of its place and the one time, and directories come before what is in them.
func TestWrite(t *testing.T) {
	at := time.Unix(1700000000, 0)
	files := fstest.MapFS{
		"usr":                  {Mode: fs.ModeDir | 0o755},
		"usr/bin/program":      {Mode: 0o755, Data: []byte("content"), ModTime: at.Add(time.Hour)},
		"usr/binary":           {Mode: 0o644},
		"usr/lib/release.d/it": {Mode: 0o644},
		"usr/share/doc/it":     {Mode: 0o644},
	}
	for _, folder := range []string{"usr/bin", "usr/lib", "usr/lib/release.d", "usr/share", "usr/share/doc"} {
		files[folder] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
	}
	want := `usr/ 755 usr_t 0
usr/bin/ 755 bin_t 0
usr/bin/program 755 bin_t 7
usr/binary 644 usr_t 0
usr/lib/ 755 lib_t 0
usr/lib/release.d/ 755 lib_t 0
usr/lib/release.d/it 644 lib_t 0
usr/share/ 755 usr_t 0
usr/share/doc/ 755 usr_t 0
usr/share/doc/it 644 usr_t 0
`
	var packed bytes.Buffer
	if err := write(files, at, &packed); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	archive := tar.NewReader(&packed)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		label := strings.Split(h.PAXRecords["SCHILY.xattr.security.selinux"], ":")
		if len(label) != 4 || label[0] != "system_u" || label[1] != "object_r" || label[3] != "s0" {
			t.Fatalf("%s has the label %q", h.Name, label)
		}
		if h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(at) {
			t.Errorf("%s: %+v", h.Name, h)
		}
		fmt.Fprintf(&got, "%s %o %s %d\n", h.Name, h.Mode, label[2], h.Size)
	}
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

func TestWriteRefusesOtherThanFiles(t *testing.T) {
	err := write(fstest.MapFS{"usr/bin/link": {Mode: fs.ModeSymlink | 0o777}}, time.Time{}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "usr/bin/link") {
		t.Errorf("got %v", err)
	}
}

func TestRunNeedsATime(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "")
	if err := run(t.TempDir(), io.Discard); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
		t.Errorf("got %v", err)
	}
}
