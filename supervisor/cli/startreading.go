//go:build linux

package cli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A unit is read twice, by systemd and by us, because systemd shows its command line only without the quotes and with the specifiers
// expanded. enable takes over only what both read.

// freshState lets systemd read the unit's files again where they have changed since it did.
func (i installation) freshState(ctx context.Context, state unitState) (unitState, error) {
	if !state.NeedDaemonReload || i.dryRun {
		return state, nil
	}
	i.say("Doing:              systemctl daemon-reload, because files of %s have changed since systemd read them", i.unit)
	if _, err := systemctl(ctx, "daemon-reload"); err != nil {
		return state, err
	}
	return showUnit(ctx, i.unit)
}

// checkReading refuses the command that we read where systemd would start other words.
func (i installation) checkReading(state unitState, command startCommand) error {
	switch {
	case slices.Contains(state.DropInPaths, i.dropInPath()):
		return nil // systemd has our line: checkTwin is for the unit's own
	case state.NeedDaemonReload:
		i.say("Not compared:       systemd has not read the newest files of %s; without --dry-run this is done first", i.unit)
		return nil
	}
	return i.compare(state.StartWords, command)
}

// checkTwin is checkReading where our drop-in is in force, with another line than it will have.
func (i installation) checkTwin(ctx context.Context, state unitState, command startCommand) error {
	if !slices.Contains(state.DropInPaths, i.dropInPath()) {
		return nil
	}
	words, err := i.readTwin(ctx, i.otherFiles(state))
	if err != nil {
		return err
	}
	return i.compare(words, command)
}

func (u unitFiles) compare(systemds []string, command startCommand) error {
	words, err := splitWords(command.line)
	if err != nil {
		return fmt.Errorf("%s cannot be taken over: %w", command.at(), err)
	}
	if len(systemds) == 1 && samePattern(words).MatchString(systemds[0]) {
		return nil
	}
	return fmt.Errorf(`systemd reads %s otherwise than enable does, and nothing is changed. Enable reads from %s
  %s
and systemd starts
  %s
Write this command line in a drop-in file of your own, on one line and without escapes and characters that cannot be seen`,
		u.unit, command.at(), command.line, cmp.Or(strings.Join(systemds, "\n  and "), "nothing"))
}

// specifier is replaced by systemd when it reads the unit; %% is a percent sign.
var specifier = regexp.MustCompile(`%.`)

// samePattern matches the words as systemd shows them, with blanks between.
func samePattern(words []string) *regexp.Regexp {
	var pattern strings.Builder
	pattern.WriteString(`(?s)^`)
	if len(words) > 0 && !filepath.IsAbs(words[0]) {
		pattern.WriteString(`(?:/\S*/)?`) // systemd may have looked for it
	}
	for i, word := range words {
		if i > 0 {
			pattern.WriteByte(' ')
		}
		pattern.WriteString(wordPattern(unescaped(word)))
	}
	pattern.WriteByte('$')
	return regexp.MustCompile(pattern.String())
}

// wordPattern matches a word whose specifiers stand for anything.
func wordPattern(word string) string {
	var pattern strings.Builder
	for at := 0; ; {
		found := specifier.FindStringIndex(word[at:])
		if found == nil {
			return pattern.String() + regexp.QuoteMeta(word[at:])
		}
		pattern.WriteString(regexp.QuoteMeta(word[at : at+found[0]]))
		if word[at+found[0]:at+found[1]] == "%%" {
			pattern.WriteByte('%')
		} else {
			pattern.WriteString(`.*`)
		}
		at += found[1]
	}
}

// oneLetter are the escapes of one letter that systemd knows (systemd.syntax(7)); others of one letter are left as they are.
var oneLetter = map[byte]string{'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", '\\': `\`, '"': `"`, '\'': "'",
	's': " "}

// digits are those that come behind the letter of a number, and its base; octal numbers have no letter.
var digits = map[byte]struct{ count, base int }{'x': {2, 16}, 'u': {4, 16}, 'U': {8, 16}}

// unescaped replaces the escapes in a word as systemd does.
func unescaped(word string) string {
	var text strings.Builder
	for i := 0; i < len(word); i++ {
		if word[i] != '\\' || i+1 == len(word) {
			text.WriteByte(word[i])
			continue
		}
		letter := word[i+1]
		if replaced, known := oneLetter[letter]; known {
			text.WriteString(replaced)
			i++
			continue
		}
		start, number := i+2, digits[letter]
		if letter >= '0' && letter <= '7' {
			start, number = i+1, struct{ count, base int }{3, 8}
		}
		end := start + number.count
		if number.count == 0 || end > len(word) {
			text.WriteByte('\\')
			continue
		}
		value, err := strconv.ParseUint(word[start:end], number.base, 32)
		switch {
		case err != nil:
			text.WriteByte('\\')
			continue
		case letter == 'u' || letter == 'U':
			text.WriteRune(rune(value)) //nolint:gosec // 32 bits, and what is no character becomes one that differs
		default:
			text.WriteByte(byte(value))
		}
		i = end - 1
	}
	return text.String()
}

// startWords takes the words out of what systemctl show says of an ExecStart, as in
// { path=/usr/bin/kubelet ; argv[]=/usr/bin/kubelet --v=2 ; ignore_errors=no ; start_time=[n/a] ; … }.
func startWords(value string) string {
	_, words, _ := strings.Cut(value, "argv[]=")
	if end := strings.LastIndex(words, " ; ignore_errors="); end >= 0 {
		words = words[:end]
	}
	return words
}

// inForce reports whether the unit's next start is what our drop-in or unit says, to the word: the file is loaded, and no other file
// overrides it.
func (state unitState) inForce(path, content string) bool {
	commands := addStartCommands(nil, path, []byte(content))
	if len(commands) != 1 || len(state.StartWords) != 1 || state.NeedDaemonReload {
		return false
	}
	if state.FragmentPath != path && !slices.Contains(state.DropInPaths, path) {
		return false
	}
	words, err := splitWords(commands[0].line)
	return err == nil && samePattern(words).MatchString(state.StartWords[0])
}
