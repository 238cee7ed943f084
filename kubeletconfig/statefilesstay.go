package kubeletconfig

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
)

// assignmentFields are what the managers of a static policy compare with their state file, or give out by.
var assignmentFields = []string{"cpuManagerPolicyOptions", "reservedSystemCPUs", "reservedMemory", "kubeReserved", "systemReserved", "evictionHard",
	"topologyManagerPolicy", "topologyManagerPolicyOptions", "topologyManagerScope", "featureGates"}

// StateFilesStay reports whether a kubelet that runs with then is certain to take the state files of one that runs with now, whenever that
// one ends. It is only certain where both kubelets told their configurations.
func StateFilesStay(argv []string, now, then Effective) bool {
	if !now.Told || !then.Told {
		return false
	}
	before, after := now.Tree(), then.Tree()
	if before == nil || after == nil {
		return false
	}
	static := false
	for _, manager := range []struct{ field, none, file string }{
		{"cpuManagerPolicy", "none", cpuStateFile}, {"memoryManagerPolicy", "None", memoryStateFile},
	} {
		policy := policyIn(after, manager.field, manager.none)
		if policyIn(before, manager.field, manager.none) != policy || !isOfPolicy(filepath.Join(RootDir(argv), manager.file), policy) {
			return false
		}
		static = static || policy != manager.none
	}
	if !static {
		return true
	}
	for _, field := range assignmentFields {
		if !reflect.DeepEqual(before[field], after[field]) {
			return false
		}
	}
	return true
}

func policyIn(tree map[string]any, field, none string) string {
	policy, _ := tree[field].(string)
	return cmp.Or(policy, none)
}

// isOfPolicy: a file that is not there yet will be of the policy that runs.
func isOfPolicy(path, policy string) bool {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return true
	}
	return statePolicy(path) == policy
}
