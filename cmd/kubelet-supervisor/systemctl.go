package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// unitState is what systemd says of a unit (the properties of those names, org.freedesktop.systemd1(5)).
type unitState struct {
	LoadState    string // loaded, not-found, masked, bad-setting…
	ActiveState  string
	Type         string
	FragmentPath string
	DropInPaths  []string // in the order in which they count
	ExecStart    string
	Enabled      bool
}

func (u unitState) active() bool {
	return u.ActiveState == "active" || u.ActiveState == "activating" || u.ActiveState == "reloading"
}

func showUnit(ctx context.Context, unit string) (u unitState, err error) {
	words, err := systemctl(ctx, "show", "--property=LoadState,ActiveState,Type,FragmentPath,DropInPaths,ExecStart,UnitFileState", "--", unit)
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(words) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "LoadState":
			u.LoadState = value
		case "ActiveState":
			u.ActiveState = value
		case "Type":
			u.Type = value
		case "FragmentPath":
			u.FragmentPath = value
		case "DropInPaths":
			u.DropInPaths = strings.Fields(value)
		case "ExecStart":
			u.ExecStart = value
		case "UnitFileState":
			u.Enabled = value == "enabled"
		}
	}
	return u, nil
}

// systemctl runs one command of systemd's and gives what it says; its error has systemctl's own words.
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

// executablePath is what a unit can name: the file itself, not the process's link to it.
func executablePath() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the program's own file: %w", err)
	}
	return path, nil
}
