//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// asidePath is the drop-in that a unit gets when systemd could not execute the supervisor: until the next boot the kubelet is started
// without it (units/drop-in.conf).
func (u unitFiles) asidePath(unit string) string {
	return filepath.Join(u.aside, unit+".d", dropInName)
}

// fallsBack reports whether systemd has what makes that drop-in. A file with a later name may have emptied it.
func (state unitState) fallsBack() bool {
	return strings.Contains(state.value("ExecStopPost"), asideFolder)
}

// surrounding reads what the drop-in needs of the unit's other settings.
func (u unitFiles) surrounding(state unitState) (s surrounding, err error) {
	s.runDir = u.runDir()
	s.runFolder = ruleFor(pathRules(state), filepath.Dir(defaultRunDir)).access != writes
	for _, file := range u.otherFiles(state) {
		data, err := os.ReadFile(file)
		if err != nil {
			return s, fmt.Errorf("reading the unit: %w", err)
		}
		if len(serviceValues(data, "RuntimeDirectory"))+len(serviceValues(data, "RuntimeDirectoryMode")) > 0 {
			s.ownMode = true
		}
		for _, value := range serviceValues(data, "ExecStopPost") {
			switch {
			case value.text == "":
				s.stopPost = nil
			case endsEscaped(value.text):
				return s, fmt.Errorf("%s:%d ends with a backslash, which would join the line with the next one in a drop-in file: remove it", file,
					value.number)
			default:
				s.stopPost = append(s.stopPost, singleSpaced(value.text))
			}
		}
	}
	return s, nil
}

func (u unitFiles) steppedAside(unit string) bool {
	_, err := os.Lstat(u.asidePath(unit))
	return err == nil
}

// stepBack takes that drop-in away: from the next start on the unit is what it was made to be. systemd hears of it at the next
// daemon-reload.
func (u unitFiles) stepBack(unit string) error {
	err := os.Remove(u.asidePath(unit))
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("removing what keeps %s without the supervisor: %w", unit, err)
	}
	_ = os.Remove(filepath.Dir(u.asidePath(unit))) // if nothing else is there
	return nil
}

// startRemarks says, of each unit that enable has changed, why its next start would have no supervisor, or why the last one had none. Only
// root can ask systemd.
func (p prober) startRemarks(ctx context.Context) (remarks []string) {
	for _, enabled := range enabledUnits(p.folder) {
		p.unit = enabled.unit
		if p.steppedAside(p.unit) {
			remarks = append(remarks, fmt.Sprintf("systemd could not execute the supervisor when it started %[1]s, and starts the kubelet "+
				"without it until the next boot. Once it can, run kubelet-supervisor enable, then systemctl restart %[1]s.", p.unit))
			continue
		}
		remarks = append(remarks, p.remarksOfNextStart(ctx)...)
	}
	return remarks
}

// remarksOfNextStart lets systemd start the program of an enabled unit, and looks at its label (labelsDiffer).
func (p prober) remarksOfNextStart(ctx context.Context) (remarks []string) {
	state, err := showUnit(ctx, p.unit)
	if err != nil || state.LoadState != "loaded" {
		return nil // staleUnits reports what has become of the unit
	}
	if !state.fallsBack() {
		remarks = append(remarks, fmt.Sprintf("%s has no kubelet where systemd cannot execute the supervisor: its files lack our "+
			"ExecStopPost=, or empty it. Run kubelet-supervisor enable.", p.unit))
	}
	command, asked, err := p.askNextStart(ctx, state)
	var local localRefusedError
	var not notAskedError
	switch {
	case !asked, errors.As(err, &not):
		return remarks
	case errors.As(err, &local):
		remarks = append(remarks, fmt.Sprintf("The next start of %s has no kubelet with its local configuration: %v.", p.unit, err))
	case err != nil:
		remarks = append(remarks, fmt.Sprintf("The next start of %s may have no supervisor: %v.", p.unit, err))
	}
	if labels := p.labelsOf(command); labels != "" {
		remarks = append(remarks, labels)
	}
	return remarks
}

// askNextStart has systemd start the unit's own command line once, as its next start would. Only root can ask; staleUnits reports a unit
// whose command cannot be read.
func (p prober) askNextStart(ctx context.Context, state unitState) (command startCommand, asked bool, err error) {
	if os.Geteuid() != 0 {
		return command, false, nil
	}
	files, command := []string(nil), startCommand{line: "${KUBELET} $KUBELET_ARGS"}
	if p.unit != ownUnit {
		files = p.otherFiles(state)
		if command, err = readStartCommand(files); err != nil {
			return command, false, nil //nolint:nilerror // not known
		}
	}
	return command, true, p.probe(ctx, files, command.prefix, command.line)
}

// onThisNode is for the units that there are.
func onThisNode() (p prober, err error) {
	p = prober{unitFiles: unitFiles{folder: unitFolder, aside: asideFolder, flagsFile: flagsFile}, probeFolder: probeFolder}
	p.executable, err = executablePath()
	return p, err
}

func tellStarts(command *cobra.Command) error {
	p, err := onThisNode()
	if err != nil {
		return err
	}
	for _, remark := range p.startRemarks(command.Context()) {
		if _, err := fmt.Fprintln(command.OutOrStdout(), remark); err != nil {
			return err
		}
	}
	return nil
}
