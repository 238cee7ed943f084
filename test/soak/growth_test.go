//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestGrown(t *testing.T) {
	first := size{Files: 20, Threads: 10, Anonymous: 6 << 10, Resident: 20 << 10, StateDir: usage{12, 60}, RunDir: usage{8, 100}}
	for name, test := range map[string]struct {
		change func(*size)
		grown  bool
	}{
		"nothing":                {func(*size) {}, false},
		"a few descriptors":      {func(z *size) { z.Files += moreFiles }, false},
		"more descriptors":       {func(z *size) { z.Files += moreFiles + 1 }, true},
		"threads":                {func(z *size) { z.Threads = mostThreads + 1 }, true},
		"some memory":            {func(z *size) { z.Anonymous += moreAnonymous }, false},
		"more memory":            {func(z *size) { z.Anonymous += moreAnonymous + 1 }, true},
		"resident memory":        {func(z *size) { z.Resident = mostResident + 1 }, true},
		"checkpoints":            {func(z *size) { z.StateDir.Files = mostStateFiles + 1 }, true},
		"bytes in the state":     {func(z *size) { z.StateDir.KiB = mostStateKiB + 1 }, true},
		"a log that is not kept": {func(z *size) { z.RunDir.KiB = mostRunKiB + 1 }, true},
	} {
		now := first
		test.change(&now)
		if what := grown(first, now); (what != "") != test.grown {
			t.Errorf("%s: %q", name, what)
		}
	}
}

func TestDiskOfALogWithAHole(t *testing.T) {
	folder := t.TempDir()
	file, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(1 << 30); err != nil {
		t.Fatal(err)
	}
	d, err := diskOf(folder)
	if err != nil || d.Files != 2 || d.KiB > 64 {
		t.Errorf("%+v (%v), want two entries that take next to nothing", d, err)
	}
}

func TestTheSupervisorsLog(t *testing.T) {
	l := supervisorLog{path: filepath.Join(t.TempDir(), "log")}
	write := func(text string) {
		t.Helper()
		file, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		if err := l.follow(); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.follow(); err != nil {
		t.Errorf("no log yet: %v", err)
	}
	write("2026-01-01T00:00:00Z\tINFO\tstarting the kubelet with local\nI0101 the kubelet's\n")
	write("SIGQUIT: quit\nPC=0x1\n\ngoroutine 0 [idle]:\nmain.main()\n\ngoroutine 7 [select]:\n")
	write("2026-01-01T00:00:01Z\tINFO\tstarting the kubelet with local\ngoroutine 9 of somebody else\n")
	write("2026-01-01T00:00:01Z\tINFO\tstarting the kubelet with local\t{\"because\": \"FilesSetAside\"}\n")
	if l.starts != 2 || !slices.Equal(l.goroutines, []int{2}) || len(l.last) != 3 {
		t.Errorf("%+v", l)
	}
}
