package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// startCommand is the ExecStart of a unit, as its author wrote it: quoting, specifiers and variables are systemd's to expand.
type startCommand struct {
	prefix string // what precedes the path: - + !
	line   string // the rest; on one line
	source string // the file that says so
}

// readStartCommand finds the command that counts in the files of a unit, which come in systemd's own order: a later ExecStart adds,
// and an empty one forgets what came before.
func readStartCommand(files []string) (startCommand, error) {
	var commands []startCommand
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return startCommand{}, fmt.Errorf("reading the unit: %w", err)
		}
		for _, value := range serviceValues(data, "ExecStart") {
			if value == "" {
				commands = nil
				continue
			}
			line := strings.TrimLeft(value, "-@:+!|")
			commands = append(commands, startCommand{prefix: value[:len(value)-len(line)], line: line, source: file})
		}
	}
	if len(commands) != 1 {
		return startCommand{}, fmt.Errorf("%s have %d ExecStart lines that count; only a unit with one can be taken over", strings.Join(files, ", "), len(commands))
	}
	return commands[0], commands[0].check()
}

// serviceValues gives what the [Service] section assigns to a name (systemd.syntax(7)).
func serviceValues(data []byte, name string) (values []string) {
	section := ""
	for _, line := range logicalLines(data) {
		if strings.HasPrefix(line, "[") {
			section = line
			continue
		}
		key, value, found := strings.Cut(line, "=")
		if section == "[Service]" && found && strings.TrimSpace(key) == name {
			values = append(values, strings.TrimSpace(value))
		}
	}
	return values
}

// logicalLines joins lines that end with a backslash and leaves out comments, also those within such a line.
func logicalLines(data []byte) (lines []string) {
	var joined string
	for raw := range bytes.Lines(data) {
		line := strings.TrimSpace(string(raw))
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue
		}
		if rest, continues := strings.CutSuffix(line, `\`); continues {
			joined += strings.TrimSpace(rest) + " "
			continue
		}
		lines = append(lines, joined+line)
		joined = ""
	}
	return append(lines, strings.TrimSpace(joined))
}

// check refuses what would not mean the same behind -- as it does in the unit.
func (c startCommand) check() error {
	if strings.ContainsAny(c.prefix, "@:|") {
		return fmt.Errorf("%s has ExecStart=%s…, and a command with one of @ : | in front cannot be taken over", c.source, c.prefix)
	}
	program := c.program()
	name := filepath.Base(program)
	switch {
	case name == "kubelet-supervisor":
		return fmt.Errorf("%s runs kubelet-supervisor already: remove it first", c.source)
	case !strings.Contains(name, "kubelet"):
		return fmt.Errorf("%s starts %s: only a kubelet's own command line can be taken over, for its last flag has to be the kubelet's", c.source, program)
	}
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("%s names a kubelet that cannot be run: %w", c.source, err)
	}
	if isKubeletScript(program) && !mayBecomeKubelet(program) {
		return fmt.Errorf("%s starts %s, a script that does not become the kubelet: the kubelet would be nobody's child; write exec in front of it, or give the kubelet itself", c.source, program)
	}
	return nil
}

// program is the first word, without its quotes.
func (c startCommand) program() string {
	if quote := c.line[:1]; quote == `"` || quote == `'` {
		word, _, _ := strings.Cut(c.line[1:], quote)
		return word
	}
	return strings.Fields(c.line)[0]
}

// replaceFile puts the content in place of the file at once, or not at all.
func replaceFile(path, content string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".kubelet-supervisor-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.WriteString(content)
	err = errors.Join(err, file.Chmod(0o644), file.Sync(), file.Close())
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// execWord is what replaces a program in a shell; in other languages it is part of a name.
var execWord = regexp.MustCompile(`(?m)^[^#\n]*\bexec`)

// mayBecomeKubelet tells whether a script replaces itself with another program, as far as its text says so.
func mayBecomeKubelet(program string) bool {
	path, err := exec.LookPath(program)
	if err != nil {
		return false
	}
	text, err := os.ReadFile(path)
	return err != nil || execWord.Match(text)
}

// isKubeletScript tells that what is started is a script, which is not asked before a configuration is tried (--preflight=auto).
func isKubeletScript(program string) bool {
	path, err := exec.LookPath(program)
	if err != nil {
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	start := make([]byte, 2)
	_, err = file.Read(start)
	return err == nil && slices.Equal(start, []byte("#!"))
}
