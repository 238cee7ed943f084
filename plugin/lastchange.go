package plugin

import (
	"fmt"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/status"
)

// lastChange is what the node says of its newest change. is tells whether it says anything.
func (v nodeView) lastChange() (c status.LastChange, is bool, err error) {
	text, is := v.Annotations[status.LastChangeAnnotation]
	if is {
		c, err = status.DecodeLastChange(text)
	}
	return c, is, err
}

// changeText tells what the newest change was, and how long each of its phases took; nothing where the node does not say.
func (s *session) changeText(v nodeView) []string {
	c, is, err := v.lastChange()
	switch {
	case !is:
		return nil
	case err != nil:
		return []string{fmt.Sprintf("annotation %s cannot be read: %v", status.LastChangeAnnotation, err)}
	}
	words := []string{shorten(c.Title(), 400), whenText(s.now(), c)}
	if line := c.Line(); line != "" {
		words = append(words, shorten(line, 400))
	}
	return words
}

// whenText says when it was, by the node's clock, which may be wrong.
func whenText(now time.Time, c status.LastChange) string {
	if c.Began.IsZero() {
		return "it does not say when"
	}
	at := c.Began.UTC().Format(time.RFC3339)
	if c.Began.After(now.Add(time.Minute)) {
		return "began " + at + ", by a clock of the node that is ahead of this one"
	}
	if c.Began.After(now) {
		now = c.Began
	}
	return "began " + at + ", " + age(now, c.Began) + " ago"
}

// machineChange is the change for -o json; nil where there is none that can be read.
func (v nodeView) machineChange() map[string]any {
	c, is, err := v.lastChange()
	if !is || err != nil {
		return nil
	}
	change := map[string]any{"from": c.From, "to": c.To, "began": c.Began.UTC().Format(time.RFC3339Nano), "timeline": c.Line()}
	for key, value := range map[string]string{"resourceVersion": c.ResourceVersion, "outcome": c.Outcome, "phase": c.Phase} {
		if value != "" {
			change[key] = value
		}
	}
	if !c.Ended.IsZero() {
		change["ended"] = c.Ended.UTC().Format(time.RFC3339Nano)
	}
	if c.Resumed {
		change["resumed"] = true
	}
	phases := []any{}
	for _, p := range c.Phases {
		phases = append(phases, map[string]any{"name": p.Name, "took": p.Took})
	}
	change["phases"] = phases
	return change
}
