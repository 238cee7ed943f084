//go:build linux

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/google/renameio/v2"
)

// startCommand is the ExecStart of a unit, as its author wrote it: quoting, specifiers and variables are systemd's to expand.
type startCommand struct {
	prefix string // what precedes the path: - + !
	line   string // the rest; on one line
	source string // the file that says so
	number int    // of the line in it
}

// at is where the command can be found.
func (c startCommand) at() string { return fmt.Sprintf("%s:%d", c.source, c.number) }

// readStartCommand finds the command that counts in the files of a unit, which come in systemd's own order: a later ExecStart adds,
// and an empty one forgets what came before.
func readStartCommand(files []string) (startCommand, error) {
	var commands []startCommand
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return startCommand{}, fmt.Errorf("reading the unit: %w", err)
		}
		commands = addStartCommands(commands, file, data)
	}
	switch len(commands) {
	case 0:
		return startCommand{}, fmt.Errorf("%s have 0 ExecStart lines that count; only a unit with one can be taken over",
			strings.Join(files, ", "))
	case 1:
		return commands[0], commands[0].check()
	}
	var places []string
	for _, c := range commands {
		places = append(places, c.at())
	}
	return startCommand{}, fmt.Errorf("%s have %d ExecStart lines that count; only a unit with one can be taken over",
		strings.Join(places, ", "), len(commands))
}

// addStartCommands adds those of a file to what counted before it.
func addStartCommands(commands []startCommand, file string, data []byte) []startCommand {
	for _, value := range serviceValues(data, "ExecStart") {
		if value.text == "" {
			commands = nil
			continue
		}
		line := strings.TrimLeft(value.text, "-@:+!|")
		prefix := value.text[:len(value.text)-len(line)]
		commands = append(commands, startCommand{prefix: prefix, line: singleSpaced(line), source: file, number: value.number})
	}
	return commands
}

// check refuses what would not mean the same behind -- as it does in the unit.
func (c startCommand) check() error {
	if strings.ContainsAny(c.prefix, "@:|") {
		return fmt.Errorf("%s has ExecStart=%s…, and a command with one of @ : | in front cannot be taken over", c.at(), c.prefix)
	}
	if endsEscaped(c.line) {
		return fmt.Errorf("%s ends with a backslash, which would join the line with the next one in a drop-in file: remove it", c.at())
	}
	program, err := c.program()
	if err != nil {
		return err
	}
	name := filepath.Base(program)
	switch {
	case name == "kubelet-supervisor":
		return fmt.Errorf("%s runs kubelet-supervisor already: remove it first", c.at())
	case !strings.Contains(name, "kubelet"):
		return fmt.Errorf("%s starts %s: ExecStart must run the kubelet directly, because the supervisor appends --config", c.at(),
			program)
	}
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("%s names a kubelet that cannot be run: %w", c.at(), err)
	}
	if text, is := readScript(program); is {
		if err := checkScript(text); err != nil {
			return fmt.Errorf("%s starts %s, a script that %w", c.at(), program, err)
		}
	}
	return nil
}

// program returns the first word, where the line is one command.
func (c startCommand) program() (string, error) {
	words, err := splitWords(c.line)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s cannot be taken over: %w", c.at(), err)
	case len(words) == 0 || words[0] == "":
		return "", fmt.Errorf("%s names no program", c.at())
	case slices.Contains(words, ";"):
		return "", fmt.Errorf("%s has several commands, with ; between them; only one can be taken over", c.at())
	}
	return words[0], nil
}

// splitWords splits as systemd.service(5) does, as far as it matters here: quotes are taken away, escapes are left as they are.
func splitWords(line string) (words []string, err error) {
	var word strings.Builder
	var quote rune
	inWord, escaped := false, false
	for _, r := range line {
		switch {
		case escaped:
			escaped = false
			word.WriteRune(r)
		case r == '\\':
			escaped, inWord = true, true
			word.WriteRune(r)
		case r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, inWord = r, true
		case quote == 0 && unicode.IsSpace(r):
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			inWord = true
			word.WriteRune(r)
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %c is not closed", quote)
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// replaceFile puts the content in place of the file at once, or not at all. A power cut finds the old one or the new one.
func replaceFile(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return renameio.WriteFile(path, []byte(content), 0o644, renameio.WithStaticPermissions(0o644))
}
