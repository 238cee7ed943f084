//go:build linux

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// The arguments after -- are those of the supervisor's own start. systemd reads the unit's files, and the environment files that they name,
// again at each start: kubeadm upgrade takes a flag out of kubeadm-flags.env, and no restart of the kubelet alone would notice.

// nextStart returns the kubelet's command line as the unit of a supervisor would have it at its next start. systemd itself expands it.
func nextStart(ctx context.Context, pid int) (words []string, err error) {
	i, err := onThisNode()
	if err != nil {
		return nil, err
	}
	if i.unit, err = unitOf(pid); err != nil {
		return nil, err
	}
	state, err := showUnit(ctx, i.unit)
	if err != nil {
		return nil, err
	}
	files := append([]string{state.FragmentPath}, state.DropInPaths...)
	line, err := i.runLine(files, selfCheckWords)
	if err != nil {
		return nil, err
	}
	said, err := i.startOnce(ctx, files, line)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(bytes.TrimSpace(said), &words); err != nil || len(words) == 0 {
		return nil, fmt.Errorf("what %s would start the kubelet with cannot be read: %q", i.unit, said)
	}
	return words, nil
}

// nextStartOfThis is that of the supervisor that runs.
func nextStartOfThis(ctx context.Context) ([]string, error) { return nextStart(ctx, os.Getpid()) }

// filesOfThis gives patterns of the files from which systemd would start the supervisor that runs, those of drop-ins to come among them.
// It is asked once by each program that takes over, so it is the place to clear up after the one before.
func filesOfThis(ctx context.Context) ([]string, error) {
	unit, err := unitOf(os.Getpid())
	if err != nil {
		return nil, err
	}
	prober{probeFolder: probeFolder}.clearProbes(ctx)
	state, err := showUnit(ctx, unit)
	if err != nil {
		return nil, err
	}
	return filesOf(unit, state), nil
}

// askStartOfThis lets systemd start the supervisor that runs once more, with the command line that counts in its unit's files. What the
// local configuration is worth is reported elsewhere. A start that waits for something is no refusal.
func askStartOfThis(ctx context.Context) (refuses string, err error) {
	i, err := onThisNode()
	if err != nil {
		return "", err
	}
	if i.unit, err = unitOf(os.Getpid()); err != nil {
		return "", err
	}
	state, err := showUnit(ctx, i.unit)
	switch {
	case err != nil:
		return "", err
	case state.NeedDaemonReload:
		return "", fmt.Errorf("files of %s have changed, and systemd has not read them yet", i.unit)
	}
	files := append([]string{state.FragmentPath}, state.DropInPaths...)
	line, err := i.runLine(files, selfCheckUnit)
	if err != nil {
		return "", err
	}
	_, err = i.startOnce(ctx, files, strings.TrimPrefix(line, "-")) // systemd would pass over a program that it cannot execute
	var local localRefusedError
	var not notAskedError
	switch {
	case errors.As(err, &not):
		return "", err
	case err == nil, errors.As(err, &local):
		return "", nil
	}
	return err.Error(), nil
}

// clearProbes removes what probes have left whose supervisor was replaced or killed in the middle of one.
func (p prober) clearProbes(ctx context.Context) {
	paths, _ := filepath.Glob(filepath.Join(p.probeFolder, probePrefix+"*.service*"))
	for _, path := range paths {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), probePrefix), "-")
		number, err := strconv.Atoi(pid)
		if err != nil || number != os.Getpid() && syscall.Kill(number, 0) == nil {
			continue
		}
		if unit := filepath.Base(path); strings.HasSuffix(unit, ".service") {
			_, _ = systemctl(ctx, "stop", "--", unit)
			_, _ = systemctl(ctx, "reset-failed", "--", unit)
		}
		_ = os.Remove(path)
	}
}

func filesOf(unit string, state unitState) []string {
	patterns := []string{state.FragmentPath}
	for _, folder := range []string{"/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system"} {
		patterns = append(patterns, filepath.Join(folder, unit+".d", "*.conf"))
	}
	for _, path := range state.DropInPaths {
		patterns = append(patterns, filepath.Join(filepath.Dir(path), "*.conf"))
	}
	return slices.Compact(slices.Sorted(slices.Values(append(patterns, state.environmentFiles()...))))
}

var errNoUnit = errors.New("no unit of systemd has started the supervisor")

// unitOf is the service in whose cgroup a process is.
func unitOf(pid int) (string, error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return "", fmt.Errorf("finding the unit of pid %d: %w", pid, err)
	}
	unit := unitOfCgroup(string(data))
	if !strings.HasSuffix(unit, ".service") {
		return "", errNoUnit
	}
	return unit, nil
}

// runLine is the ExecStart that counts in files of a unit that enable has changed, with a question of run --self-check.
func (p prober) runLine(files []string, question string) (string, error) {
	var commands []startCommand
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("reading the unit: %w", err)
		}
		commands = addStartCommands(commands, file, data)
	}
	if len(commands) != 1 {
		return "", fmt.Errorf("%s has %d ExecStart lines that count", p.unit, len(commands))
	}
	before, after, is := strings.Cut(commands[0].line, " "+runCommand+" ")
	if !is {
		return "", fmt.Errorf("%s starts no supervisor", commands[0].at())
	}
	return commands[0].prefix + before + " " + runCommand + " --" + selfCheckFlag + "=" + question + " " + after, nil
}
