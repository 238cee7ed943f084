//go:build linux

package cli

import (
	"bytes"
	"strings"
	"unicode"
)

// unitLine is a line of a unit, or a value on it. The number is that of the first, where several were joined.
type unitLine struct {
	number int
	text   string
}

// serviceValues returns what the [Service] section assigns to a name (systemd.syntax(7)).
func serviceValues(data []byte, name string) (values []unitLine) {
	section := ""
	for _, line := range logicalLines(data) {
		if strings.HasPrefix(line.text, "[") {
			section = line.text
			continue
		}
		key, value, found := strings.Cut(line.text, "=")
		if section == "[Service]" && found && strings.TrimSpace(key) == name {
			values = append(values, unitLine{number: line.number, text: strings.TrimSpace(value)})
		}
	}
	return values
}

// byteOrderMark is what some editors put in front of a file. systemd passes over one, and so do we.
const byteOrderMark = "\uFEFF"

// logicalLines joins lines as systemd does (config_parse in its conf-parser.c): a line goes on where an odd number of backslashes ends it,
// the last of which becomes a blank. Comments are left out, also those between lines that are joined. A backslash with a blank behind it
// joins nothing.
func logicalLines(data []byte) (lines []unitLine) {
	joined, number, marked := unitLine{}, 0, false
	for raw := range bytes.Lines(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))) {
		number++
		line := strings.TrimSuffix(string(raw), "\n")
		if first := firstOf(line); first == "#" || first == ";" {
			continue
		}
		if rest, has := strings.CutPrefix(line, byteOrderMark); has && !marked {
			line, marked = rest, true
		}
		if joined.number == 0 {
			joined.number = number
		}
		joined.text += line
		if endsEscaped(joined.text) {
			joined.text = joined.text[:len(joined.text)-1] + " "
			continue
		}
		lines = append(lines, unitLine{number: joined.number, text: strings.TrimSpace(joined.text)})
		joined = unitLine{}
	}
	return append(lines, unitLine{number: joined.number, text: strings.TrimSpace(joined.text)})
}

// firstOf is the first character of a line that is no blank.
func firstOf(line string) string {
	line = strings.TrimLeft(line, " \t\r\n")
	return line[:min(1, len(line))]
}

// endsEscaped reports whether the last character is a backslash which no other one escapes.
func endsEscaped(text string) bool {
	backslashes := len(text) - len(strings.TrimRight(text, `\`))
	return backslashes%2 == 1
}

// singleSpaced takes away the blanks between words that joined lines leave. Those within quotes belong to a word.
func singleSpaced(line string) string {
	var text strings.Builder
	var quote rune
	escaped, blank := false, false
	for _, r := range strings.TrimSpace(line) {
		if quote == 0 && !escaped && unicode.IsSpace(r) {
			blank = true
			continue
		}
		if blank {
			text.WriteByte(' ')
			blank = false
		}
		switch {
		case escaped:
			escaped = false
		case r == '\\':
			escaped = true
		case r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		}
		text.WriteRune(r)
	}
	return text.String()
}
