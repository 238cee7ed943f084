//go:build linux

package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

// Each file that a supervisor reads at its start is spoilt in each way, with real files and mounts. Whatever it meets, the kubelet runs;
// what was spoilt is set aside and reported; and what is sound goes on to be used.

// spoiltFiles are the files, by the path below the node's folder, and what runs without each. "a" is assigned, "b" last known good.
var spoiltFiles = []struct {
	path   string
	runs   string
	reason string // of the condition
	report string // a part of what is said of it
}{
	{"state/meta/assigned", "b", "InTrial", "loading assigned: "},
	{"state/meta/last-known-good", "a", "InTrial", "loading last-known-good: "},
	{"state/meta/trial", "a", "InTrial", "loading trial: "},
	{"state/meta/rejected", "a", "InTrial", "loading rejected: "},
	{"state/meta/preflight", "a", "InTrial", "loading preflight: "},
	{"state/checkpoints/uid-a/1/kubelet", "b", "InternalError", "loading the checkpoint of /api/v1/namespaces/kube-system/configmaps/a"},
	{"state/checkpoints/uid-a/1.sha256", "b", "InternalError", "loading the checkpoint of /api/v1/namespaces/kube-system/configmaps/a"},
	{"state/checkpoints/uid-b/1/kubelet", "a", "InTrial", "loading the checkpoint of /api/v1/namespaces/kube-system/configmaps/b"},
	{"run/state.json", "a", "InTrial", "what an earlier supervisor said of itself cannot be read"},
}

var spoilings = []struct {
	name  string
	spoil func(t *testing.T, path string) error
	words string // what is said of it; empty = the decoder's own
	spare string // files that this is no fault of
}{
	{name: "cut off", spoil: func(_ *testing.T, path string) error { return os.Truncate(path, 40) }},
	{name: "of length zero", spoil: func(_ *testing.T, path string) error { return os.Truncate(path, 0) },
		spare: "assigned last-known-good"}, // that is how upstream's files say local
	{name: "of a newer version", spoil: func(_ *testing.T, path string) error {
		content, err := os.ReadFile(path)
		newer := strings.NewReplacer("kubelet-supervisor.io/v1", "kubelet-supervisor.io/v2", "kubelet.config.k8s.io/v1beta1", "kubelet.config.k8s.io/v2").Replace(string(content))
		return errors.Join(err, os.WriteFile(path, []byte(newer), 0o600))
	}, words: "/v2", spare: "kubelet 1.sha256"},
	{name: "somebody else's", spoil: func(_ *testing.T, path string) error { return os.Chown(path, 65534, 65534) }, words: "belongs to user 65534"},
	{name: "a link", spoil: func(_ *testing.T, path string) error {
		return errors.Join(os.Rename(path, path+".real"), os.Symlink(path+".real", path))
	}},
	{name: "a folder", spoil: func(_ *testing.T, path string) error {
		return errors.Join(os.Remove(path), os.MkdirAll(path+"/x", 0o700))
	}},
	{name: "a pipe", spoil: func(_ *testing.T, path string) error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)) }},
	{name: "on a broken disk", words: brokenDisk, spoil: func(t *testing.T, path string) error {
		return unix.Mount(fmt.Sprintf("/proc/%d/mem", os.Getpid()), path, "", unix.MS_BIND, "") // nothing is mapped at its beginning
	}},
}

const brokenDisk = "input/output error" // reading fails, and so do replacing and renaming

func TestSpoiltFiles(t *testing.T) {
	needsMounts(t)
	template := stateOfANode(t)
	for _, file := range spoiltFiles {
		for _, way := range spoilings {
			if strings.Contains(way.spare, filepath.Base(file.path)) {
				continue
			}
			t.Run(file.path+" is "+way.name, func(t *testing.T) {
				t.Parallel()
				n := newNode(t)
				n.restore(template)
				t.Cleanup(n.unmount)
				path := n.path(file.path)
				if err := way.spoil(t, path); err != nil {
					t.Fatal(err)
				}
				r := n.run()
				broken := way.words == brokenDisk
				if broken && file.path == "run/state.json" { // neither read nor written
					n.await("a healthy kubelet", func() bool { return strings.Contains(r.log.String(), "kubelet is healthy") })
					return
				}
				runs, reason := file.runs, file.reason
				if broken && strings.HasPrefix(file.path, "state/meta/") {
					runs, reason = "local", "InternalError" // no try could be counted
				}
				record := r.await("a healthy kubelet, "+reason, func(record Record) bool { return record.Healthy && record.Condition.Reason == reason })
				if got := runsOf(record); got != runs {
					t.Errorf("%s runs, want %s", got, runs)
				}
				said := record.StateProblems
				if strings.HasPrefix(file.path, "run/") {
					said = r.log.String()
				} else if !strings.Contains(record.Condition.Message, file.report) {
					t.Errorf("the condition says nothing of it: %s", record.Condition.Message)
				}
				if !strings.Contains(said, file.report) || !strings.Contains(said, way.words) {
					t.Errorf("%q and %q are not in %q", file.report, way.words, said)
				}
				if aside := n.setAside(); !broken && len(aside) == 0 {
					t.Error("nothing was set aside")
				}
			})
		}
	}
}

