package plugin

import (
	"fmt"
	"strings"
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

// lineWidth is how long a line of somebody's text may become, in characters.
const lineWidth = 120

// wrapped lays a text out in lines, between two words where it can.
func wrapped(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
