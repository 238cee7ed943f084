package status

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// LastChangeAnnotation holds the JSON of a LastChange.
const LastChangeAnnotation = "kubelet-supervisor.io/last-change"

// What is read of the annotation: more than a supervisor writes.
const (
	maxLastChange = 4096 // bytes
	maxPhases     = 16
)

// LastChange is what the newest change of a node's configuration was.
type LastChange struct {
	From string `json:"from"` // NAMESPACE/NAME/KEY or local
	To   string `json:"to"`
	// ResourceVersion is that of To.
	ResourceVersion string        `json:"resourceVersion,omitempty"`
	Began           time.Time     `json:"began"`
	Ended           time.Time     `json:"ended,omitzero"`    // zero: it is under way, or waits
	Outcome         string        `json:"outcome,omitempty"` // a reason of the condition, Superseded or Interrupted
	Resumed         bool          `json:"resumed,omitempty"` // another supervisor began it
	Phases          []ChangePhase `json:"phases,omitempty"`  // in their usual order
	Phase           string        `json:"phase,omitempty"`   // the one that is not over
}

// ChangePhase is how long one phase took, such as 1.5s.
type ChangePhase struct {
	Name string `json:"name"`
	Took string `json:"took"`
}

// Encode gives the annotation's value.
func (c LastChange) Encode() string {
	text, err := json.Marshal(c)
	if err != nil { // a clock beyond the year 9999
		return "{}"
	}
	return string(text)
}

// DecodeLastChange reads the annotation, which anybody may have written where there is no admission policy.
func DecodeLastChange(text string) (LastChange, error) {
	var c LastChange
	if len(text) > maxLastChange {
		return c, fmt.Errorf("it has %d bytes, and at most %d are read", len(text), maxLastChange)
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return LastChange{}, fmt.Errorf("it does not decode: %s", bounded.Text(bounded.Line(err.Error()), 200))
	}
	if len(c.Phases) > maxPhases {
		return LastChange{}, fmt.Errorf("it has %d phases, and at most %d are read", len(c.Phases), maxPhases)
	}
	for _, word := range []*string{&c.From, &c.To, &c.ResourceVersion, &c.Outcome, &c.Phase} {
		*word = bounded.Line(*word)
	}
	for i := range c.Phases {
		c.Phases[i].Name, c.Phases[i].Took = bounded.Line(c.Phases[i].Name), bounded.Line(c.Phases[i].Took)
	}
	return c, nil
}

// Title says what the change was, and what came of it.
func (c LastChange) Title() string {
	words := c.From + " -> " + c.To
	switch {
	case c.Outcome != "":
		words += ": " + c.Outcome
	case c.Ended.IsZero():
		words += ": under way"
	}
	if c.Resumed {
		words += ", begun by a supervisor that has ended since"
	}
	return words
}

// Line draws the phases: download 40ms | preflight 320ms | stop 50ms | start 280ms | report 10ms.
func (c LastChange) Line() string {
	var parts []string
	for _, p := range c.Phases {
		parts = append(parts, p.Name+" "+readable(p.Took))
	}
	if c.Phase != "" {
		parts = append(parts, c.Phase+" ...")
	}
	return strings.Join(parts, " | ")
}

// readable rounds a duration for people; what is none is a question mark.
func readable(text string) string {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil || d < 0:
		return "?"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
