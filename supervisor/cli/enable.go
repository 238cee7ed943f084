//go:build linux

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
)

const kubeletUnit = "kubelet.service"

// installation is what enable and disable change.
type installation struct {
	prober
	dryRun  bool
	settles time.Duration // mainSettles
	ownRuns bool          // our own unit runs the node's kubelet, and ends when this one starts
	out     io.Writer
}

// unitFiles are where the unit lies that starts the kubelet, and what of ours is in it.
type unitFiles struct {
	unit       string // the kubelet's
	folder     string // of units that administrators own
	aside      string // of drop-ins that override theirs until the next boot
	flagsFile  string
	executable string
	processes
}

func newEnable() *cobra.Command {
	var i installation
	var now bool
	command := &cobra.Command{
		Use:   "enable",
		Short: "Make systemd start the kubelet through the supervisor, from its next restart on",
		Long: `Make systemd start the kubelet through the supervisor, from its next restart on.

The kubelet's unit gets a drop-in, /etc/systemd/system/kubelet.service.d/` + dropInName + `, that puts kubelet-supervisor run in
front of the unit's own command line and leaves the rest of the unit as it is. On a node without a kubelet.service,
kubelet-supervisor.service is written and enabled instead. Nothing is changed before everything has been checked. A running kubelet is
restarted only with --now, and only where the supervisor does not run already as the drop-in says. The restart is refused where the
kubelet would not come back: swap is on with failSwapOn, its kubeconfig has expired, or the container runtime does not answer. Run enable
again after the unit's own ExecStart has changed. Exit codes: 0 done, 1 refused by a check, 2 usage.`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			if os.Geteuid() != 0 && !i.dryRun {
				return exitError{code: exitRefused, err: errNotRoot}
			}
			i.out = command.OutOrStdout()
			if i.executable, err = executablePath(); err != nil {
				return err
			}
			if err := i.enable(command.Context(), now); err != nil {
				return exitError{code: exitRefused, err: err}
			}
			return nil
		},
	}
	i.flags(command)
	command.Flags().BoolVar(&now, "now", false, "restart the kubelet, so that the supervisor runs it at once; nothing where it does already")
	return command
}

// exitRefused is the code of enable and disable when nothing was done.
const exitRefused = 1

var errNotRoot = errors.New("only root may change units: run it with sudo, or with --dry-run")

func (i *installation) flags(command *cobra.Command) {
	i.folder, i.flagsFile, i.aside, i.probeFolder, i.settles = unitFolder, flagsFile, asideFolder, probeFolder, mainSettles
	i.unit = kubeletUnit
	command.Flags().Var((*unitName)(&i.unit), "unit", "the unit that starts the kubelet")
	command.Flags().BoolVar(&i.dryRun, "dry-run", false, "check, say what would be done, and do nothing")
}

func (u unitFiles) dropInPath() string { return filepath.Join(u.folder, u.unit+".d", dropInName) }

func (i installation) say(format string, words ...any) {
	_, _ = fmt.Fprintf(i.out, format+"\n", words...)
}

func (i installation) enable(ctx context.Context, now bool) error {
	if err := i.checkNode(); err != nil {
		return err
	}
	if err := checkSystemd(ctx); err != nil {
		return err
	}
	state, err := showUnit(ctx, i.unit)
	if err != nil {
		return err
	}
	if now {
		if err := i.checkHost(ctx, state); err != nil {
			return err
		}
	}
	switch state.LoadState {
	case "loaded":
		return i.takeOver(ctx, state, now)
	case "not-found":
		if i.unit == kubeletUnit {
			return i.enableOwnUnit(ctx, now)
		}
		return fmt.Errorf("there is no unit %s; systemctl list-units '*kubelet*' shows what there is", i.unit)
	}
	return fmt.Errorf("the unit %s cannot be taken over, because systemd calls it %s: see systemctl status %s", i.unit, state.LoadState,
		i.unit)
}

