//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == enclosed {
		os.Exit(enclose(os.Args[2], os.Args[3], os.Args[4:]))
	}
	os.Exit(m.Run())
}

// shell runs a script as a mutant would be.
func shell(ctx context.Context, t *testing.T, script string) (string, error) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	r := &runner{folder: &folder{Dir: t.TempDir(), scratch: t.TempDir()}, env: []string{"OUTSIDE=" + t.TempDir()}}
	output, err := r.startEnclosed(ctx, "/bin/sh", 7, "-c", script)
	return string(output), err
}

// An enclosed mutant sees and ends no process but its own, and writes nowhere but in its folder, where its tests may be several users.
func TestEnclosed(t *testing.T) {
	output, err := shell(t.Context(), t, `
		echo "mutant $MUTATE_ID"
		touch "$OUTSIDE/x" 2>/dev/null || echo "cannot write outside"
		rm -rf "$PWD" 2>/dev/null; test -d "$PWD" && echo "cannot remove outside"
		setpriv --reuid=65534 --clear-groups touch "$TMPDIR/y" && echo "another user can write there"
		touch "$TMPDIR/x" && echo "can write inside"
		echo $(ls /proc | grep -c '^[0-9]*$') processes or fewer
		kill -9 -1; echo "killed all but itself"
		exit 3`)
	if err == nil || err.Error() != "exit status 3" {
		t.Errorf("it ended with %v", err)
	}
	for _, want := range []string{"mutant 7", "cannot write outside", "cannot remove outside", "another user can write there", "can write inside", "killed all but itself"} {
		if !strings.Contains(output, want) {
			t.Errorf("%q is not in\n%s", want, output)
		}
	}
	processes := 0
	if _, after, found := strings.Cut(output, "inside\n"); !found {
		t.Error(output)
	} else if _, err := fmt.Sscan(after, &processes); err != nil || processes > 6 {
		t.Errorf("it sees %d processes (%v)", processes, err)
	}
}

// What an enclosed mutant leaves behind ends with it, also when its time is over.
func TestNothingIsLeftOfTheEnclosed(t *testing.T) {
	mark := fmt.Sprintf("3%09d", os.Getpid()) // seconds, and how the sleeper is known
	if _, err := shell(t.Context(), t, "sleep "+mark+" & exit 0"); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := shell(ctx, t, "setsid sleep "+mark+" & sleep "+mark); err == nil {
		t.Error("it does not end")
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range commands {
		if line, _ := os.ReadFile(path); strings.Contains(string(line), mark) {
			t.Errorf("%s is left: %q", path, line)
		}
	}
}

func TestTargets(t *testing.T) {
	if all := targetsOf("all"); len(all) != len(targets) {
		t.Errorf("all are %v", all)
	}
	some := targetsOf("store,./sync,supervisor/host")
	if len(some) != 3 || !some[0].Enclosed || some[1].Package != "./sync" || some[2].Package != "./supervisor/host" {
		t.Errorf("some are %+v", some)
	}
	for _, target := range targets {
		for _, file := range target.Only {
			if _, err := os.Stat(filepath.Join("../..", target.Package, file)); err != nil {
				t.Error(err)
			}
		}
	}
}
