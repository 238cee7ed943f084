package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
)

// kubeletPatience is how long a supervisor that systemd has started is given to start a kubelet: it waits for its lock and its pre-flight.
const kubeletPatience = 30 * time.Second

// checkStart asks systemd whether it can start the supervisor as the unit would, before the kubelet depends on it. A dry run of somebody who is
// not root cannot ask. A local configuration that the kubelet refuses is only told, as before kubeadm join, unless a kubelet that runs would go
// for it.
func (i installation) checkStart(ctx context.Context, state unitState, files []string, command startCommand, now bool) error {
	if os.Geteuid() != 0 {
		i.say("Not asked:          whether systemd can start %s, which takes root.", i.executable)
		return nil
	}
	err := i.probe(ctx, files, command.prefix, command.line)
	var local localRefusedError
	var incomplete unitIncompleteError
	switch {
	case errors.As(err, &local) && (!now || state.ActiveState != "active"):
		i.say("  %s.", local.words)
	case errors.As(err, &incomplete) && !state.active():
		i.say("  Not asked: %s.", incomplete.words)
	case err != nil:
		return fmt.Errorf("%w; nothing was changed", err)
	}
	if words := i.labelsOf(command); words != "" {
		i.say("  %s", words)
	}
	return nil
}

// startOrUndo does what systemctl calls start or restart. Where that brings no kubelet back, enable is undone: a node without a kubelet is lost.
func (i installation) startOrUndo(ctx context.Context, does string) error {
	_, err := systemctl(ctx, does, i.unit)
	if err == nil {
		err = i.awaitKubelet(ctx)
	}
	if err == nil {
		i.say("The supervisor runs the kubelet: see kubelet-supervisor status.")
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	i.say("Undoing:            no kubelet runs: %v", err)
	undoErr := i.disable(ctx)
	if undoErr == nil && i.unit != ownUnit {
		_, undoErr = systemctl(ctx, "start", i.unit) // also one that systemd has given up by then
	}
	if undoErr != nil {
		return fmt.Errorf("%w; and it could not be undone: %w; kubelet-supervisor disable gives the unit back", err, undoErr)
	}
	return fmt.Errorf("%w; the unit is again as it was before", err)
}

// awaitKubelet waits until the supervisor that was started has a kubelet, healthy or not: one that waits for its certificate is not.
func (i installation) awaitKubelet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, kubeletPatience)
	defer cancel()
	for {
		record, running, err := supervisor.ReadRecord(i.runDir())
		if err == nil && running && (record.Child != nil || record.Alone != "") {
			return nil
		}
		if i.steppedAside(i.unit) {
			return fmt.Errorf("systemd cannot execute %s", i.executable)
		}
		select {
		case <-time.After(askInterval):
		case <-ctx.Done():
			if err != nil {
				return fmt.Errorf("no supervisor answered within %s of its start: %w", kubeletPatience, err)
			}
			return fmt.Errorf("the supervisor had no kubelet within %s of its start", kubeletPatience)
		}
	}
}
