//go:build linux

package store

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestHoldersIn(t *testing.T) {
	const ours = "1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF\n"
	for name, test := range map[string]struct {
		table string
		want  []string
	}{
		"an empty table":                      {"", nil},
		"ours":                                {ours, []string{"4711"}},
		"another file":                        {"1: FLOCK  ADVISORY  WRITE 4711 08:01:91234 0 EOF\n", nil},
		"another kind of lock":                {strings.Replace(ours, "FLOCK", "POSIX", 1), nil},
		"one that waits":                      {"1: -> FLOCK  ADVISORY  WRITE 4712 08:01:1234 0 EOF\n", nil},
		"one line twice":                      {ours + ours, []string{"4711"}},
		"the inode of two file systems":       {ours + "2: FLOCK  ADVISORY  WRITE 12 09:02:1234 0 EOF\n", []string{"4711", "12"}},
		"a line that is torn after the inode": {"1: FLOCK  ADVISORY  WRITE 4711 08:01:1234", []string{"4711"}},
		"a torn line":                         {"1: FLOCK  ADVISORY  WRITE 47", nil},
	} {
		if got := holdersIn(test.table, 1234); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// The kernel's table shifts between two pieces of it where others lock and unlock; the holder is told all the same.
func TestHolderWhileLocksComeAndGo(t *testing.T) {
	folder := t.TempDir()
	locked := func(name string) *os.File {
		t.Helper()
		file, err := os.Create(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		return file
	}
	var held []*os.File
	for i := range 60 {
		held = append(held, locked("held-"+string(rune('0'+i))))
	}
	others := []*os.File{locked("a"), locked("b"), locked("c"), locked("d")}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			for _, how := range []int{syscall.LOCK_UN, syscall.LOCK_EX} {
				for _, file := range others {
					_ = syscall.Flock(int(file.Fd()), how)
				}
			}
			select {
			case <-over:
				return
			default:
			}
		}
	}()
	defer func() { close(over); <-done }()
	untold := 0
	for range 20 {
		for _, file := range held {
			info, err := file.Stat()
			if err != nil {
				t.Fatal(err)
			}
			if holderOf(info) == 0 {
				untold++
			}
		}
	}
	if untold > 0 {
		t.Errorf("%d of %d holders were not told", untold, 20*len(held))
	}
}
