package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	nodeUser = "system:node:" + cluster.NodeName // supervisor and kubelet are the same user
	ownAgent = "kubelet-supervisor"
)

// An auditEvent is a line of the API server's audit log.
type auditEvent struct {
	ID        string `json:"auditID"`
	Stage     string `json:"stage"`
	Verb      string `json:"verb"`
	UserAgent string `json:"userAgent"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
}

// traffic is what one program asked the API server for.
type traffic struct {
	requests, writes float64
	watches          float64        // open
	kinds            map[string]int // of requests: VERB RESOURCE
}

// trafficOf counts what was asked for after the first bytes of the log, and the watches that are open at its end. own tells the
// supervisor from the kubelet. A watch is counted as a request when it begins, the others when they are answered.
func trafficOf(log string, from int64, own bool) (t traffic, err error) {
	t.kinds = map[string]int{}
	open := map[string]bool{}
	read := int64(0)
	for line := range strings.Lines(log) {
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		counts := read >= from
		read += int64(len(line))
		var e auditEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return t, fmt.Errorf("reading the audit log's line %q: %w", line, err)
		}
		if e.User.Username != nodeUser || strings.HasPrefix(e.UserAgent, ownAgent) != own {
			continue
		}
		watch := e.Verb == "watch"
		switch {
		case watch && e.Stage == "ResponseStarted":
			open[e.ID] = true
		case watch:
			delete(open, e.ID)
			continue
		case e.Stage != "ResponseComplete":
			continue
		}
		if !counts {
			continue
		}
		t.requests++
		t.kinds[strings.TrimSuffix(e.Verb+" "+e.Object.Resource+"/"+e.Object.Subresource, "/")]++
		if slices.Contains([]string{"create", "update", "patch", "delete"}, e.Verb) {
			t.writes++
		}
	}
	t.watches = float64(len(open))
	return t, nil
}

func (t traffic) gets() (count float64) {
	for kind, n := range t.kinds {
		if strings.HasPrefix(kind, "get ") {
			count += float64(n)
		}
	}
	return count
}

func (t traffic) String() string {
	var words []string
	for _, kind := range slices.Sorted(maps.Keys(t.kinds)) {
		words = append(words, fmt.Sprintf("%d %s", t.kinds[kind], kind))
	}
	return strings.Join(words, ", ")
}
