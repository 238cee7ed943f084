//go:build linux

package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"go.uber.org/zap"
)

// What is in RUN_DIR, in addition to what the kubelet has there.
const (
	recordFile        = "state.json"
	corruptRecordFile = "state.json.corrupt"
	preflightFolder   = "preflight"
)

// clearPreflights removes what pre-flights of a killed supervisor have left. Their kubelets ended with it.
func clearPreflights(runDir string) {
	folder := filepath.Join(runDir, preflightFolder)
	entries, _ := os.ReadDir(folder) // it was there a moment ago
	for _, entry := range entries {
		_ = os.RemoveAll(filepath.Join(folder, entry.Name())) // what stays is in no process's way
	}
}

// makeRunDir makes it once more, because it may have been removed. What needs the folder reports an error of its own.
func (in *inputs) makeRunDir() {
	if err := prepareRunDir(in.RunDir); err != nil {
		in.Logger.Warn("the run folder cannot be made", zap.Error(err))
	}
}

// runDirMode lets others reach what they know by name, as a metrics socket that is for their group. They cannot see what is there.
const runDirMode = 0o711

// prepareRunDir makes RUN_DIR. The kubelet is started with a file from it and state.json says which process to stop, so it has to be
// ours alone.
func prepareRunDir(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(path, runDirMode); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	for _, folder := range []string{path, filepath.Join(path, "effective"), filepath.Join(path, preflightFolder)} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		info, err := os.Lstat(folder)
		if err != nil {
			return err
		}
		owner, known := info.Sys().(*syscall.Stat_t)
		switch {
		case !info.IsDir():
			return fmt.Errorf("%s is a link, and not a folder", folder)
		case known && int(owner.Uid) != os.Geteuid():
			return fmt.Errorf("%s belongs to user %d, and not to the supervisor's own %d", folder, owner.Uid, os.Geteuid())
		case info.Mode().Perm()&0o022 != 0:
			return fmt.Errorf("%s can be written by others (%s): chmod go-w it", folder, info.Mode().Perm())
		}
		if mode := info.Mode().Perm(); folder == path && mode&^runDirMode != 0 { // systemd makes it with another where its unit says so
			_ = os.Chmod(folder, mode&runDirMode) // without it others see names, which is no reason to do without the folder
		}
	}
	return nil
}
