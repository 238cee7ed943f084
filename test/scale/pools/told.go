//go:build linux

package pools

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// The lines of a supervisor's log that are asked for: docs/reference/contract.md.
const (
	healthyLine  = "5326173bad354e00a85985c0dce7a46e"
	promotedLine = "430193645f7a4fbb8e500779eeade78a"
)

// A telling is when a node knew first that it runs a revision, and that it has proven it: nobody can have heard it before.
type telling struct{ runs, proven time.Time }

// told is what the nodes with news since then have told first.
func (r *rolling) told(began time.Time) (map[string]telling, error) {
	told := map[string]telling{}
	for name, p := range r.crew.puppets {
		var t telling
		for _, s := range p.since(began) {
			switch {
			case s.reason == nodev1.ReasonInTrial && t.runs.IsZero():
				t.runs = s.wanted
			case s.reason == nodev1.ReasonActive && t.proven.IsZero():
				t.proven = s.wanted
			}
		}
		if t != (telling{}) {
			told[name] = t
		}
	}
	for name, log := range r.machines.Logs() {
		t, err := loggedSince(log, began)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", name, err)
		}
		if t != (telling{}) {
			told[name] = t
		}
	}
	return told, nil
}

// loggedSince reads it in a supervisor's log.
func loggedSince(log string, began time.Time) (t telling, err error) {
	content, err := os.ReadFile(log)
	if err != nil {
		return t, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		var line struct {
			Time    float64 `json:"ts"`
			Message string  `json:"messageID"`
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue // it is the kubelet's
		}
		at := time.UnixMicro(int64(line.Time * 1e6))
		switch {
		case at.Before(began):
		case line.Message == healthyLine && t.runs.IsZero():
			t.runs = at
		case line.Message == promotedLine && t.proven.IsZero():
			t.proven = at
		}
	}
	return t, nil
}
