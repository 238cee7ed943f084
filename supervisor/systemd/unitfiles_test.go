//go:build linux

package systemd

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestDigests(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	look := func() map[string]string {
		t.Helper()
		digests, err := Digests([]string{filepath.Join(folder, "*.conf"), filepath.Join(folder, "flags.env"), filepath.Join(folder, "pipe"), "[", filepath.Join(folder, "missing")})
		if err != nil {
			t.Fatal(err)
		}
		return digests
	}
	write("10-a.conf", "a")
	write("flags.env", "A=1")
	if err := unix.Mkfifo(filepath.Join(folder, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := look()
	for _, row := range []struct {
		name string
		does func()
		same bool
	}{
		{"nothing", func() {}, true},
		{"the same again", func() { write("flags.env", "A=1") }, true},
		{"another file's", func() { write("notes", "x") }, true},
		{"a flag", func() { write("flags.env", "A=2") }, false},
		{"a flag back", func() { write("flags.env", "A=1") }, true},
		{"a drop-in that comes", func() { write("20-b.conf", "") }, false},
		{"and goes", func() { _ = os.Remove(filepath.Join(folder, "20-b.conf")) }, true},
		{"an environment file that goes", func() { _ = os.Remove(filepath.Join(folder, "flags.env")) }, false},
	} {
		if row.does(); maps.Equal(first, look()) != row.same {
			t.Errorf("%s: %v, and at first %v", row.name, look(), first)
		}
	}
	write("20-b.conf", strings.Repeat("x", maxUnitFile+1))
	if got, err := Digests([]string{filepath.Join(folder, "*.conf")}); err == nil {
		t.Errorf("of a file that cannot be read: %v", got)
	}
}
