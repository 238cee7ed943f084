package plugin

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable makes what a node wrote fit for a terminal: one line, no control characters, which could forge other lines.
func printable(words string) string {
	words = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(words, "?"))
	return strings.Join(strings.Fields(words), " ")
}

// shorten cuts a text to a number of characters.
func shorten(words string, characters int) string {
	if utf8.RuneCountInString(words) <= characters {
		return words
	}
	return string([]rune(words)[:characters-1]) + "…"
}

func firstOf(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}
