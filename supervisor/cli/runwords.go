//go:build linux

package cli

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// runWords are the arguments of a command line of run before they are parsed. A wrong word, value or folder among them never costs the node
// its kubelet: these are enough to start it.
type runWords struct {
	flags     []string // the supervisor's own
	kubelet   string   // path; empty where none is named or can be found, and then so is all else
	arguments []string
}

// isRun reports whether the words are a command line of run.
func isRun(words []string) bool { return len(words) > 0 && words[0] == runCommand }

// cutRun looks for the kubelet behind --. A flag without its value may have taken a -- for it, so the first one counts that is followed
// by a program.
func cutRun(words []string) runWords {
	for i, word := range words[:max(0, len(words)-1)] {
		if word != "--" {
			continue
		}
		if path, err := findKubelet(words[i+1]); err == nil {
			return runWords{flags: words[1:i], kubelet: path, arguments: words[i+2:]}
		}
	}
	return runWords{}
}

// systemdPath is where systemd looks for a program without a slash (systemd-path search-binaries-default), whatever the unit's PATH is.
var systemdPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// findKubelet returns the absolute path of a program: the one that systemd would start, and where it finds none, that of PATH.
func findKubelet(name string) (path string, err error) {
	if !strings.Contains(name, "/") {
		for _, folder := range systemdPath {
			if path, err = exec.LookPath(filepath.Join(folder, name)); err == nil {
				return path, nil
			}
		}
	}
	path, err = exec.LookPath(name)
	if err != nil {
		return "", usage("the kubelet %s cannot be run: %w; give the path of an executable file after --", name, err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", usage("the kubelet %s cannot be found: %w", name, err)
	}
	return path, nil
}

// value returns the last value of a flag, as --name=value or --name value.
func (r runWords) value(name, without string) string {
	for i, word := range slices.Backward(r.flags) {
		if value, is := strings.CutPrefix(word, "--"+name+"="); is {
			return value
		}
		if word == "--"+name && i+1 < len(r.flags) {
			return r.flags[i+1]
		}
	}
	return without
}

func (r runWords) has(names ...string) bool {
	return slices.ContainsFunc(r.flags, func(word string) bool {
		name, _, _ := strings.Cut(word, "=")
		return slices.Contains(names, name)
	})
}

func (r runWords) killSwitch() string { return r.value("kill-switch", defaultKillSwitch) }

func (r runWords) stateDir() string {
	if folder := r.value("state-dir", defaultStateDir); filepath.IsAbs(folder) {
		return folder
	}
	return defaultStateDir
}

// runDirs are the run folders to look at, that which is named first.
func (r runWords) runDirs() []string {
	if folder := r.value("run-dir", defaultRunDir); filepath.IsAbs(folder) {
		return slices.Compact([]string{folder, defaultRunDir})
	}
	return []string{defaultRunDir}
}

func (r runWords) logFormat() string {
	if format := r.value("log-format", ""); checkLogFormat(format) == nil {
		return format
	}
	return ""
}

func (r runWords) stopTimeout() time.Duration {
	if wait, err := time.ParseDuration(r.value("stop-timeout", "")); err == nil && wait > 0 {
		return wait
	}
	return defaultStopTimeout
}
