//go:build linux

package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// retireOwnUnit keeps our own unit from starting at boot, once another one has the supervisor: of the two systemd would start ours, with
// the command line of flags.env. It is the last step, because until then our own unit is the only one that starts a kubelet for certain.
func (i installation) retireOwnUnit(ctx context.Context, now bool) error {
	own, err := showUnit(ctx, ownUnit)
	if err != nil || own.LoadState != "loaded" {
		return err
	}
	if own.Enabled {
		if starts, err := i.startAtBoot(ctx); err != nil || !starts {
			return err
		}
		if err := i.disableAtBoot(ctx, own, now); err != nil || i.dryRun {
			return err
		}
	}
	path := filepath.Join(i.folder, ownUnit)
	if ours, err := isOurs(path); err != nil || !ours || i.dryRun || own.active() && !now {
		return nil //nolint:nilerror // one that enable did not make stays, and one that runs is needed until it ends
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("removing the unit: %w", err)
	}
	i.say("Removed:            %s", path)
	if err := i.stepBack(ownUnit); err != nil {
		return err
	}
	_, err = systemctl(ctx, "daemon-reload")
	return err
}

// startAtBoot sees to it that the unit that was taken over starts at boot, as our own did. Where that fails, our own unit stays in its
// place.
func (i installation) startAtBoot(ctx context.Context) (starts bool, err error) {
	state, err := showUnit(ctx, i.unit)
	if err != nil || state.startsAtBoot() {
		return err == nil, err
	}
	if i.dryRun {
		i.say("Would do:           systemctl enable %s", i.unit)
		return true, nil
	}
	_, enableErr := systemctl(ctx, "enable", i.unit)
	if state, err = showUnit(ctx, i.unit); err != nil {
		return false, err
	}
	if enableErr != nil || !state.startsAtBoot() {
		i.say("Not disabled:       %s, because nothing starts %s at boot. Once something does, run kubelet-supervisor enable again.", ownUnit,
			i.unit)
		return false, nil
	}
	i.say("Enabled:            %s starts at boot.", i.unit)
	return true, nil
}

func (i installation) disableAtBoot(ctx context.Context, own unitState, now bool) error {
	arguments := []string{"disable", ownUnit}
	if now { // it ended when the other one was started (Conflicts=), or is about to
		arguments = []string{"disable", "--now", ownUnit}
	}
	if i.dryRun {
		i.say("Would do:           systemctl disable %s", ownUnit)
		return nil
	}
	if _, err := systemctl(ctx, arguments...); err != nil {
		return err
	}
	i.say("Disabled:           %s, because %s starts the kubelet at boot.", ownUnit, i.unit)
	if own.active() && !now {
		i.say("  It runs the kubelet until %s is started.", i.unit)
	}
	return nil
}
