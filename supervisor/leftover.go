//go:build linux

package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

// stopLeftOvers stops the kubelet of a supervisor that was killed. state.json names it, but may be gone, unreadable or older than it.
// waited reports whether it was about to start another.
func stopLeftOvers(o Options, kubelets *kubelet.Launcher) (waited bool, err error) {
	recorded, err := recordedLeftOver(o)
	if err != nil {
		return false, err
	}
	waited, err = kubelets.StopLeftOvers(recorded, o.StopTimeout)
	return waited, heldRunDir(err, o.RunDir)
}

// heldRunDir adds to an error about another supervisor what to do.
func heldRunDir(err error, runDir string) error {
	if supervised := (*kubelet.SupervisedError)(nil); errors.As(err, &supervised) {
		return errHeldRunDir(supervised.PID, runDir)
	}
	return err
}

// recordedLeftOver is the kubelet that state.json names, if it is alive. It fails while the supervisor that wrote it is.
func recordedLeftOver(o Options) (*kubelet.Process, error) {
	before, running, err := ReadRecord(o.RunDir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		o.Logger.Warn("what an earlier supervisor said of itself cannot be read; it is set aside as "+corruptRecordFile, zap.Error(err))
		setRecordAside(o.RunDir)
		return nil, nil
	case running && before.Supervisor.PID != os.Getpid():
		return nil, errHeldRunDir(before.Supervisor.PID, o.RunDir)
	case before.Child == nil || before.BootID != kubelet.BootID() || !before.Child.Alive():
		return nil, nil
	}
	return before.Child, nil
}

func errHeldRunDir(pid int, runDir string) error {
	return fmt.Errorf("%w (pid %d) runs with this run folder %s: stop it, or give another with --run-dir", ErrAnother, pid, runDir)
}

// setRecordAside makes room for a new state.json, whatever is there. One is kept, for people.
func setRecordAside(runDir string) {
	aside := filepath.Join(runDir, corruptRecordFile)
	_ = os.RemoveAll(aside)
	_ = os.Rename(filepath.Join(runDir, recordFile), aside)
}
