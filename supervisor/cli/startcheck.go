//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

// kubeletPatience is how long a supervisor that systemd has started is given to start a kubelet: it waits for its lock and its pre-flight.
const kubeletPatience = 30 * time.Second

// checkStart asks systemd whether it can start the supervisor as the unit would, before the kubelet depends on it. A dry run of a user who
// is not root cannot ask. A local configuration that the kubelet refuses is only told, as before kubeadm join, unless a kubelet that runs
// would go for it, now or, where our own unit runs it, at the next boot.
func (i installation) checkStart(ctx context.Context, state unitState, files []string, command startCommand, now bool) error {
	if os.Geteuid() != 0 {
		i.say("Not asked:          whether systemd can start %s, which takes root.", i.executable)
		return nil
	}
	err := i.probe(ctx, files, command.prefix, command.line)
	var local localRefusedError
	var incomplete unitIncompleteError
	switch {
	case errors.As(err, &local) && !i.ownRuns && (!now || state.ActiveState != "active"):
		i.say("  %s.", local.words)
	case errors.As(err, &incomplete) && !i.ownRuns && !state.active():
		i.say("  Not asked: %s.", incomplete.words)
	case err != nil:
		return fmt.Errorf("%w; nothing was changed", err)
	}
	if words := i.labelsOf(command); words != "" {
		i.say("  %s", words)
	}
	if before := startPre(files); now && before != "" {
		i.say("  Not asked: %s, which has to succeed at each start.", before)
	}
	return nil
}

// startOrUndo does what systemctl calls start or restart. Where that brings no kubelet back, enable is undone: a node without a kubelet is
// lost. It is not undone where a supervisor ran the kubelet before.
func (i installation) startOrUndo(ctx context.Context, before unitState) error {
	does := before.startVerb()
	_, supervised, _ := supervisor.ReadRecord(i.runDir())
	_, err := systemctl(ctx, does, i.unit)
	var record supervisor.Record
	if err == nil {
		record, err = i.awaitKubelet(ctx, before.ActiveState == "active" || i.ownRuns)
	}
	switch {
	case err == nil && record.Alone != "":
		i.say("The kubelet runs alone, because %s.", record.Alone)
	case err == nil:
		i.say("The supervisor runs the kubelet: see kubelet-supervisor status.")
	case supervised && !i.ownRuns:
		return fmt.Errorf("%w; the unit was enabled before, and stays so; kubelet-supervisor disable gives it back", err)
	default:
		return fmt.Errorf("%w; %w", err, i.undo(context.WithoutCancel(ctx), err))
	}
	return nil
}

// undo gives the unit back, and returns what came of it.
func (i installation) undo(ctx context.Context, because error) error {
	i.say("Undoing:            no kubelet runs: %v", because)
	err := i.startAsBefore(ctx)
	_, there := os.Lstat(i.dropInPath())
	switch {
	case err != nil && there == nil:
		return fmt.Errorf("and it could not be undone: %w; kubelet-supervisor disable gives the unit back", err)
	case err == nil && i.unit != ownUnit && !i.ownRuns:
		err = i.awaitMain(ctx)
	}
	if err != nil {
		return fmt.Errorf("the unit is again as it was before, and no kubelet runs: %w", err)
	}
	return errors.New("the unit is again as it was before")
}

// startAsBefore has the unit, or our own, run the kubelet again as before enable.
func (i installation) startAsBefore(ctx context.Context) error {
	if i.ownRuns {
		err := i.giveBack(ctx)
		if _, startErr := systemctl(ctx, "start", ownUnit); startErr != nil {
			return errors.Join(err, startErr)
		}
		return nil // it ends the other
	}
	if err := i.disable(ctx); err != nil || i.unit == ownUnit {
		return err
	}
	_, err := systemctl(ctx, "start", i.unit) // also one that systemd has given up by then
	return err
}

// startPre names the commands that a unit runs before its own, which may do anything, and so are not tried.
func startPre(files []string) string {
	var list []string
	for _, file := range files {
		data, _ := os.ReadFile(file) // it has been read before
		for _, value := range serviceValues(data, "ExecStartPre") {
			if list = append(list, "ExecStartPre="+value.text); value.text == "" {
				list = nil
			}
		}
	}
	return strings.Join(list, ", ")
}

// mainSettles is how long a process that systemd has started is watched: a kubelet with a wrong flag ends in less.
const mainSettles = time.Second

// awaitMain fails where the process that systemd has started for the unit is gone, at once or after a moment.
func (i installation) awaitMain(ctx context.Context) error {
	if err := hasMain(ctx, i.unit); err != nil {
		return err
	}
	select {
	case <-time.After(i.settles):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return hasMain(ctx, i.unit)
}

func hasMain(ctx context.Context, unit string) error {
	state, err := showUnit(ctx, unit)
	if err != nil {
		return err
	}
	if state.ActiveState != "active" && state.ActiveState != "reloading" || state.MainPID == 0 {
		return fmt.Errorf("%s does not run (systemd calls it %s): see systemctl status %[1]s", unit, state.ActiveState)
	}
	return nil
}

// childSettles is how long a kubelet has to live that is not healthy yet.
const childSettles = 3 * time.Second

// awaitKubelet waits until the supervisor that was started has a kubelet that is healthy, or that lives for a while: one that waits for its
// certificate is not healthy. Where none lived before, as before kubeadm join, one that was started is enough.
func (u unitFiles) awaitKubelet(ctx context.Context, lived bool) (supervisor.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, kubeletPatience)
	defer cancel()
	folder := u.runDirNow(ctx)
	var child kubelet.Process
	var since time.Time
	for {
		record, running, err := supervisor.ReadRecord(folder)
		switch {
		case err != nil, !running:
		case record.Alone != "", record.Healthy, record.Child != nil && !lived:
			return record, nil
		case record.Child == nil:
			child = kubelet.Process{}
		case *record.Child != child:
			child, since = *record.Child, time.Now()
		case time.Since(since) >= childSettles:
			return record, nil
		}
		if u.steppedAside(u.unit) {
			return record, fmt.Errorf("systemd cannot execute %s", u.executable)
		}
		select {
		case <-time.After(askInterval):
		case <-ctx.Done():
			if err != nil {
				return record, fmt.Errorf("no supervisor answered within %s of its start: %w", kubeletPatience, err)
			}
			return record, fmt.Errorf("the supervisor had no kubelet that lived, within %s of its start", kubeletPatience)
		}
	}
}

// runDirNow is the run folder of the supervisor that the unit starts: another drop-in may name a folder that differs from the one in our
// file of flags.
func (u unitFiles) runDirNow(ctx context.Context) string {
	state, err := showUnit(ctx, u.unit)
	if err != nil {
		return u.runDir()
	}
	environment, known := unitEnvironment(state)
	if words := environment["KUBELET_SUPERVISOR_ARGS"]; known && words != "" {
		return runWords{flags: wordsOf(words)}.runDirs()[0]
	}
	return u.runDir()
}
