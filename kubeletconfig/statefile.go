package kubeletconfig

import (
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig/commandline"
)

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
)

// defaultRootDir is the kubelet's (cmd/kubelet/app/options).
const defaultRootDir = "/var/lib/kubelet"

// StateFile is a file in which one of the kubelet's resource managers keeps what it has given to which container.
type StateFile struct {
	Name   string `json:"file"`             // cpu_manager_state or memory_manager_state
	Policy string `json:"policy,omitempty"` // that wrote it; empty = unknown
}

const (
	cpuStateFile    = "cpu_manager_state"
	memoryStateFile = "memory_manager_state"
)

// RootDir is the folder of the kubelet's own files, its state files among them.
func RootDir(argv []string) string {
	return cmp.Or(commandline.Parse(argv).RootDir, defaultRootDir)
}

// IsStateFile reports whether a name is that of a [StateFile].
func IsStateFile(name string) bool { return name == cpuStateFile || name == memoryStateFile }

// ForeignStateFiles lists the state files below the kubelet's root folder that another policy wrote than the one which
// a kubelet with this command line has by its effective configuration. Such a kubelet exits over them at every start.
// A file that is not there or cannot be read is none, and none is foreign to a configuration that is not known: the
// kubelet judges it.
func ForeignStateFiles(argv []string, effective Effective) []StateFile {
	runs := effective.Tree()
	if runs == nil {
		return nil
	}
	policyOf := func(field string) string {
		policy, _ := runs[field].(string)
		return policy
	}
	var foreign []StateFile
	for _, manager := range []struct{ file, policy string }{
		{cpuStateFile, cmp.Or(policyOf("cpuManagerPolicy"), "none")},
		{memoryStateFile, cmp.Or(policyOf("memoryManagerPolicy"), "None")},
	} {
		wrote := statePolicy(filepath.Join(RootDir(argv), manager.file))
		if wrote != "" && wrote != manager.policy {
			foreign = append(foreign, StateFile{Name: manager.file, Policy: wrote})
		}
	}
	return foreign
}

// statePolicy reads which policy wrote a state file; "" if it is unknown. From 1.37 on the kubelet keeps what counts in the string
// "data", itself JSON.
func statePolicy(path string) string {
	content, err := ReadFile(path)
	if err != nil {
		return ""
	}
	var state struct {
		PolicyName string `json:"policyName"`
		Data       string `json:"data"`
	}
	if json.Unmarshal(content, &state) != nil {
		return ""
	}
	var data struct {
		PolicyName string `json:"policyName"`
	}
	if json.Unmarshal([]byte(state.Data), &data) == nil && data.PolicyName != "" {
		return data.PolicyName
	}
	return state.PolicyName
}

// stateFileFaults are how a kubelet says that it exits over a state file: by the error of the manager that does, and by texts of which one
// is there. All of Kubernetes 1.36, pkg/kubelet/cm, and in lower case.
var stateFileFaults = []struct {
	manager, file string
	words         []string
}{
	{"start cpu manager error", cpuStateFile, []string{
		"could not restore state from checkpoint", "default cpuset cannot be empty", "reserved cpus:", "overlaps with default cpuset", "current set of available cpus"}},
	{"start memory manager error", memoryStateFile, []string{
		"could not restore state from checkpoint", "machine state can not be empty", "the expected machine state is different", "the memory assignment uses"}},
}

// BlamedStateFile returns the state file because of which a kubelet says that it exits, by the end of its log; "" for none.
func BlamedStateFile(log []byte) string {
	for line := range strings.Lines(strings.ToLower(string(log))) {
		for _, fault := range stateFileFaults {
			if strings.Contains(line, fault.manager) && slices.ContainsFunc(fault.words, func(w string) bool { return strings.Contains(line, w) }) {
				return fault.file
			}
		}
	}
	return ""
}
