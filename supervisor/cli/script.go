//go:build linux

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// readScript returns the text of what is started, where that is a script that can be read.
func readScript(program string) (text string, is bool) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", false
	}
	file, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer func() { _ = file.Close() }()
	start := make([]byte, 2)
	if _, err := file.Read(start); err != nil || string(start) != "#!" {
		return "", false
	}
	rest, err := io.ReadAll(io.LimitReader(file, 1<<20))
	return "#!" + string(rest), err == nil
}

// isKubeletScript reports whether what is started is a script, which is not asked before a configuration is tried (--preflight=auto).
func isKubeletScript(program string) bool {
	_, is := readScript(program)
	return is
}

var (
	// shells are the interpreters whose language is read here.
	shells = regexp.MustCompile(`^#!\s*(\S*/env\s+(-\S+\s+)*)?(\S*/)?(sh|bash|dash|ash|ksh|mksh|zsh)\b`)
	// execWord is what replaces a program, in other languages as a part of a name.
	execWord = regexp.MustCompile(`(?m)^[^#\n]*\bexec`)
	// handedOn are the script's own arguments.
	handedOn = regexp.MustCompile(`\$\{?[@*]`)
	// configFlag is the kubelet's --config, and not its --config-dir.
	configFlag = regexp.MustCompile(`(^|[\s"'=(])--config([=\s"']|$)`)
	variable   = regexp.MustCompile(`\$\{?(\w+)`)
)

var (
	errScriptStays = errors.New("does not become the kubelet: the kubelet would be the child of a shell, where the supervisor cannot stop " +
		"it; write exec in front of the kubelet, or give the kubelet itself")
	errScriptDeaf = errors.New(`does not hand on its arguments, so that the kubelet would not run with the configuration that it is given; ` +
		`write "$@" after the kubelet and its flags`)
	errScriptLast = errors.New(`gives a --config after its own arguments, and the last one counts; write "$@" after it`)
)

// checkScript refuses a script whose text says that the kubelet would not be our child, or would not get our arguments. What the text does
// not say is found when it runs.
func checkScript(text string) error {
	if !shells.MatchString(text) {
		if !execWord.MatchString(text) {
			return errScriptStays
		}
		return nil
	}
	commands, err := shellCommands(text)
	if err != nil { // then it is no more than a text
		if !execWord.MatchString(text) {
			return errScriptStays
		}
		if !handedOn.MatchString(text) {
			return errScriptDeaf
		}
		return nil
	}
	return checkCommands(commands)
}

// checkCommands looks for the command that becomes the kubelet.
func checkCommands(commands []shellCommand) error {
	stays := errScriptStays
	becomes, handsOn, anywhere := false, false, false
	for _, command := range commands {
		said := strings.Join(command.words, " ")
		anywhere = anywhere || handedOn.MatchString(said)
		if command.configLast(commands) {
			return errScriptLast
		}
		program, arguments := command.becomes()
		switch {
		case program == "" || command.besides:
		case !mayBeKubelet(program):
			stays = fmt.Errorf("becomes %s and not the kubelet: one that runs in a container, or as the child of another program, is not our "+
				"child; give the kubelet itself", program)
		default:
			becomes = true
			handsOn = handsOn || variable.MatchString(arguments) || handedOn.MatchString(arguments)
		}
	}
	switch {
	case !becomes:
		return stays
	case !anywhere || !handsOn:
		return errScriptDeaf
	}
	return nil
}

// mayBeKubelet reports whether a program is the kubelet, or one that only the shell knows.
func mayBeKubelet(program string) bool {
	return namesKubelet(program) || strings.ContainsAny(filepath.Base(program), "$`")
}

func namesKubelet(program string) bool {
	return strings.Contains(strings.ToLower(filepath.Base(program)), "kubelet")
}

// handOver are programs that become the one that they are given.
var handOver = []string{"env", "nice", "ionice", "taskset", "chrt", "numactl", "setpriv", "stdbuf", "setarch", "nohup", "systemd-cat"}

// becomes returns the program that takes the shell's place, and what it is given; "" where none does, as with redirections alone.
func (c shellCommand) becomes() (program, arguments string) {
	words := c.words
	for len(words) > 0 && assignment.MatchString(words[0]) {
		words = words[1:]
	}
	if len(words) == 0 || words[0] != "exec" {
		return "", ""
	}
	words = words[1:]
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		values := 1
		if words[0] == "-a" { // has a value
			values = 2
		}
		words = words[min(values, len(words)):]
	}
	if len(words) > 0 && slices.Contains(handOver, filepath.Base(words[0])) {
		// Its options may have values: what it becomes is found by its name.
		if i := slices.IndexFunc(words, func(word string) bool { return namesKubelet(word) && !assignment.MatchString(word) }); i >= 0 {
			words = words[i:]
		}
	}
	if len(words) == 0 {
		return "", ""
	}
	return words[0], strings.Join(words[1:], " ")
}

var assignment = regexp.MustCompile(`^\w+\+?=`)

// configLast reports whether a --config follows the script's own arguments, directly or in a variable.
func (c shellCommand) configLast(all []shellCommand) bool {
	if first := c.words[0]; first != "exec" && first != "set" && !assignment.MatchString(first) {
		return false
	}
	said := strings.Join(c.words, " ")
	found := handedOn.FindStringIndex(said)
	if found == nil {
		return false
	}
	rest := said[found[1]:]
	if configFlag.MatchString(rest) {
		return true
	}
	for _, name := range variable.FindAllStringSubmatch(rest, -1) {
		if slices.ContainsFunc(all, func(other shellCommand) bool { return other.assigns(name[1], configFlag) }) {
			return true
		}
	}
	return false
}

// assigns reports whether a variable gets a value that matches.
func (c shellCommand) assigns(name string, value *regexp.Regexp) bool {
	return slices.ContainsFunc(c.words, func(word string) bool {
		assigned, is := strings.CutPrefix(word, name)
		return is && assignment.MatchString(word) && strings.ContainsAny(assigned[:min(1, len(assigned))], "+=") &&
			value.MatchString(strings.TrimLeft(assigned, "+="))
	})
}
