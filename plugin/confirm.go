package plugin

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
)

// confirm asks a person. No answer, from a script say, is a no.
func (s *session) confirm(format string, values ...any) error {
	_, _ = fmt.Fprintf(s.ErrOut, format+" [y/N] ", values...)
	answer, _ := bufio.NewReader(s.In).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	case "":
		s.note("")
	}
	return errors.New("nothing was changed; answer y, or give --yes")
}
