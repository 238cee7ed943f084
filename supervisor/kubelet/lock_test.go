//go:build linux

package kubelet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// What the kernel's tables say of locks (proc_pid_fdinfo(5), proc_locks(5)).
func TestLocksInTheKernelsTables(t *testing.T) {
	for info, want := range map[string]string{
		"pos:\t0\nflags:\t02\nlock:\t1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF\n":                              "08:01:1234",
		"lock:\t1: POSIX  ADVISORY  WRITE 4711 08:01:7 0 EOF\nlock:\t2: FLOCK  ADVISORY  WRITE 4711 08:01:8 0 EOF\n": "08:01:8",
		"lock:\t1: POSIX  ADVISORY  WRITE 4711 08:01:1234 0 EOF\n":                                                   "",
		"lock:\t1: FLOCK  ADVISORY  WRITE 4711\n":                                                                    "",
		"what:\t1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF\n":                                                   "",
		"lock:\t1: FLOCK  ADVISORY  WRITE 4711 08:01:1234\n":                                                         "08:01:1234",
		"": "",
	} {
		if got := heldIn(info); got != want {
			t.Errorf("%q has the lock %q, want %q", info, got, want)
		}
	}
	for line, want := range map[string]bool{
		"1: -> FLOCK  ADVISORY  WRITE 12 08:01:9 0 EOF":  true,
		"1: -> FLOCK  ADVISORY  WRITE 12 08:01:9":        true,
		"1: FLOCK  ADVISORY  WRITE 12 08:01:9 0 EOF":     false, // it holds it
		"1: <- FLOCK  ADVISORY  WRITE 12 08:01:9 0 EOF":  false,
		"1: -> POSIX  ADVISORY  WRITE 12 08:01:9 0 EOF":  false,
		"1: -> FLOCK  ADVISORY  WRITE 13 08:01:9 0 EOF":  false, // another process
		"1: -> FLOCK  ADVISORY  WRITE 12 08:01:10 0 EOF": false, // another lock
		"1: -> FLOCK  ADVISORY  WRITE 12":                false,
		"":                                               false,
	} {
		for _, table := range []string{line, "1: FLOCK  ADVISORY  WRITE 7 08:01:9 0 EOF\n" + line + "\n2: POSIX  ADVISORY  WRITE 8 08:01:1 0 EOF\n"} {
			if got := (heldLock{id: "08:01:9"}).waitedFor(table, 12); got != want {
				t.Errorf("%q: waits %t, want %t", table, got, want)
			}
		}
	}
}

func TestLockOf(t *testing.T) {
	folder := t.TempDir()
	held, other := filepath.Join(folder, "held"), filepath.Join(folder, "other")
	for _, path := range []string{other, held} {
		fd, err := openLock(path)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v (%v), want a file that is root's alone", info, err)
		}
		if path == held && unix.Flock(fd, unix.LOCK_EX) != nil {
			t.Fatal("cannot lock it")
		}
	}
	if lock, holds := lockOf(os.Getpid(), "held"); !holds || !lock.isAt(held) || lock.isAt(other) {
		t.Errorf("the one that is held: %+v, %t", lock, holds)
	}
	if lock, holds := lockOf(os.Getpid(), "other"); holds {
		t.Errorf("the one that is only open: %+v", lock)
	}
	if lock, holds := lockOf(1<<30, "held"); holds { // there is no such process
		t.Errorf("of nobody: %+v", lock)
	}
}

func TestComesBeforeItsLock(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "kubelet.lock")
	for _, row := range []struct {
		name, flag, path, holds string
		want                    bool
	}{
		{"on its way", lockFlag + path, path, "", true},
		{"past it", lockFlag + path, path, path, false},
		{"it holds another file", lockFlag + path, path, filepath.Join(folder, "another"), true},
		{"it has no such flag", "--v=2", path, "", false},
		{"it has another file", lockFlag + path + "2", path, "", false},
		{"we have none", lockFlag, "", "", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			script := "echo; read -r line"
			if row.holds != "" {
				script = "exec 9>" + row.holds + "; flock 9; " + script
			}
			c := exec.Command("/bin/sh", "-c", script, "sh", row.flag)
			in, errIn := c.StdinPipe()
			out, errOut := c.StdoutPipe()
			if err := c.Start(); err != nil || errIn != nil || errOut != nil {
				t.Fatal(err, errIn, errOut)
			}
			defer func() { _ = in.Close(); _ = c.Wait() }()
			_, _ = out.Read(make([]byte, 1))
			if got := comesBeforeItsLock(c.Process.Pid, row.path); got != row.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// The supervisor looks whether a kubelet could open its lock file, whoever holds it, and whether it is free.
func TestWhatALockFileMayBe(t *testing.T) {
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	if err := unix.Mkfifo(at("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(at("new"), at("link")); err != nil {
		t.Fatal(err)
	}
	stranger, err := openLock(at("held"))
	if err != nil || unix.Flock(stranger, unix.LOCK_EX) != nil {
		t.Fatal(err)
	}
	defer unix.Close(stranger)
	for name, want := range map[string]struct{ open, free bool }{
		"new": {true, true}, "held": {true, false}, "fifo": {false, false}, "link": {false, false}, "absent/new": {false, false}, "": {false, false},
	} {
		if open, free := canOpen(at(name)), isFree(at(name)); open != want.open || free != want.free {
			t.Errorf("%q: can be opened %t, free %t; want %+v", name, open, free, want)
		}
	}
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if path := linked(fmt.Sprint("/proc/self/fd/", file.Name())); path == at("fifo") || path == at("new") {
			t.Errorf("%s is left open", path)
		}
	}
}
