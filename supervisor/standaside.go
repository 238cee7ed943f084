package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// StandAside makes room for a kubelet that runs without a supervisor: it ends one that a supervisor left behind, so that there are not
// two, and takes the record back that would speak of a supervisor.
func StandAside(o Options) error {
	if err := prepareRunDir(o.RunDir); err != nil {
		return fmt.Errorf("%w: the run folder cannot be used: %w", ErrUsage, err)
	}
	if err := stopLeftOvers(o, newLauncher(o, 0)); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(o.RunDir, recordFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("taking back what an earlier supervisor said: %w", err)
	}
	return nil
}
