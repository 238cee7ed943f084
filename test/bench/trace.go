//go:build linux

package main

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// What the supervisor logs.
const (
	startingWords = "starting the kubelet with "
	healthyWords  = `"kubelet is healthy"`
)

// An ownLine is one of the supervisor's own lines; the others are its kubelets'.
type ownLine struct {
	Time  logTime `json:"ts"`
	Words string  `json:"msg"`
}

type logTime struct{ time.Time }

// UnmarshalJSON reads ISO 8601 with milliseconds, as zap writes it.
func (t *logTime) UnmarshalJSON(text []byte) (err error) {
	t.Time, err = time.Parse(`"2006-01-02T15:04:05.000Z0700"`, string(text))
	return err
}

func ownLines(log string) (lines []ownLine) {
	for text := range strings.Lines(log) {
		var line ownLine
		if strings.HasPrefix(text, `{"level":`) && json.Unmarshal([]byte(text), &line) == nil {
			lines = append(lines, line)
		}
	}
	return lines
}

// A trace is what was seen of one change, or of one start.
type trace struct {
	began, answered, ended time.Time // answered: zero for a start, which asks nobody
	end                    string    // what had happened then
	took                   time.Duration
	lines                  []ownLine
	down                   []healthChange
}

// medianTrace gives the trace of the change that took neither long nor short.
func medianTrace(traces []trace) trace {
	if len(traces) == 0 {
		return trace{}
	}
	slices.SortFunc(traces, func(a, b trace) int { return int(a.took - b.took) })
	return traces[len(traces)/2]
}

// phases puts everything in the order of time, up to its end.
func (t trace) phases() (phases []Phase) {
	add := func(name string, at time.Time) {
		if !at.IsZero() && !at.After(t.ended) {
			phases = append(phases, Phase{Name: name, At: milliseconds(at.Sub(t.began))})
		}
	}
	add("the API server has answered the PATCH of the Node", t.answered)
	for _, line := range t.lines {
		if !strings.HasPrefix(line.Words, "Kubelet restarting") { // the event's message, together with the line of the stop
			add("log: "+phaseName(line.Words), line.Time.Time)
		}
	}
	for _, change := range t.down {
		name := "healthz, polled: does not answer"
		if change.healthy {
			name = "healthz, polled: answers"
		}
		add(name, change.at)
	}
	add(t.end, t.ended)
	slices.SortStableFunc(phases, func(a, b Phase) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
	before := 0.0
	for i := range phases {
		phases[i].Took = phases[i].At - before
		before = phases[i].At
	}
	return phases
}

// phaseName leaves out which version a line is about.
func phaseName(words string) string {
	name, _, _ := strings.Cut(words, " (UID ")
	if words == "pre-flight" {
		return "pre-flight's verdict"
	}
	return name
}
