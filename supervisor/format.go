package supervisor

import (
	"encoding/json"
	"fmt"
	"time"
)

// What is kept on disk (docs/contract.md) is written for people, and nothing is read that would not have been written: a negative
// count of tries, for one, would be tries for free.

// span is a time.Duration of zero or more, written as "1m30s".
type span time.Duration

func (s span) MarshalText() ([]byte, error) { return []byte(time.Duration(s).String()), nil }

func (s *span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d < 0 {
		return fmt.Errorf("%.64q is not a time such as 1m30s", text)
	}
	*s = span(d)
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
		Healthy   span `json:"healthy,omitempty"`
		Unhealthy span `json:"unhealthy,omitempty"`
		Longest   span `json:"longest,omitempty"`
	}
)

// MarshalJSON writes times as "1m30s".
func (t Trial) MarshalJSON() ([]byte, error) {
	return json.Marshal(trialFormat{trialFields(t), span(t.Healthy), span(t.Unhealthy), span(t.Longest)})
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
		Life span `json:"life,omitempty"`
	}
)

// MarshalJSON writes times as "1m30s".
func (x Suspect) MarshalJSON() ([]byte, error) {
	return json.Marshal(suspectFormat{suspectFields(x), span(x.Life)})
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

type (
	recordedTrialFields RecordedTrial
	recordedTrialFormat struct {
		recordedTrialFields
		Healthy span `json:"healthy"`
		Left    span `json:"left"`
	}
)

// MarshalJSON writes times as "1m30s".
func (t RecordedTrial) MarshalJSON() ([]byte, error) {
	return json.Marshal(recordedTrialFormat{recordedTrialFields(t), span(t.Healthy), span(t.Left)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *RecordedTrial) UnmarshalJSON(data []byte) error {
	var f recordedTrialFormat
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	*t = RecordedTrial(f.recordedTrialFields)
	t.Healthy, t.Left = time.Duration(f.Healthy), time.Duration(f.Left)
	return nil
}