// takeOver adds a drop-in to the kubelet's unit, which then starts the kubelet instead of our own unit.
func (i installation) takeOver(ctx context.Context, state unitState, now bool) error {
	own, err := showUnit(ctx, ownUnit)
	if err != nil {
		return err
	}
	i.ownRuns = own.LoadState == "loaded" && own.active()
	if err := i.putDropIn(ctx, state, now); err != nil {
		return err
	}
	return i.retireOwnUnit(ctx, now)
}

func (i installation) putDropIn(ctx context.Context, state unitState, now bool) error {
	if state.Type == "oneshot" || state.Type == "forking" || state.Type == "dbus" {
		return fmt.Errorf("%s has Type=%s; a kubelet that stays in the foreground is needed", i.unit, state.Type)
	}
	if err := i.checkNoOther(ctx, i.unit, state); err != nil {
		return err
	}
	if err := i.checkNoOtherSupervisor(ctx); err != nil {
		return err
	}
	state, err := i.freshState(ctx, state)
	if err != nil {
		return err
	}
	command, err := readStartCommand(i.otherFiles(state))
	if err != nil {
		return err
	}
	if err := i.checkReading(state, command); err != nil {
		return err
	}
	i.say("The kubelet:        %s\n  as %s says.", command.line, command.source)
	if err := i.checkUnit(state, command); err != nil {
		return err
	}
	if program, err := command.program(); err == nil && isKubeletScript(program) {
		i.say("  It is a script, which is not asked before a configuration is tried: give the kubelet itself, or --preflight=always in %s.",
			i.flagsFile)
	}
	if err := i.checkStart(ctx, state, i.otherFiles(state), command, now); err != nil {
		return err
	}
	around, err := i.surrounding(state)
	if err != nil {
		return err
	}
	content := dropIn(i.executable, command, around)
	before, err := os.ReadFile(i.dropInPath())
	same := err == nil && string(before) == content
	if same && state.inForce(i.dropInPath(), content) && state.fallsBack() && !i.steppedAside(i.unit) {
		return i.unchanged(ctx, state, i.dropInPath(), content, now)
	}
	if err := i.checkUnitFolder(i.dropInPath()); err != nil {
		return err
	}
	if i.dryRun {
		i.say("Would write:        %s\n\n%s", i.dropInPath(), content)
		return i.restart(ctx, state, now)
	}
	if !same {
		if err := i.checkTwin(ctx, state, command); err != nil {
			return err
		}
	}
	if err := i.writeUnit(ctx, i.unit, i.dropInPath(), content); err != nil {
		return err
	}
	return i.restart(ctx, state, now)
}

// otherFiles returns the files of the unit except our drop-in, in the order in which they count.
func (u unitFiles) otherFiles(state unitState) []string {
	files := []string{state.FragmentPath}
	for _, file := range state.DropInPaths {
		if file != u.dropInPath() {
			files = append(files, file)
		}
	}
	return files
}

// writeUnit puts the file into place and sees to it that systemd takes it, or takes it away again.
func (i installation) writeUnit(ctx context.Context, unit, path, content string) error {
	before, readErr := os.ReadFile(path)
	if err := replaceFile(path, content); err != nil {
		return fmt.Errorf("writing the unit: %w", err)
	}
	if err := i.stepBack(unit); err != nil {
		return err
	}
	_, err := systemctl(ctx, "daemon-reload")
	var state unitState
	if err == nil {
		state, err = showUnit(ctx, unit)
	}
	if err == nil && (state.LoadState != "loaded" || !state.inForce(path, content)) {
		err = fmt.Errorf("with %s systemd has LoadState=%s ExecStart=%s: does a later drop-in set ExecStart? It was taken away again", path,
			state.LoadState, state.ExecStart)
	}
	if err == nil && !state.fallsBack() {
		err = fmt.Errorf("a file behind %s empties ExecStopPost=, which gives the node its kubelet where systemd cannot execute the "+
			"supervisor: give that file a name that sorts before it. It was taken away again", path)
	}
	if err == nil {
		i.say("Written:            %s", path)
		return nil
	}
	if readErr == nil {
		err = errors.Join(err, replaceFile(path, string(before)))
	} else {
		err = errors.Join(err, os.Remove(path))
		if filepath.Dir(path) != i.folder {
			_ = os.Remove(filepath.Dir(path)) // if nothing else is there
		}
	}
	_, reloadErr := systemctl(ctx, "daemon-reload")
	return errors.Join(err, reloadErr)
}

