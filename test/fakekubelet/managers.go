//go:build linux

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// managersAfter is how long the fake is healthy before its CPU and memory managers start. The real one's start after healthz was ok,
// too (pkg/kubelet/kubelet.go, initializeRuntimeDependentModules).
const managersAfter = 30 * time.Millisecond

// startManagers tells whether they started, and says why not.
func startManagers(flags map[string]string, config configuration) bool {
	err := restoreStates(flags, config)
	if err == nil {
		err = limitSystem(config)
	}
	if err != nil {
		logLine('E', "%q err=%q", "Failed to start ContainerManager", err.Error())
	}
	return err == nil
}

// restoreStates plays the CPU and the memory manager of Kubernetes 1.36 (pkg/kubelet/cm): each writes a state file of its policy below
// --root-dir, or dies of one that another policy wrote. Without --root-dir there are none: that of the machine is not the fake's.
func restoreStates(flags map[string]string, config configuration) error {
	root := flags["root-dir"]
	if root == "" {
		return nil
	}
	if err := os.MkdirAll(root, 0o750); err != nil {
		return err
	}
	if err := restoreState(filepath.Join(root, "cpu_manager_state"), cmp.Or(flags["cpu-manager-policy"], config.CPUManagerPolicy, "none")); err != nil {
		return fmt.Errorf("start cpu manager error: could not restore state from checkpoint: %w, please drain this node and delete the CPU manager checkpoint file %q before restarting Kubelet",
			err, filepath.Join(root, "cpu_manager_state"))
	}
	if err := restoreState(filepath.Join(root, "memory_manager_state"), cmp.Or(flags["memory-manager-policy"], config.MemoryManagerPolicy, "None")); err != nil {
		return fmt.Errorf("start memory manager error: could not restore state from checkpoint: [memorymanager] %w, please drain this node and delete the memory manager checkpoint file %q before restarting Kubelet",
			err, filepath.Join(root, "memory_manager_state"))
	}
	return nil
}

func restoreState(path, policy string) error {
	var state struct {
		PolicyName string `json:"policyName"`
		Checksum   int    `json:"checksum"`
	}
	content, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		state.PolicyName = policy
		text, err := json.Marshal(state)
		if err != nil {
			return err
		}
		return os.WriteFile(path, text, 0o600)
	}
	if err == nil {
		err = json.Unmarshal(content, &state)
	}
	if err == nil && state.PolicyName != policy {
		err = fmt.Errorf("configured policy %q differs from state checkpoint policy %q", policy, state.PolicyName)
	}
	return err
}

// limitSystem plays what the container manager writes on the cgroup of the system: of all limits the one of processes, where the cgroup is there.
func limitSystem(config configuration) error {
	limit := config.SystemReserved["pid"]
	if limit == "" || !slices.Contains(config.EnforceNodeAllocatable, "system-reserved") {
		return nil
	}
	for _, hierarchy := range []string{"pids", ""} {
		file, err := os.OpenFile(filepath.Join("/sys/fs/cgroup", hierarchy, config.SystemReservedCgroup, "pids.max"), os.O_WRONLY, 0)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = file.WriteString(limit)
		return errors.Join(err, file.Close())
	}
	return nil
}
