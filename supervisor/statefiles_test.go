//go:build linux

package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/store"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/fakenode"
)

const (
	cpuState    = "cpu_manager_state"
	memoryState = "memory_manager_state"
)

func TestSetAside(t *testing.T) {
	files := []kubeletconfig.StateFile{{Name: cpuState, Policy: "none"}, {Name: memoryState}}
	const cpuAside, memoryAside = cpuState + ".aside-none", memoryState + ".aside-refused"
	for name, test := range map[string]struct {
		there, after map[string]string // path to content
		prepare      func(root string) error
		fails        string
	}{
		"two files": {there: map[string]string{cpuState: "c", memoryState: "m", "dra_manager_state": "d"},
			after: map[string]string{cpuAside: "c", memoryAside: "m", "dra_manager_state": "d"}},
		"one is gone": {there: map[string]string{memoryState: "m"}, after: map[string]string{memoryAside: "m"}},
		"an older one is aside already": {there: map[string]string{cpuState: "new", cpuAside: "old"},
			after: map[string]string{cpuAside: "new"}},
		"a folder": {there: map[string]string{cpuState + "/x": "c"}, after: map[string]string{cpuAside + "/x": "c"}},
		"a link: what it names stays": {there: map[string]string{"elsewhere": "c"}, after: map[string]string{"elsewhere": "c", cpuAside: "c"},
			prepare: func(root string) error { return os.Symlink("elsewhere", filepath.Join(root, cpuState)) }},
		"no root folder": {prepare: os.Remove},
		"a folder in the way": {there: map[string]string{cpuState: "c", cpuAside + "/x": "f"}, after: map[string]string{cpuState: "c", cpuAside + "/x": "f"},
			fails: "setting cpu_manager_state aside: "},
	} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "root")
			if err := os.Mkdir(root, 0o700); err != nil {
				t.Fatal(err)
			}
			for path, content := range test.there {
				written(t, root, path, content)
			}
			if test.prepare != nil {
				if err := test.prepare(root); err != nil {
					t.Fatal(err)
				}
			}
			err := setAside(root, files)
			if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("error %v, want %q", err, test.fails)
			}
			wantFiles(t, root, test.after)
		})
	}
}

func TestSetAsideOnAReadOnlyDisk(t *testing.T) {
	needsMounts(t)
	root := readOnlyRoot(t, newNode(t), "none")
	err := setAside(root, []kubeletconfig.StateFile{{Name: cpuState, Policy: "none"}})
	if !errors.Is(err, unix.EROFS) {
		t.Error(err)
	}
	collectAsides(root, nil)
}

// Only what is ours is removed, and what is recorded stays.
func TestCollectAsides(t *testing.T) {
	root := t.TempDir()
	mine := []string{cpuState + ".aside-static", memoryState + ".aside-refused"}
	others := map[string]string{cpuState: "", memoryState: "", cpuState + ".aside-none": "", cpuState + ".bak": "", "dra_manager_state.aside-none": "", "elsewhere": "",
		"allocated_pods_state": "", "aside-none": "", "x" + cpuState + ".aside-none": "", "pods/" + cpuState + ".aside-static": "", cpuState + ".aside-folder/x": ""}
	for _, path := range mine {
		written(t, root, path, "")
	}
	for path := range others {
		written(t, root, path, "")
	}
	empty := filepath.Join(root, memoryState+".aside-empty-folder")
	link := filepath.Join(root, cpuState+".aside-link")
	if err := errors.Join(os.Mkdir(empty, 0o700), os.Symlink("elsewhere", link)); err != nil {
		t.Fatal(err)
	}
	collectAsides(root, []core.Aside{{StateFile: kubeletconfig.StateFile{Name: cpuState, Policy: "none"}}})
	wantFiles(t, root, others)
	if _, err := os.Stat(empty); err != nil {
		t.Errorf("a folder was removed: %v", err)
	}
	if _, err := os.Lstat(link); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a link is still there: %v", err)
	}
	collectAsides(filepath.Join(root, "absent"), nil)
}

// A static policy comes by a configuration and goes with it; what is aside is recorded before.
func TestStateFilesOfAnotherPolicyAreSetAside(t *testing.T) {
	n := newNode(t)
	n.write("kubelet/"+cpuState, stateOf("none"))
	n.write("kubelet/"+memoryState, stateOf("None"))
	n.seed(store.Assigned, "a", fakenode.Configuration("mode: ok")+"cpuManagerPolicy: static\nmemoryManagerPolicy: Static\n")
	r := n.run()
	n.awaitPolicies("static", "Static")
	r.awaitHealthy()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	n.wantAsides(cpuState+".aside-none", memoryState+".aside-None")
	if starts := n.events("start"); starts != "start" {
		t.Errorf("the kubelets: %s", starts)
	}
	n.store(func(s *store.Store) error { return s.SaveSource(store.Assigned, nil) })
	r = n.run()
	n.awaitPolicies("none", "None")
	r.awaitHealthy()
	if starts := n.events("start"); starts != "start start" {
		t.Errorf("the kubelets: %s", starts)
	}
}

