//go:build linux

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// unitState is what systemd says of a unit (the properties of those names, org.freedesktop.systemd1(5)).
type unitState struct {
	LoadState        string // loaded, not-found, masked, bad-setting…
	ActiveState      string
	Type             string
	FragmentPath     string
	DropInPaths      []string // in the order in which they count
	ExecStart        string
	StartWords       []string // argv[] of each ExecStart
	Enabled          bool
	NeedDaemonReload bool // a file has changed since systemd read it
	MainPID          int
	properties       map[string][]string // all that was asked for; one that is a list may have several lines
}

func (u unitState) active() bool {
	return u.ActiveState == "active" || u.ActiveState == "activating" || u.ActiveState == "reloading"
}

// startVerb is what systemctl calls the next start.
func (u unitState) startVerb() string {
	if u.active() {
		return "restart"
	}
	return "start"
}

// startsAtBoot reports whether something starts the unit that the next boot will still have.
func (u unitState) startsAtBoot() bool {
	return u.Enabled || u.value("UnitFileState") != "enabled-runtime" && u.value("WantedBy")+u.value("RequiredBy") != ""
}

// value is that of a property with one.
func (u unitState) value(name string) string { return strings.Join(u.properties[name], " ") }

// unitProperties are those that are asked for.
var unitProperties = slices.Concat([]string{"LoadState", "ActiveState", "Type", "FragmentPath", "DropInPaths", "ExecStart", "ExecStopPost",
	"UnitFileState", "NeedDaemonReload",
	"MainPID", "StatusText", "WantedBy", "RequiredBy", "Environment", "EnvironmentFiles", "EnvironmentFile"}, sandboxProperties)

func showUnit(ctx context.Context, unit string) (u unitState, err error) {
	words, err := systemctl(ctx, "show", "--property="+strings.Join(unitProperties, ","), "--", unit)
	if err != nil {
		return u, err
	}
	u.properties = map[string][]string{}
	for line := range strings.Lines(words) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		u.properties[name] = append(u.properties[name], value)
		if name == "ExecStart" && value != "" {
			u.StartWords = append(u.StartWords, startWords(value))
		}
	}
	u.LoadState, u.ActiveState, u.Type, u.FragmentPath = u.value("LoadState"), u.value("ActiveState"), u.value("Type"), u.value("FragmentPath")
	u.DropInPaths = wordsOf(u.value("DropInPaths")) // one with a backslash is quoted, as for a shell
	u.ExecStart = u.value("ExecStart")
	u.Enabled = u.value("UnitFileState") == "enabled"
	u.NeedDaemonReload = u.value("NeedDaemonReload") == "yes"
	u.MainPID, _ = strconv.Atoi(u.value("MainPID"))
	return u, nil
}

// environmentFiles gives their patterns.
func (u unitState) environmentFiles() (patterns []string) {
	for _, file := range slices.Concat(u.properties["EnvironmentFiles"], u.properties["EnvironmentFile"]) { // the second in systemd before 240
		path, _, _ := strings.Cut(file, " (ignore_errors=")
		patterns = append(patterns, path)
	}
	return patterns
}

// oldestSystemd is that of RHEL 8. Before 231 the watchdog of a kubelet that runs alone cannot be turned off, before 230 a unit can end as
// failed for good, and before 235 the record of which kubelet runs is gone with the supervisor.
const oldestSystemd = 239

// checkSystemd refuses a systemd under which the drop-in would take kubelets away. One that does not tell its version is none that is known
// to.
func checkSystemd(ctx context.Context) error {
	words, err := systemctl(ctx, "--version")
	if err != nil {
		return err
	}
	fields := strings.Fields(words)
	if len(fields) < 2 || fields[0] != "systemd" {
		return nil
	}
	digits, _, _ := strings.Cut(fields[1], ".")
	if number, err := strconv.Atoi(digits); err == nil && number < oldestSystemd {
		return fmt.Errorf("this node has systemd %d, and the supervisor's unit needs %d or later: an older one does not know settings that "+
			"keep the kubelet running", number, oldestSystemd)
	}
	return nil
}

// systemctl runs one command of systemd's and returns its output; its error has systemctl's message.
func systemctl(ctx context.Context, arguments ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, "systemctl", arguments...)
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("there is no systemctl: this needs a node that runs systemd; elsewhere, start kubelet-supervisor run by hand")
	}
	if err != nil {
		return "", fmt.Errorf("systemctl %s: %w: %s", strings.Join(arguments, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}

// executablePath is what a unit can name: not the process's link to the file, but that which leads from one version to the next.
func executablePath() (string, error) {
	if startedAs == "" {
		return "", errors.New("the program's own file cannot be found: is /proc mounted?")
	}
	return startedAs, nil
}