func runsOf(record Record) string {
	if record.Runs == nil {
		return "local"
	}
	return record.Runs.Source.Name
}

// setAside lists what was set aside anywhere.
func (n *node) setAside() (found []string) {
	err := filepath.WalkDir(n.folder, func(path string, _ fs.DirEntry, err error) error {
		if strings.Contains(filepath.Base(path), ".corrupt") {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return found
}

// stateOfANode gives the files of a node with a on trial, b last known good, and everything else that a supervisor writes.
func stateOfANode(t *testing.T) map[string]string {
	t.Helper()
	n := newNode(t)
	n.seed(store.LastKnownGood, "b", fakenode.Configuration("mode: ok, words: b"))
	n.seed(store.Assigned, "a", fakenode.Configuration("mode: ok, words: a"))
	r := n.run()
	r.await("the trial", func(record Record) bool { return record.Healthy && record.Condition.Reason == "InTrial" })
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for path, content := range filesIn(t, n.folder) {
		if strings.HasPrefix(path, "state/") || path == "run/state.json" {
			files[path] = content
		}
	}
	return files
}

func (n *node) restore(files map[string]string) {
	n.t.Helper()
	for path, content := range files {
		written(n.t, n.folder, path, content)
	}
}

var mounts = sync.OnceValue(func() error {
	folder, err := os.MkdirTemp("", "mount-")
	if err == nil {
		err = unix.Mount("none", folder, "tmpfs", 0, "size=64k")
	}
	return errors.Join(err, unix.Unmount(folder, 0), os.Remove(folder))
})

// needsMounts skips, and says so, where nothing can be mounted.
func needsMounts(t *testing.T) {
	t.Helper()
	if err := mounts(); err != nil {
		t.Skipf("DISK FAULTS ARE NOT TESTED: they need root and mounts: %v", err)
	}
}

// unmount takes away what is mounted below the node's folder, wherever it was moved to.
func (n *node) unmount() {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		n.t.Error(err)
	}
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], n.folder+"/") {
			if err := unix.Unmount(fields[4], unix.MNT_DETACH); err != nil {
				n.t.Errorf("unmounting %s: %v", fields[4], err)
			}
		}
	}
}

// Nothing can be written: a configuration on trial is not started, for its tries could not be counted. Once there is room it is.
func TestDisksThatTakeNothing(t *testing.T) {
	needsMounts(t)
	template := stateOfANode(t)
	for _, row := range []struct {
		name, folder string
		spoil, heal  func(folder string) error
		reason       string // while nothing can be written
		words        string
	}{
		{"a full state folder", "state", fillUp, makeRoom, "InternalError", "no space left on device"},
		{"a read-only state folder", "state", remounted(unix.MS_RDONLY), remounted(0), "InternalError", "read-only file system"},
		{"a full run folder", "run", fillUp, makeRoom, "", "no space left on device"},
		{"a read-only run folder", "run", remounted(unix.MS_RDONLY), remounted(0), "", "read-only file system"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			folder := n.path(row.folder)
			requests := make(chan Request)
			n.options.Requests = requests
			if err := errors.Join(os.Mkdir(folder, 0o700), unix.Mount("none", folder, "tmpfs", 0, "size=256k,mode=0700")); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(n.unmount)
			n.restore(template)
			for _, below := range []string{"effective", "preflight"} {
				if err := os.MkdirAll(n.path("run/"+below), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := row.spoil(folder); err != nil {
				t.Fatal(err)
			}
			r := n.run()
			n.await("a healthy kubelet", func() bool { return strings.Contains(r.log.String(), "kubelet is healthy") })
			if starts := n.entries("start"); starts[0].Config != n.local {
				t.Errorf("started with %s, and not the local configuration", starts[0].Config)
			}
			if row.reason != "" {
				r.await(row.reason, func(record Record) bool {
					return record.Condition.Reason == row.reason && strings.Contains(record.Condition.Message, row.words)
				})
			} else if log := r.log.String(); !strings.Contains(log, row.words) {
				t.Errorf("%q is not in the log", row.words)
			}
			if err := row.heal(folder); err != nil {
				t.Fatal(err)
			}
			requests <- RetryNow
			record := r.await("the trial", func(record Record) bool { return record.Healthy && record.Condition.Reason == "InTrial" })
			if runsOf(record) != "a" {
				t.Errorf("%s runs", runsOf(record))
			}
		})
	}
}

// fillUp leaves no room in a folder.
func fillUp(folder string) error {
	err := os.WriteFile(filepath.Join(folder, "filling"), make([]byte, 1<<20), 0o600)
	if !errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("the disk is not full: %w", err)
	}
	return nil
}

func makeRoom(folder string) error { return os.Remove(filepath.Join(folder, "filling")) }

func remounted(flags uintptr) func(folder string) error {
	return func(folder string) error { return unix.Mount("", folder, "", unix.MS_REMOUNT|flags, "") }
}
