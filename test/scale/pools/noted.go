//go:build linux

package pools

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// noted is what the API server's audit log has of writes to Nodes and of the pool's status. It is read on from where it ended.
type noted struct {
	path        string
	read        int64
	assignments []request // by the controller
	words       []request // by a node, of its own status
	pools       []request // by the controller, of the pool's status
}

// A request is one that was answered.
type request struct {
	name     string
	received time.Time
	answered time.Time
	code     int
}

func (r request) done() bool { return r.code == http.StatusOK }

// readOn takes in what was noted since the last time.
func (n *noted) readOn() error {
	file, err := os.Open(n.path)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(n.read, io.SeekStart); err != nil {
		return err
	}
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // and what there is of a line is being written
		}
		if err != nil {
			return err
		}
		n.read += int64(len(line))
		if bytes.Contains(line, []byte(`"resource":"nodes"`)) || bytes.Contains(line, []byte(`"resource":"kubeletpools"`)) {
			n.take(line)
		}
	}
}

// take leaves out a line over which an API server was killed.
func (n *noted) take(line []byte) {
	var e struct {
		Stage, Verb string
		Received    time.Time `json:"requestReceivedTimestamp"`
		Answered    time.Time `json:"stageTimestamp"`
		User        struct{ Username string }
		Object      struct{ Resource, Subresource, Name string } `json:"objectRef"`
		Answer      struct{ Code int }                           `json:"responseStatus"`
	}
	if json.Unmarshal(line, &e) != nil || e.Stage != "ResponseComplete" || e.Verb != "patch" && e.Verb != "update" {
		return
	}
	r := request{e.Object.Name, e.Received, e.Answered, e.Answer.Code}
	switch is := e.Object.Resource + "/" + e.Object.Subresource; {
	case is == "nodes/" && e.User.Username == controllerUser:
		n.assignments = append(n.assignments, r)
	case is == "nodes/status" && e.User.Username == "system:node:"+e.Object.Name:
		n.words = append(n.words, r)
	case is == "kubeletpools/status" && e.User.Username == controllerUser:
		n.pools = append(n.pools, r)
	}
}

// since are those that were received from then on.
func since(all []request, begin time.Time) (later []request) {
	for _, r := range all {
		if !r.received.Before(begin) {
			later = append(later, r)
		}
	}
	return later
}

// busiest is how many were received in the second with the most.
func busiest(all []request) (most int) {
	seconds := map[int64]int{}
	for _, r := range all {
		seconds[r.received.Unix()]++
		most = max(most, seconds[r.received.Unix()])
	}
	return most
}
