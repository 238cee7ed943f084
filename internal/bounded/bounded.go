// Package bounded makes what comes from outside fit to be kept and shown: texts of users, of the kubelet and of the API server, files, and
// answers. It promises a size, valid UTF-8, and that nothing is lost in silence: what was cut says so.
package bounded

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Ellipsis ends a text that was cut.
const Ellipsis = "…"

// Text is text in at most limit bytes, the ellipsis included. It is cut between two characters.
func Text(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := max(0, limit-len(Ellipsis))
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + Ellipsis
}

// Short is foreign text that is short enough to be quoted in a message on the Node: 64 bytes, and the mark where there are more. The
// admission policy says it in the same words.
func Short(text string) string {
	if len(text) <= 64 {
		return text
	}
	return Text(text+Ellipsis, 64+len(Ellipsis))
}

// Line is text as one line of printable characters: line breaks, control characters and invisible ones become single spaces.
func Line(text string) string { return strings.Join(strings.Fields(Cell(text)), " ") }

// Cell is text as one line of printable characters, with its spaces as they are: each line break, control character
// and invisible one becomes a space.
func Cell(text string) string {
	return strings.Map(func(r rune) rune {
		if shows(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
}

// shows reports whether a character has a place of its own on a screen, and does nothing else: it does not move the
// cursor, end a line, or change the direction of what follows, and it is not there unseen.
func shows(r rune) bool {
	return unicode.IsPrint(r) && !unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// TooLongError is that of a source with more bytes than are read of it.
type TooLongError struct{ Limit int }

func (e *TooLongError) Error() string { return fmt.Sprintf("it is longer than %d bytes", e.Limit) }

// Read reads all of source, and fails with a *TooLongError where that is more than limit bytes.
func Read(source io.Reader, limit int) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(source, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(content) > limit {
		return nil, &TooLongError{limit}
	}
	return content, nil
}
