package cmdutil

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/plugin/view"
)

// Confirm asks the user. No answer, for example from a script, counts as no; a signal ends the question.
func (f *Factory) Confirm(format string, values ...any) error {
	_, _ = fmt.Fprint(f.ErrOut, view.Sprintf(format, values)+" [y/N] ")
	answers := make(chan string, 1)
	// A read from a terminal cannot be interrupted: after a signal this goroutine stays until the program ends.
	go func() {
		answer, _ := bufio.NewReader(f.In).ReadString('\n')
		answers <- answer
	}()
	var answer string
	select {
	case answer = <-answers:
	case <-f.interrupted:
		f.Note("")
		return errors.New("nothing was changed; it was interrupted")
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	case "":
		f.Note("")
	}
	return errors.New("nothing was changed; answer y, or give --yes")
}
