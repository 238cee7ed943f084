package plugin

import (
	"errors"
	"fmt"
	"io"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// findings prints what a diagnosis finds, one line each, and counts the problems.
type findings struct {
	to       io.Writer
	problems int
}

// verdict returns an error with a prefix if there are problems.
func (f *findings) verdict(of string) error {
	switch f.problems {
	case 0:
		return nil
	case 1:
		return errors.New(of + "one thing is wrong")
	}
	return fmt.Errorf("%s%d things are wrong", of, f.problems)
}

func (f *findings) say(mark, format string, values ...any) {
	_, _ = fmt.Fprintf(f.to, "%-7s %s\n", mark, view.Shorten(view.Sprintf(format, values), view.MaxError))
}

func (f *findings) fine(format string, values ...any)    { f.say("ok", format, values...) }
func (f *findings) unknown(format string, values ...any) { f.say("unknown", format, values...) }
func (f *findings) note(format string, values ...any)    { f.say("note", format, values...) }
func (f *findings) wrong(format string, values ...any) {
	f.problems++
	f.say("WRONG", format, values...)
}
