package decide

import (
	"encoding/json"
	"fmt"
	"time"
)

// What is kept on disk (docs/contract.md) is written for people, and nothing is read that would not have been written: a negative
// count of tries, for one, would be tries for free.

// Span is a time.Duration of zero or more, written as "1m30s".
type Span time.Duration

func (s Span) MarshalText() ([]byte, error) { return []byte(time.Duration(s).String()), nil }

func (s *Span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d < 0 {
		return fmt.Errorf("%.64q is not a time such as 1m30s", text)
	}
	*s = Span(d)
	return nil
}

// UnmarshalText refuses what is none of the causes.
func (c *Cause) UnmarshalText(text []byte) error {
	switch cause := Cause(text); cause {
	case Exited, StartTimeout, LeaseLost:
		*c = cause
		return nil
	}
	return fmt.Errorf("%.64q is none of the causes %s, %s and %s", text, Exited, StartTimeout, LeaseLost)
}

type (
	trialFields Trial
	trialFormat struct {
		trialFields
		Healthy   Span `json:"healthy,omitempty"`
		Unhealthy Span `json:"unhealthy,omitempty"`
		Longest   Span `json:"longest,omitempty"`
	}
)

// MarshalJSON writes times as "1m30s".
func (t Trial) MarshalJSON() ([]byte, error) {
	return json.Marshal(trialFormat{trialFields(t), Span(t.Healthy), Span(t.Unhealthy), Span(t.Longest)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Trial) UnmarshalJSON(data []byte) error {
	var f trialFormat
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	if f.Tries < 0 {
		return fmt.Errorf("a trial with %d tries", f.Tries)
	}
	*t = Trial(f.trialFields)
	t.Healthy, t.Unhealthy, t.Longest = time.Duration(f.Healthy), time.Duration(f.Unhealthy), time.Duration(f.Longest)
	return nil
}

type (
	suspectFields Suspect
	suspectFormat struct {
		suspectFields
		Life Span `json:"life,omitempty"`
	}
)

// MarshalJSON writes times as "1m30s".
func (x Suspect) MarshalJSON() ([]byte, error) {
	return json.Marshal(suspectFormat{suspectFields(x), Span(x.Life)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (x *Suspect) UnmarshalJSON(data []byte) error {
	var f suspectFormat
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	*x = Suspect(f.suspectFields)
	x.Life = time.Duration(f.Life)
	return nil
}
