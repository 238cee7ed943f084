//go:build linux

package cli

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

// shellCommand is a simple command of a shell script, as words without their quotes and without redirections. Substitutions stay as they
// are.
type shellCommand struct {
	words   []string
	besides bool // in a subshell, a pipeline or the background: it never takes the place of the shell that systemd started
}

var errShell = errors.New("a quote or a bracket of the script is not closed")

// shellReader splits a script into commands, also those within if, case, loops and functions. It is no shell: it knows what it takes to
// find the kubelet's command line.
type shellReader struct {
	text     string
	at       int
	commands []shellCommand
	words    []string
	word     strings.Builder
	inWord   bool
	skip     bool // the next word is where a redirection leads
	piped    bool // the command is behind a |
	depth    int  // of ( )
}

func shellCommands(text string) ([]shellCommand, error) {
	r := shellReader{text: strings.ReplaceAll(withoutHereDocuments(text), "\\\n", "")}
	for r.at < len(r.text) {
		if err := r.next(); err != nil {
			return nil, err
		}
	}
	r.endCommand("")
	return r.commands, nil
}

var (
	hereDocument = regexp.MustCompile(`(?:^|[^<])<<-?[ \t]*\\?["']?(\w+)`)
	arithmetic   = regexp.MustCompile(`\(\(.*?\)\)`) // where << shifts
)

// withoutHereDocuments leaves out the lines that a script has for others.
func withoutHereDocuments(text string) string {
	var kept strings.Builder
	end := ""
	for line := range strings.Lines(text) {
		if end != "" {
			if strings.TrimSpace(line) == end {
				end = ""
			}
			continue
		}
		kept.WriteString(line)
		if found := hereDocument.FindStringSubmatch(arithmetic.ReplaceAllString(line, "")); found != nil {
			end = found[1]
		}
	}
	return kept.String()
}

// next takes what is at the place of the reader.
func (r *shellReader) next() error {
	switch c := r.text[r.at]; {
	case c == '#' && !r.inWord:
		if r.at = r.find(r.at, "\n"); r.at < 0 {
			r.at = len(r.text)
		}
	case strings.IndexByte(" \t\r", c) >= 0:
		r.endWord()
		r.at++
	case strings.HasPrefix(r.text[r.at:], "&>"), c == '<', c == '>':
		return r.redirection()
	case strings.IndexByte("\n;&|", c) >= 0:
		r.operator()
	case c == '(' && strings.HasSuffix(r.word.String(), "="): // an array
		return r.take(r.closing(r.at, '(', ')'))
	case c == '(':
		r.endCommand("")
		r.depth++
		r.at++
	case c == ')': // also that of a pattern in case
		r.endCommand("")
		r.depth = max(0, r.depth-1)
		r.at++
	default:
		return r.partOfWord()
	}
	return nil
}

func (r *shellReader) operator() {
	start := r.at
	for r.at < len(r.text) && strings.IndexByte(";&|", r.text[r.at]) >= 0 {
		r.at++
	}
	if r.at == start { // the end of a line
		r.at++
	}
	r.endCommand(r.text[start:r.at])
}

func (r *shellReader) redirection() error {
	if strings.Trim(r.word.String(), "0123456789") != "" {
		r.endWord()
	}
	if r.at+1 < len(r.text) && r.text[r.at] != '&' && r.text[r.at+1] == '(' { // the name of a pipe
		return r.take(r.closing(r.at+1, '(', ')'))
	}
	r.word.Reset() // the number of a file
	r.inWord = false
	for r.at < len(r.text) && strings.IndexByte("<>&|", r.text[r.at]) >= 0 {
		r.at++
	}
	r.skip = true
	return nil
}

// partOfWord takes a character, a quotation or a substitution.
func (r *shellReader) partOfWord() error {
	rest := r.text[r.at:]
	switch {
	case rest[0] == '\\':
		r.put(rest[1:min(2, len(rest))], 2)
	case rest[0] == '\'':
		end := r.find(r.at+1, "'")
		if end < 0 {
			return errShell
		}
		r.put(r.text[r.at+1:end], end+1-r.at)
	case rest[0] == '"':
		return r.quotation()
	default:
		return r.take(r.substitution())
	}
	return nil
}

// quotation is what is within ".
func (r *shellReader) quotation() error {
	r.put("", 1)
	for r.at < len(r.text) {
		switch rest := r.text[r.at:]; {
		case rest[0] == '"':
			r.at++
			return nil
		case rest[0] == '\\':
			r.put(rest[1:min(2, len(rest))], 2)
		default:
			if err := r.take(r.substitution()); err != nil {
				return err
			}
		}
	}
	return errShell
}

// substitution returns where what begins here ends: one character, unless it is a $(…), a ${…} or a `…`.
func (r *shellReader) substitution() (end int) {
	switch rest := r.text[r.at:]; {
	case strings.HasPrefix(rest, "$("):
		return r.closing(r.at+1, '(', ')')
	case strings.HasPrefix(rest, "${"):
		return r.closing(r.at+1, '{', '}')
	case rest[0] == '`':
		if end := r.find(r.at+1, "`"); end >= 0 {
			return end + 1
		}
		return -1
	}
	return r.at + 1
}

// closing returns the place behind the bracket that closes the one at start; -1 where there is none.
func (r *shellReader) closing(start int, opens, closes byte) int {
	depth := 0
	for i := start; i < len(r.text); i++ {
		switch r.text[i] {
		case opens:
			depth++
		case closes:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

func (r *shellReader) find(from int, what string) int {
	if i := strings.Index(r.text[from:], what); i >= 0 {
		return from + i
	}
	return -1
}

// take puts the text up to end into the word.
func (r *shellReader) take(end int) error {
	if end < 0 {
		return errShell
	}
	r.put(r.text[r.at:end], end-r.at)
	return nil
}

func (r *shellReader) put(text string, length int) {
	r.word.WriteString(text)
	r.inWord = true
	r.at = min(len(r.text), r.at+length)
}

func (r *shellReader) endWord() {
	if r.inWord && !r.skip {
		r.words = append(r.words, r.word.String())
	}
	r.skip = r.skip && !r.inWord
	r.word.Reset()
	r.inWord = false
}

// keywords stand in front of a command.
var keywords = []string{"if", "then", "elif", "else", "while", "until", "do", "{", "!", "time"}

func (r *shellReader) endCommand(operator string) {
	r.endWord()
	r.skip = false
	for len(r.words) > 0 && slices.Contains(keywords, r.words[0]) {
		r.words = r.words[1:]
	}
	pipe := operator == "|" || operator == "|&"
	if len(r.words) > 0 {
		r.commands = append(r.commands, shellCommand{words: r.words, besides: r.depth > 0 || r.piped || pipe || operator == "&"})
	}
	if len(r.words) > 0 || pipe {
		r.piped = pipe
	}
	r.words = nil
}
