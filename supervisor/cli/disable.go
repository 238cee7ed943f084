//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor"
)

func newDisable() *cobra.Command {
	var i installation
	var force bool
	command := &cobra.Command{
		Use:   "disable",
		Short: "Undo enable: the kubelet runs again as its own unit says",
		Long: `Undo enable: the kubelet runs again as its own unit says.

A kubelet that runs under the supervisor is restarted, because it has the assigned configuration. The kubelet is asked about its local
configuration first: where it would refuse that, nothing is done without --force, because no kubelet would run afterwards. Where the
supervisor's own unit starts the kubelet, that unit is stopped. Limits that kubelets under the supervisor have set on cgroups of the
system are set to what they were before. The supervisor's state folder stays. Exit codes: 0 done or nothing to do, 1 refused, 2 usage.`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			if os.Geteuid() != 0 && !i.dryRun {
				return exitError{code: exitRefused, err: errNotRoot}
			}
			i.out = command.OutOrStdout()
			if i.executable, err = executablePath(); err != nil {
				return err
			}
			if !force {
				if err := i.checkLocal(command.Context()); err != nil {
					return exitError{code: exitRefused, err: err}
				}
			}
			if err := i.disable(command.Context()); err != nil {
				return exitError{code: exitRefused, err: err}
			}
			return nil
		},
	}
	i.flags(command)
	command.Flags().BoolVar(&force, "force", false, "also where the kubelet would refuse its local configuration")
	return command
}

func (i installation) disable(ctx context.Context) error {
	ours, err := isOurs(i.dropInPath())
	if err != nil {
		return err
	}
	own, err := showUnit(ctx, ownUnit)
	if err != nil {
		return err
	}
	written, _ := isOurs(filepath.Join(i.folder, ownUnit)) // one that enable did not make is only in the way where it is in use
	byOwn := own.LoadState == "loaded" && (own.Enabled || own.active() || written)
	ours = ours || i.isHalfDone(ctx)
	if !ours && !byOwn {
		i.say("Nothing to undo:    there is no %s.", i.dropInPath())
		if _, running, err := supervisor.ReadRecord(i.runDir()); err == nil && running {
			return nil // what it runs has its limits
		}
		i.writeLimitsBack(ctx)
	}
	if ours {
		if err := i.giveBack(ctx); err != nil {
			return err
		}
	}
	if byOwn {
		return i.disableOwnUnit(ctx)
	}
	return nil
}

// isHalfDone reports whether a disable that was killed has removed the drop-in, and what it started still runs.
func (u unitFiles) isHalfDone(ctx context.Context) bool {
	state, err := showUnit(ctx, u.unit)
	if err != nil || state.LoadState != "loaded" || state.MainPID == 0 {
		return false
	}
	var commands []startCommand
	for _, file := range u.otherFiles(state) {
		data, _ := os.ReadFile(file) // one that cannot be read starts nothing
		commands = addStartCommands(commands, file, data)
	}
	if slices.ContainsFunc(commands, func(c startCommand) bool { return strings.Contains(c.line, "kubelet-supervisor run ") }) {
		return false // another file has the unit start the supervisor
	}
	words := u.words(state.MainPID)
	return len(words) > 1 && filepath.Base(words[0]) == "kubelet-supervisor" && words[1] == runCommand
}

// giveBack takes the drop-in away. The restart belongs to it: the running supervisor has a watchdog and a way to start that the unit no
// longer has, so that systemd would kill it and start a second kubelet.
func (i installation) giveBack(ctx context.Context) error {
	state, err := showUnit(ctx, i.unit)
	if err != nil {
		return err
	}
	i.writeLimitsBack(ctx) // before anything is removed: a command that was interrupted can be typed again
	if i.dryRun {
		i.say("Would remove:       %s", i.dropInPath())
		if state.active() {
			i.say("Would do:           systemctl restart %s", i.unit)
		}
		return nil
	}
	if err := os.Remove(i.dropInPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the drop-in: %w", err)
	}
	_ = os.Remove(filepath.Dir(i.dropInPath())) // if there is no other drop-in
	if err := i.stepBack(i.unit); err != nil {
		return err
	}
	if _, err := systemctl(ctx, "daemon-reload"); err != nil {
		return err
	}
	i.say("Removed:            %s", i.dropInPath())
	if !state.active() {
		return nil
	}
	i.say("Doing:              systemctl restart %s", i.unit)
	if _, err := systemctl(ctx, "restart", i.unit); err != nil {
		return err
	}
	if err := i.awaitMain(ctx); err != nil {
		return fmt.Errorf("the unit is as it was without the supervisor, and no kubelet runs: %w", err)
	}
	i.say("The kubelet runs as its own unit says.")
	return nil
}

func (i installation) disableOwnUnit(ctx context.Context) error {
	if i.dryRun {
		i.say("Would do:           systemctl disable --now %s", ownUnit)
		i.writeLimitsBack(ctx)
		return nil
	}
	if _, err := systemctl(ctx, "disable", "--now", ownUnit); err != nil {
		return err
	}
	i.say("Disabled:           %s", ownUnit)
	i.writeLimitsBack(ctx)
	path := filepath.Join(i.folder, ownUnit)
	if ours, err := isOurs(path); err != nil || !ours {
		return err
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("removing the unit: %w", err)
	}
	i.say("Removed:            %s", path)
	if err := i.stepBack(ownUnit); err != nil {
		return err
	}
	_, err := systemctl(ctx, "daemon-reload")
	return err
}

// isOurs reports whether enable made the file. It returns an error for one that enable did not make, because disable must not remove it.
func isOurs(path string) (bool, error) {
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading the unit: %w", err)
	case !strings.HasPrefix(string(data), ourMark):
		return false, fmt.Errorf("%s was not made by kubelet-supervisor enable: remove it by hand", path)
	}
	return true, nil
}
