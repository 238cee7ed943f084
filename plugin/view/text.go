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

// NodeCount returns a number of nodes as text.
func NodeCount(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// LineWidth is the longest line of a text from outside, in characters.
const LineWidth = 120

// Wrap splits a text into lines, between words if possible.
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

// FirstOf joins the first of many names, and counts the rest.
func FirstOf(words []string, between string) string {
	if len(words) <= MostNames {
		return strings.Join(words, between)
	}
	return strings.Join(words[:MostNames], between) + fmt.Sprintf(" and %d more", len(words)-MostNames)
}

// MostNames limits how many nodes of each kind are named; the rest is counted.
const MostNames = 6

// CountNodes returns the name of a single Node, or the number of Nodes.
func CountNodes(nodes []Node) string {
	if len(nodes) == 1 {
		return "node " + nodes[0].Name
	}
	return fmt.Sprintf("%d nodes", len(nodes))
}
