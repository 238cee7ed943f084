//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// twinUnit has the files of the kubelet's unit without our drop-in: where ours is in force, systemd shows only our line. It is never
// started.
const twinUnit = "kubelet-supervisor-twin.service"

// readTwin lets systemd read the files as they are without our drop-in, and gives the words that it would start.
func (p prober) readTwin(ctx context.Context, files []string) (words []string, err error) {
	path := filepath.Join(p.probeFolder, twinUnit)
	defer func() {
		err = errors.Join(err, os.RemoveAll(path), os.RemoveAll(path+".d"))
		if _, reloadErr := systemctl(ctx, "daemon-reload"); reloadErr != nil {
			err = errors.Join(err, reloadErr)
		}
	}()
	for number, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the unit: %w", err)
		}
		to := path
		if number > 0 {
			to = filepath.Join(path+".d", fmt.Sprintf("%03d.conf", number))
		}
		if err := replaceFile(to, string(content)); err != nil {
			return nil, fmt.Errorf("writing a unit for systemd to read: %w", err)
		}
	}
	if _, err := systemctl(ctx, "daemon-reload"); err != nil {
		return nil, err
	}
	state, err := showUnit(ctx, twinUnit)
	return state.StartWords, err
}