// A kubelet that exits over a file of its own policy is started once without it, and nobody has failed.
func TestStateFileThatTheKubeletRefuses(t *testing.T) {
	n := newNode(t)
	n.write("kubelet/"+cpuState, stateOf("static"))
	n.seed(store.Assigned, "a", fakenode.Configuration("mode: crash, healthyFirst: true, after: 100ms, crashTimes: 1, counter: "+n.path("counter")+
		", words: 'start cpu manager error: not all reserved cpus: \"0-1\" are present in defaultCpuSet: \"0\"'")+"cpuManagerPolicy: static\n")
	r := n.run()
	n.await("the file is aside", func() bool {
		_, err := os.Stat(n.path("kubelet/" + cpuState + ".aside-refused"))
		return err == nil
	})
	n.awaitPolicies("static", "None")
	record := r.await("a", func(record Record) bool { return record.Healthy && runsOf(record) == "a" })
	if record.Trial == nil || record.Trial.Failures != 0 {
		t.Errorf("the trial is %+v", record.Trial)
	}
	if starts := n.events("start"); starts != "start start" {
		t.Errorf("the kubelets: %s", starts)
	}
}

// A file that cannot be set aside keeps no kubelet from being started, and the fault heals by itself.
func TestStateFilesOnAReadOnlyDisk(t *testing.T) {
	needsMounts(t)
	n := newNode(t)
	root := readOnlyRoot(t, n, "static")
	r := n.run()
	r.await("the reason", func(record Record) bool {
		return strings.Contains(record.Condition.Message, "a state file of another policy cannot be set aside: ") && strings.Contains(record.Condition.Message, "read-only file system")
	})
	n.await("a kubelet that is started all the same", func() bool { return strings.HasPrefix(n.events("start"), "start start") })
	if err := remounted(0)(root); err != nil {
		t.Fatal(err)
	}
	n.awaitPolicies("none", "None")
	r.awaitHealthy()
}

// No kubelet is started with a checkpoint that is spoilt, so nothing is set aside for what it says.
func TestNoStateFileIsSetAsideForASpoiltCheckpoint(t *testing.T) {
	n := newNode(t)
	const static = `{"policyName":"static","entries":{"pod":{"container":"1"}},"checksum":0}`
	n.write("kubelet/"+cpuState, static)
	n.seed(store.LastKnownGood, "b", fakenode.Configuration("mode: ok, words: b")+"cpuManagerPolicy: static\n")
	n.seed(store.Assigned, "a", fakenode.Configuration("mode: ok, words: a")+"cpuManagerPolicy: static\n")
	r := n.run()
	record := r.await("a", func(record Record) bool { return record.Healthy && runsOf(record) == "a" })
	n.write("state/checkpoints/uid-a/1/kubelet", fakenode.Configuration("mode: ok, words: a")+"cpuManagerPolicy: none\n")
	if err := syscall.Kill(record.Child.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.await("b", func(record Record) bool { return record.Healthy && runsOf(record) == "b" })
	n.wantAsides()
	if content, err := os.ReadFile(n.path("kubelet/" + cpuState)); err != nil || string(content) != static {
		t.Errorf("%v, %s", err, content)
	}
}

func stateOf(policy string) string { return `{"policyName":"` + policy + `","checksum":0}` }

// awaitPolicies waits until the state files are of these policies.
func (n *node) awaitPolicies(cpu, memory string) {
	n.t.Helper()
	for file, policy := range map[string]string{cpuState: cpu, memoryState: memory} {
		n.await(file+" of policy "+policy, func() bool {
			content, err := os.ReadFile(n.path("kubelet/" + file))
			return err == nil && string(content) == stateOf(policy)
		})
	}
}

func (n *node) wantAsides(want ...string) {
	n.t.Helper()
	found, err := filepath.Glob(n.path("kubelet/*" + asideMark + "*"))
	if err != nil {
		n.t.Fatal(err)
	}
	for i := range found {
		found[i] = filepath.Base(found[i])
	}
	if !slices.Equal(found, want) {
		n.t.Errorf("aside are %q, want %q", found, want)
	}
}

// readOnlyRoot makes the kubelet's root folder a read-only disk with a CPU manager's state file of this policy.
func readOnlyRoot(t *testing.T, n *node, policy string) string {
	t.Helper()
	root := n.path("kubelet")
	if err := errors.Join(os.Mkdir(root, 0o700), unix.Mount("none", root, "tmpfs", 0, "size=256k,mode=0700")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.unmount)
	written(t, root, cpuState, stateOf(policy))
	if err := remounted(unix.MS_RDONLY)(root); err != nil {
		t.Fatal(err)
	}
	return root
}

// wantFiles wants these files, links followed, and no others below the folder.
func wantFiles(t *testing.T, folder string, want map[string]string) {
	t.Helper()
	for path, content := range want {
		if found, err := os.ReadFile(filepath.Join(folder, path)); err != nil || string(found) != content {
			t.Errorf("%s: %v, %q, want %q", path, err, found, content)
		}
	}
	_ = filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		name, _ := filepath.Rel(folder, path)
		if _, is := want[name]; err == nil && !entry.IsDir() && !is {
			t.Errorf("%s is there", name)
		}
		return nil
	})
}
