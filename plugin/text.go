package plugin

import (
	"fmt"
	"unicode/utf8"
)

// shorten cuts a text to a number of characters.
func shorten(words string, characters int) string {
	if utf8.RuneCountInString(words) <= characters {
		return words
	}
	return string([]rune(words)[:characters-1]) + "…"
}

func nodeCount(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}
