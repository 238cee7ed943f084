//go:build linux

package kubelet

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// SupervisedError says that another supervisor, which lives, has a kubelet of this run folder.
type SupervisedError struct{ PID int }

func (e *SupervisedError) Error() string {
	return fmt.Sprintf("another supervisor (pid %d) runs a kubelet with this run folder", e.PID)
}

// kubeletSearch finds kubelets that an earlier supervisor of this run folder started. Other kubelets are on the same host and in the
// same /proc, those of other nodes in containers among them, so a process is one only if all of this holds:
//
//   - all its user ids are ours, so that it is no program that a stranger has started with another user's rights; it
//     is in our pid namespace,
//     and at the path of RUN_DIR it sees our RUN_DIR, the very folder: no container with a root or a mount of its own does;
//   - its environment names RUN_DIR's notify socket, and has the secret of RUN_DIR where there is one: a supervisor
//     of that folder started it,
//     and not as a pre-flight;
//   - it is the kubelet, and none of the programs that a kubelet starts: its executable is the kubelet's, replaced since then or not, or
//     its command line is the kubelet's (where a script starts it);
//   - it is neither we nor an ancestor of ours.
//
// If its parent is another supervisor that lives, it is not left over: that one is named in the error.
//
// Whatever of this cannot be read is taken for a no. A kubelet that was started by anybody else is left alone, its flags equal or not.
type kubeletSearch struct {
	kubelet   string
	arguments []string
	runDir    string
	lockFile  string
	secret    string // of RUN_DIR; empty where it is not known, because RUN_DIR has been lost
}

func (s kubeletSearch) leftOvers() ([]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, nil // no /proc: nothing can be known of others
	}
	executable := s.kubelet
	if resolved, err := filepath.EvalSymlinks(executable); err == nil {
		executable = resolved
	}
	spared := withAncestors(os.Getpid())
	var found []Process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || slices.Contains(spared, pid) {
			continue
		}
		proc := filepath.Join("/proc", entry.Name())
		isKubelet := linked(proc+"/exe") == executable
		// Two links are all that is read of most processes: the output, by its name, serves to pass over them.
		if !isKubelet && !outputOfKubelets(linked(proc+"/fd/1")) {
			continue
		}
		process, parent := lookAt(pid)
		if !s.matches(proc, isKubelet) || !process.Alive() { // the same one throughout
			continue
		}
		if parent != os.Getpid() && isSupervisor(parent) {
			return nil, &SupervisedError{PID: parent}
		}
		found = append(found, process)
	}
	return found, nil
}

// withAncestors lists a process and its ancestors.
func withAncestors(pid int) []int {
	var line []int
	for pid > 0 && !slices.Contains(line, pid) {
		line = append(line, pid)
		_, pid = lookAt(pid)
	}
	return line
}

// outputOfKubelets tells where kubelets of any supervisor write: to a file of this name, or to a stream of journald.
func outputOfKubelets(target string) bool {
	return filepath.Base(target) == outputFile || strings.HasPrefix(target, "socket:")
}

// matches asks for the command line and the environment last: reading them can hang on a process that hangs in the kernel itself.
func (s kubeletSearch) matches(proc string, isKubelet bool) bool {
	if !ofOurUser(proc) || linked(proc+"/ns/pid") != linked("/proc/self/ns/pid") || !sameFile(proc+"/root"+s.runDir, s.runDir) {
		return false
	}
	environment := zeroSeparated(proc + "/environ")
	if !slices.Contains(environment, "NOTIFY_SOCKET="+filepath.Join(s.runDir, notifyFile)) {
		return false
	}
	if s.secret != "" && !slices.Contains(environment, secretVariable+s.secret) {
		return false
	}
	return isKubelet || s.isOurCommandLine(zeroSeparated(proc+"/cmdline"))
}

func (s kubeletSearch) isOurCommandLine(words []string) bool {
	if len(words) == 0 {
		return false
	}
	dynamic := append(slices.Clone(s.arguments), "--config="+filepath.Join(s.runDir, EffectiveFile))
	return slices.Equal(words[1:], s.arguments) || slices.Equal(words[1:], dynamic) || slices.Equal(words[1:], append(dynamic, lockFlag+s.lockFile))
}

// isSupervisor reports whether the process runs this program, of whatever version and with its version in its name or not, as our user.
func isSupervisor(pid int) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	theirs := linked(proc + "/exe")
	name := filepath.Base(theirs)
	return theirs != "" && ofOurUser(proc) && (name == filepath.Base(linked("/proc/self/exe")) || strings.HasPrefix(name, "kubelet-supervisor"))
}

// IsOtherProgram reports that a process runs, and certainly not this program. Of one that ends now, nothing is known.
func IsOtherProgram(pid int) bool {
	return linked(filepath.Join("/proc", strconv.Itoa(pid), "exe")) != "" && !isSupervisor(pid)
}

// linked returns the target of a link in /proc, deleted since then or not; empty when it cannot be read.
func linked(path string) string {
	target, _ := os.Readlink(path)
	return strings.TrimSuffix(target, " (deleted)")
}

// ofOurUser: its real, effective, saved and file system user are all ours. The owner of the folder in /proc is the
// effective one alone, which is root's for any program with the set-user-ID bit.
func ofOurUser(proc string) bool {
	status, err := os.ReadFile(proc + "/status")
	if err != nil {
		return false
	}
	ours := strconv.Itoa(os.Geteuid())
	for line := range strings.Lines(string(status)) {
		if ids, is := strings.CutPrefix(line, "Uid:"); is {
			return slices.Equal(strings.Fields(ids), []string{ours, ours, ours, ours})
		}
	}
	return false
}

func sameFile(a, b string) bool {
	first, _ := os.Stat(a)
	second, _ := os.Stat(b)
	return os.SameFile(first, second) // not where one is absent
}

func zeroSeparated(path string) []string {
	data, err := os.ReadFile(path)
	if err != nil || len(data) == 0 {
		return nil
	}
	var words []string
	for word := range bytes.SplitSeq(bytes.TrimSuffix(data, []byte{0}), []byte{0}) {
		words = append(words, string(word))
	}
	return words
}