// enableOwnUnit is for nodes on which nothing else starts a kubelet.
func (i installation) enableOwnUnit(ctx context.Context, now bool) error {
	state, err := showUnit(ctx, ownUnit)
	if err != nil {
		return err
	}
	if err := i.checkNoOther(ctx, ownUnit, state); err != nil {
		return err
	}
	settings := environmentFile(i.flagsFile)
	kubelet := cmp.Or(settings["KUBELET"], "/usr/bin/kubelet")
	if _, err := os.Stat(kubelet); err != nil {
		return fmt.Errorf("there is neither a %s nor the kubelet itself: %w; where a unit of another name is to start the kubelet, name it "+
			"with --unit (systemctl list-units '*kube*' shows what there is); only where none is, set KUBELET and KUBELET_ARGS in %s", i.unit, err,
			i.flagsFile)
	}
	if settings["KUBELET_ARGS"] == "" {
		return fmt.Errorf("KUBELET_ARGS is empty in %s: a kubelet without a command line joins no cluster; give its --config and --kubeconfig "+
			"there", i.flagsFile)
	}
	i.say("The kubelet:        %s, by %s, because there is no %s.", kubelet, ownUnit, i.unit)
	i.unit = ownUnit
	if err := i.checkStart(ctx, state, nil, startCommand{line: "${KUBELET} $KUBELET_ARGS"}, now); err != nil {
		return err
	}
	path, content := filepath.Join(i.folder, ownUnit), ourMark+".\n"+ownUnitFile(i.executable)
	write := state.LoadState == "not-found" || state.FragmentPath == path
	if before, err := os.ReadFile(path); err == nil && string(before) == content && state.Enabled && state.inForce(path, content) {
		return i.unchanged(ctx, state, path, content, now)
	}
	if write {
		if err := i.checkUnitFolder(path); err != nil {
			return err
		}
	}
	i.warnNoKubeconfig(wordsOf(settings["KUBELET_ARGS"]), i.options().Kubeconfig)
	if i.dryRun {
		if write {
			i.say("Would write:        %s\n\n%s", path, ownUnitFile(i.executable))
		}
		i.say("Would do:           systemctl enable %s", ownUnit)
		return nil
	}
	if write {
		if err := i.writeUnit(ctx, ownUnit, path, content); err != nil {
			return err
		}
	}
	if _, err := systemctl(ctx, "enable", ownUnit); err != nil {
		return err
	}
	i.say("Enabled:            %s starts at boot.", ownUnit)
	return i.restart(ctx, state, now)
}

// unchanged is for what is in force already: only a kubelet that was started otherwise is restarted.
func (i installation) unchanged(ctx context.Context, state unitState, path, content string, now bool) error {
	if i.runs(state, content) {
		i.say("Nothing to do:      %s is there and up to date, and the supervisor runs as it says (process %d).", path, state.MainPID)
		return nil
	}
	i.say("Nothing to change:  %s is there and up to date.", path)
	return i.restart(ctx, state, now)
}

// restart does it, or says how.
func (i installation) restart(ctx context.Context, state unitState, now bool) error {
	switch {
	case i.dryRun && now:
		i.say("Would do:           systemctl %s %s", state.startVerb(), i.unit)
	case i.dryRun:
	case !now:
		i.say("The kubelet has not been touched. When it suits:  systemctl %s %s", state.startVerb(), i.unit)
	default:
		i.say("Doing:              systemctl %s %s", state.startVerb(), i.unit)
		return i.startOrUndo(ctx, state)
	}
	return nil
}
