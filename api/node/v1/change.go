package v1

import (
	"strings"
	"time"
)

// Title is the change and its outcome, for users.
func (c Change) Title() string {
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

// Line lists the phases: download 40ms | preflight 320ms | stop 50ms | start 280ms | report 10ms.
func (c Change) Line() string {
	var parts []string
	for _, p := range c.Phases {
		parts = append(parts, p.Name+" "+readable(p.Took))
	}
	if c.Phase != "" {
		parts = append(parts, c.Phase+" ...")
	}
	return strings.Join(parts, " | ")
}

// readable rounds a duration for users. A malformed one is a question mark.
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
