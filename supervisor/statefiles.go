//go:build linux

package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// State files of the kubelet's resource managers are set aside by a rename in the same folder (rule 17). What is aside and no longer
// recorded is removed after each write of the state, and at a start.
const asideMark = ".aside-"

// stateFilesInTheWay lists what has to be set aside before the start with the file; empty for local.
func (r *runner) stateFilesInTheWay(do core.Start, file string) []kubeletconfig.StateFile {
	if do.Unchecked {
		return nil
	}
	return kubeletconfig.ForeignStateFiles(r.Arguments, r.prover.effectiveOf(do, file))
}

func asideName(f kubeletconfig.StateFile) string {
	policy := f.Policy
	if policy == "" {
		policy = "refused"
	}
	return filepath.Base(f.Name) + asideMark + filepath.Base(policy)
}

// setAside renames the files, durably. It is only done after the kubelet that had them has ended: one that runs would write them again.
func setAside(folder string, files []kubeletconfig.StateFile) error {
	for _, file := range files {
		err := os.Rename(filepath.Join(folder, filepath.Base(file.Name)), filepath.Join(folder, asideName(file)))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("setting %s aside: %w", file.Name, err)
		}
		crashPoint("renamed", file.Name)
	}
	return syncFolder(folder)
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // nothing was in it
	}
	if err != nil {
		return fmt.Errorf("making the new names durable: %w", err)
	}
	if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
		return fmt.Errorf("making the new names durable: %w", err)
	}
	return nil
}

// collectAsides removes what was set aside and is no longer recorded. It is best effort: what it leaves is removed the next time.
func collectAsides(folder string, recorded []core.Aside) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	kept := map[string]bool{}
	for _, aside := range recorded {
		kept[asideName(aside.StateFile)] = true
	}
	for _, entry := range entries {
		file, _, is := strings.Cut(entry.Name(), asideMark)
		if is && kubeletconfig.IsStateFile(file) && !entry.IsDir() && !kept[entry.Name()] {
			crashPoint("remove", entry.Name())
			_ = os.Remove(filepath.Join(folder, entry.Name()))
		}
	}
}
