package core

import (
	"encoding/json"
	"fmt"
	"time"
)

// What is kept on disk (docs/reference/contract.md) is written for people, and nothing is read that would not have been written: a negative
// count of tries, for one, would be tries for free.

// Span is a time.Duration of zero or more, written as "1m30s".
type Span time.Duration

func (s Span) String() string { return time.Duration(s).String() }

func (s Span) round(to time.Duration) Span { return Span(time.Duration(s).Round(to)) }

// MarshalText returns a form such as 1m30s.
func (s Span) MarshalText() ([]byte, error) { return []byte(time.Duration(s).String()), nil }

// UnmarshalText reads what MarshalText writes, and refuses what is below zero.
func (s *Span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d < 0 {
		return fmt.Errorf("%.64q is not a time such as 1m30s", text)
	}
	*s = Span(d)
	return nil
}

// UnmarshalText refuses what is not one of the causes.
func (c *Cause) UnmarshalText(text []byte) error {
	switch cause := Cause(text); cause {
	case Exited, StartTimeout, PortHeld, LeaseLost:
		*c = cause
		return nil
	}
	return fmt.Errorf("%.64q is not one of the causes %s, %s, %s and %s", text, Exited, StartTimeout, PortHeld, LeaseLost)
}

// Count is a number of zero or more.
type Count int

// UnmarshalJSON refuses a negative number.
func (c *Count) UnmarshalJSON(data []byte) error {
	var n int
	if err := json.Unmarshal(data, &n); err != nil {
		return err
	}
	if n < 0 {
		return fmt.Errorf("%d is no count", n)
	}
	*c = Count(n)
	return nil
}
