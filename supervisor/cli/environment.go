//go:build linux

package cli

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// environmentFile reads assignments as systemd's EnvironmentFile does, as far as ours need it: a file that is not there has none.
func environmentFile(path string) map[string]string {
	values := map[string]string{}
	data, err := os.ReadFile(path)
	if err != nil {
		return values
	}
	for _, line := range logicalLines(data) {
		if name, value, found := strings.Cut(line.text, "="); found {
			values[strings.TrimSpace(name)] = environmentValue(value)
		}
	}
	return values
}

// environmentValue takes quotes and escapes away as systemd does (parse_env_file_internal in its env-file.c): quotes count only where a
// value or a further part of it begins, and within double ones a backslash escapes only what a shell would expand.
func environmentValue(text string) string {
	var value strings.Builder
	var quote byte
	begins, blanks := true, ""
	for i := 0; i < len(text); i++ {
		c := text[i]
		escaped := c == '\\' && quote != '\'' && i+1 < len(text)
		switch {
		case quote != 0 && c == quote:
			quote, begins = 0, true
		case escaped && quote == '"' && !strings.ContainsRune("\"\\`$", rune(text[i+1])):
			value.WriteByte(c)
		case escaped:
			value.WriteString(blanks)
			i, begins, blanks = i+1, false, ""
			value.WriteByte(text[i])
		case quote != 0:
			value.WriteByte(c)
		case begins && (c == '"' || c == '\''):
			quote = c
		case c == ' ' || c == '\t':
			if !begins {
				blanks += string(c)
			}
		default:
			value.WriteString(blanks + string(c))
			begins, blanks = false, ""
		}
	}
	return value.String()
}

// escape is replaced by what it escapes when systemd splits the value of a variable.
var escape = regexp.MustCompile(`\\(.)`)

// variableWords splits the value of a variable that stands alone on a command line, as systemd does: quotes hold words together.
func variableWords(value string) (words []string, err error) {
	words, err = splitWords(value)
	for i, word := range words {
		words[i] = escape.ReplaceAllString(word, "$1")
	}
	return words, err
}

// wordsOf is variableWords of a value that systemd may refuse: enable does so before (checkNode).
func wordsOf(value string) []string {
	words, err := variableWords(value)
	if err != nil {
		return strings.Fields(value)
	}
	return words
}

// supervisorWords are the supervisor's own flags.
func supervisorWords(flagsFile string) []string {
	return wordsOf(environmentFile(flagsFile)["KUBELET_SUPERVISOR_ARGS"])
}

// checkVariables finds values that systemd could not split.
func checkVariables(flagsFile string) error {
	settings := environmentFile(flagsFile)
	for _, name := range []string{"KUBELET_SUPERVISOR_ARGS", "KUBELET_ARGS"} {
		if _, err := variableWords(settings[name]); err != nil {
			return fmt.Errorf("%s in %s: %w", name, flagsFile, err)
		}
	}
	return nil
}
