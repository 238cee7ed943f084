//go:build linux

package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

// exitLocalRefused is the code of run --self-check=unit when only the kubelet's own configuration is bad.
const exitLocalRefused = 3

// checkUnit is what run says of its own surroundings, where a unit is asked before a kubelet depends on it: its folders can be written, the
// kubelet can be executed, and it accepts its local configuration. A kubelet that does not, as before kubeadm join, has an exit code of its
// own. What cannot be known, as of a script, is no reason against it.
func (o *runOptions) checkUnit(command *cobra.Command) error {
	refused := func(format string, words ...any) error {
		return exitError{code: exitRefused, err: fmt.Errorf(format, words...)}
	}
	for name, folder := range map[string]string{"state-dir": o.StateDir, "run-dir": o.RunDir} {
		if err := checkWritable(folder); err != nil {
			return refused("the folder %s cannot be written: %w; another one is named with --%s", folder, err, name)
		}
	}
	folder, err := os.MkdirTemp(existing(o.RunDir), "kubelet-supervisor-check-") // as run does: a sandbox may leave no other folder
	if err != nil {
		return refused("making a folder to ask the kubelet in: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	preflight := kubelet.Preflight{Kubelet: o.Kubelet, Arguments: o.Arguments, Mode: o.Preflight, TempFolder: folder}
	switch verdict := preflight.Check(command.Context(), kubelet.Candidate{}, nil); verdict.Outcome {
	case kubeletconfig.Environment:
		return refused("the kubelet cannot be started: %s", verdict.Words)
	case kubeletconfig.Refused:
		return exitError{code: exitLocalRefused, err: fmt.Errorf("the kubelet would not start with its local configuration: %s", verdict.Words)}
	}
	_, err = fmt.Fprintln(command.OutOrStdout(), "the supervisor can run the kubelet here")
	return err
}

// existing is the folder itself, or the nearest above it that is there.
func existing(folder string) string {
	for {
		if _, err := os.Stat(folder); err == nil || folder == filepath.Dir(folder) {
			return folder
		}
		folder = filepath.Dir(folder)
	}
}
