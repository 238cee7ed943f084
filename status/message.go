package status

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMessage bounds the message of a condition or an event, in bytes. It is the API's own limit for the notes of events.
const maxMessage = 1024

const (
	separator = "; "
	ellipsis  = "…"
)

// Message joins parts, empty ones left out, into one line of printable UTF-8 of at most 1,024 bytes. Where that is too
// short the longest part loses its end, so that what runs, said first, and what to do, said last, stay.
func Message(parts ...string) string {
	var kept []string
	for _, part := range parts {
		if part = printable(part); part != "" {
			kept = append(kept, part)
		}
	}
	for excess := size(kept) - maxMessage; excess > 0; excess = size(kept) - maxMessage {
		longest := 0
		for i, part := range kept {
			if len(part) > len(kept[longest]) {
				longest = i
			}
		}
		if len(kept[longest]) <= 2*len(ellipsis) { // a flood of tiny parts
			kept = kept[:len(kept)-1]
			continue
		}
		kept[longest] = shorten(kept[longest], excess)
	}
	return strings.Join(kept, separator)
}

func size(parts []string) int {
	n := max(0, len(parts)-1) * len(separator)
	for _, part := range parts {
		n += len(part)
	}
	return n
}

// shorten takes at least excess bytes off the end of text, as far as there are that many, and marks that it did.
func shorten(text string, excess int) string {
	keep := max(0, len(strings.TrimSuffix(text, ellipsis))-excess-len(ellipsis))
	for keep > 0 && !utf8.RuneStart(text[keep]) {
		keep--
	}
	return text[:keep] + ellipsis
}

// printable makes one line of text: control characters, line breaks and invisible ones become single spaces.
func printable(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, "\uFFFD"))), " ")
}
