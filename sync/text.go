package sync

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// cut keeps foreign text short enough to be quoted in a message on the Node.
func cut(text string) string { return cutAt(text, 64) }

// cutAt keeps the first limit bytes of text, or a few less so as not to split a character, and marks that it did.
func cutAt(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}

// oneLine makes foreign words safe to show: printable, one line, at most 400 bytes.
func oneLine(words string) string {
	words = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(words, "?"))
	return cutAt(strings.Join(strings.Fields(words), " "), 400)
}
