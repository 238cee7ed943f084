package view

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Shorten cuts a text to a number of characters.
func Shorten(words string, characters int) string {
	if utf8.RuneCountInString(words) <= characters {
		return words
	}
	return string([]rune(words)[:characters-1]) + "…"
}

// NodeCount is a number of nodes.
func NodeCount(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// LineWidth is how long a line of somebody's text may become, in characters.
const LineWidth = 120

// Wrap lays a text out in lines, between two words where it can.
func Wrap(text string, width int) (lines []string) {
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

// FirstOf names the first of many.
func FirstOf(words []string, between string) string {
	if len(words) <= MostNames {
		return strings.Join(words, between)
	}
	return strings.Join(words[:MostNames], between) + fmt.Sprintf(" and %d more", len(words)-MostNames)
}

// MostNames is how many nodes are named of each kind; the rest is counted.
const MostNames = 6

// CountNodes names the only one of some Nodes, or counts them.
func CountNodes(nodes []Node) string {
	if len(nodes) == 1 {
		return "node " + nodes[0].Name
	}
	return fmt.Sprintf("%d nodes", len(nodes))
}
