package bounded

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// A Writer is the last place before a terminal, a file or a log. What is written to it comes out in lines of printable
// characters, each of at most so many bytes: what does not show becomes a space, and what is too long ends with the
// ellipsis. Line breaks and tabs stay, so whose text may have none of them is made a [Line] or a [Cell] before. It may
// be used by several goroutines.
type Writer struct {
	to    io.Writer
	limit int

	mutex  sync.Mutex
	rest   []byte // the begin of a character, the end of which has not come yet
	length int    // of the line that is open, in bytes
	cut    bool   // it has become too long
}

// NewWriter is one with a limit for the bytes of a line; 0 is none.
func NewWriter(to io.Writer, limit int) *Writer { return &Writer{to: to, limit: limit} }

// Whole is a writer to the same place that cuts no line.
func (w *Writer) Whole() *Writer { return NewWriter(w.to, 0) }

func (w *Writer) Write(text []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	pending := append(w.rest, text...)
	var out strings.Builder
	for len(pending) > 0 && utf8.FullRune(pending) {
		r, size := utf8.DecodeRune(pending)
		pending = pending[size:]
		w.put(&out, r)
	}
	w.rest = append([]byte(nil), pending...)
	if _, err := io.WriteString(w.to, out.String()); err != nil {
		return 0, err
	}
	return len(text), nil
}

func (w *Writer) put(out *strings.Builder, r rune) {
	switch {
	case r == '\n':
		w.length, w.cut = 0, false
		out.WriteRune(r)
		return
	case w.cut:
		return
	case r != '\t' && !shows(r):
		r = ' '
	}
	size := utf8.RuneLen(r)
	if w.limit > 0 && w.length+size > w.limit-len(Ellipsis) {
		w.cut = true
		out.WriteString(Ellipsis)
		return
	}
	w.length += size
	out.WriteRune(r)
}

// JSON escapes in a JSON document what does not show, so that it stays valid and means the same. Outside of strings there is no such thing.
func JSON(document string) string {
	return escaped(document, func(r rune) string {
		if r > 0xffff { // JSON has no other way
			high, low := (r-0x10000)>>10+0xd800, (r-0x10000)&0x3ff+0xdc00
			return fmt.Sprintf(`\u%04x\u%04x`, high, low)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// FlowYAML is [JSON] for a JSON document that is read as YAML, which writes the rarer characters otherwise.
func FlowYAML(document string) string {
	return escaped(document, func(r rune) string {
		if r > 0xffff {
			return fmt.Sprintf(`\U%08x`, r)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

func escaped(document string, escape func(rune) string) string {
	var out strings.Builder
	for _, r := range document {
		if r == '\n' || r == '\t' || shows(r) {
			out.WriteRune(r)
		} else {
			out.WriteString(escape(r))
		}
	}
	return out.String()
}

// Shows reports whether all of a text shows; line breaks and tabs do.
func Shows(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && !shows(r) })
}
