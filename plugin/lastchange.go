package plugin

import (
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// changeText tells what the newest change was, and how long each of its phases took; nothing where the node does not say.
func (s *session) changeText(v nodeView) []string {
	c := v.says.Status.Change
	if c == nil {
		return nil
	}
	words := []string{shorten(c.Title(), 400), whenText(s.now(), *c)}
	if line := c.Line(); line != "" {
		words = append(words, shorten(line, 400))
	}
	return words
}

// whenText says when it was, by the node's clock, which may be wrong.
func whenText(now time.Time, c nodev1.Change) string {
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
