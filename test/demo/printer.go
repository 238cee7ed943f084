//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// width is where sentences are wrapped, in bytes; commands are not, so that they can be copied.
const width = 120

const (
	bold  = "\x1b[1m"
	red   = "\x1b[31m"
	green = "\x1b[32m"
	cyan  = "\x1b[36m"
	reset = "\x1b[0m"
)

// A printer writes the story for people: in colour on a terminal, unless NO_COLOR is set (no-color.org).
type printer struct {
	to     io.Writer
	colour bool
}

func newPrinter(to *os.File) *printer {
	_, err := unix.IoctlGetTermios(int(to.Fd()), unix.TCGETS)
	return &printer{to: to, colour: err == nil && os.Getenv("NO_COLOR") == ""}
}

func (p *printer) line(colour, text string) {
	if p.colour && colour != "" {
		text = colour + text + reset
	}
	_, _ = fmt.Fprintln(p.to, text)
}

func (p *printer) heading(text string) { p.line("", ""); p.line(bold, text) }
func (p *printer) command(text string) { p.line(cyan, "  $ "+text) }
func (p *printer) ok(text string)      { p.line(green, "  ok  "+text) }

// row writes a text behind a label, its further lines below its beginning; without a text nothing.
func (p *printer) row(label, text string) {
	if text == "" {
		return
	}
	line := label
	for word := range strings.FieldsSeq(text) {
		if len(line) > len(label) && len(line)+len(word) > width {
			p.line("", strings.TrimRight(line, " "))
			line = strings.Repeat(" ", len(label))
		}
		line += word + " "
	}
	p.line("", strings.TrimRight(line, " "))
}

// Write shows what the cluster prints.
func (p *printer) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		p.line("", "    "+strings.TrimRight(line, "\n"))
	}
	return len(text), nil
}

// output shows what a command prints, line by line: some write a line in pieces.
type output struct {
	to    *printer
	piece []byte
}

func (o *output) Write(text []byte) (int, error) {
	o.piece = append(o.piece, text...)
	if end := bytes.LastIndexByte(o.piece, '\n') + 1; end > 0 {
		_, _ = o.to.Write(o.piece[:end])
		o.piece = append(o.piece[:0], o.piece[end:]...)
	}
	return len(text), nil
}

// end shows what no line's end came after.
func (o *output) end() {
	_, _ = o.to.Write(o.piece)
	o.piece = nil
}
