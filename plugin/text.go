package plugin

import (
	"unicode/utf8"
)

// shorten cuts a text to a number of characters.
func shorten(words string, characters int) string {
	if utf8.RuneCountInString(words) <= characters {
		return words
	}
	return string([]rune(words)[:characters-1]) + "…"
}
