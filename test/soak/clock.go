//go:build linux

package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// jump sets the clock of the whole machine.
func (s *soaker) jump(by time.Duration) error {
	if err := setClock(by); err != nil {
		return err
	}
	s.jumped += by
	return nil
}

// putClockBack undoes all jumps; what passed meanwhile has passed.
func (s *soaker) putClockBack() {
	if err := setClock(-s.jumped); err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "the clock is %s off: %v\n", s.jumped, err)
	}
	s.jumped = 0
}

func setClock(by time.Duration) error {
	if by == 0 {
		return nil
	}
	now := unix.NsecToTimespec(time.Now().Add(by).UnixNano())
	if err := unix.ClockSettime(unix.CLOCK_REALTIME, &now); err != nil {
		return fmt.Errorf("jumping the clock by %s: %w", by, err)
	}
	return nil
}
