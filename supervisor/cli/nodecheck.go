//go:build linux

package cli

import (
	"fmt"
	"os"
	"path/filepath"
)

// checkNode finds what would keep run from working, before systemd finds it at the next boot.
func (i installation) checkNode() error {
	if err := i.checkExecutable(); err != nil {
		return err
	}
	if err := checkVariables(i.flagsFile); err != nil {
		return err
	}
	var o runOptions
	flags := o.command().Flags()
	if err := flags.Parse(supervisorWords(i.flagsFile)); err != nil {
		return fmt.Errorf("KUBELET_SUPERVISOR_ARGS in %s: %w", i.flagsFile, err)
	}
	if err := o.check(); err != nil {
		return fmt.Errorf("KUBELET_SUPERVISOR_ARGS in %s: %w", i.flagsFile, err)
	}
	if err := i.checkFolder(o.StateDir); err != nil {
		return fmt.Errorf("the state folder %s cannot be written: %w; another one is named with --state-dir in KUBELET_SUPERVISOR_ARGS, %s",
			o.StateDir, err, i.flagsFile)
	}
	return nil
}

// checkWritable returns an error where the folder cannot be written, or made. It makes one and removes it again.
func checkWritable(folder string) error {
	for {
		probe, err := os.MkdirTemp(folder, ".kubelet-supervisor-")
		if err == nil {
			return os.Remove(probe)
		}
		if _, there := os.Stat(folder); there == nil || folder == "/" {
			return err
		}
		folder = filepath.Dir(folder)
	}
}
