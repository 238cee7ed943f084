package cluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	nodeUsers       = "system:node:" // supervisor and kubelet are the same user
	supervisorAgent = "kubelet-supervisor"
)

// Requests are what one kind of program asked the API server for in a time.
type Requests struct {
	Kinds   map[string]int // VERB RESOURCE; a watch is one when it begins, the others are when they are answered
	Failed  map[int]int    // by the status code of the answer, 400 and more
	Peak    int            // of the second with the most
	Watches int            // that were open at the end

	seconds map[int64]int
}

// Total is how many there were.
func (r Requests) Total() int { return r.Count("") }

// Count is how many there were of these verbs; "" is all.
func (r Requests) Count(verbs ...string) (count int) {
	for kind, n := range r.Kinds {
		if slices.ContainsFunc(verbs, func(verb string) bool { return verb == "" || strings.HasPrefix(kind, verb+" ") }) {
			count += n
		}
	}
	return count
}

// Writes are those that change something.
func (r Requests) Writes() int { return r.Count("create", "update", "patch", "delete") }

func (r Requests) String() string {
	var words []string
	for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
		words = append(words, fmt.Sprintf("%d %s", r.Kinds[kind], kind))
	}
	return strings.Join(words, ", ")
}

// An Audit reads the API server's audit log, from where it was read last. It counts requests of nodes alone.
type Audit struct {
	path   string
	offset int64
	open   [2]map[string]bool // watches, by their audit ID; of supervisors, and of kubelets
}

// ReadAudit begins at the log's begin.
func (c *Cluster) ReadAudit() *Audit { return newAudit(c.AuditLog()) }

func newAudit(path string) *Audit {
	return &Audit{path: path, open: [2]map[string]bool{{}, {}}}
}

// Take gives what the log has more than last time.
func (a *Audit) Take() (supervisors, kubelets Requests, err error) {
	var taken [2]Requests
	for i := range taken {
		taken[i] = Requests{Kinds: map[string]int{}, Failed: map[int]int{}, seconds: map[int64]int{}}
	}
	file, err := os.Open(a.path)
	if err != nil {
		return taken[0], taken[1], err
	}
	defer file.Close()
	for lines := bufio.NewReader(io.NewSectionReader(file, a.offset, 1<<40)); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break // and what there is of a line is being written
		}
		if err != nil {
			return taken[0], taken[1], fmt.Errorf("reading %s: %w", a.path, err)
		}
		a.offset += int64(len(line))
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return taken[0], taken[1], fmt.Errorf("reading the audit log's line %q: %w", line, err)
		}
		if strings.HasPrefix(e.User.Username, nodeUsers) {
			program := 1
			if strings.HasPrefix(e.UserAgent, supervisorAgent) {
				program = 0
			}
			taken[program].count(e, a.open[program])
		}
	}
	for i := range taken {
		taken[i].Watches = len(a.open[i])
		for _, n := range taken[i].seconds {
			taken[i].Peak = max(taken[i].Peak, n)
		}
		taken[i].seconds = nil
	}
	return taken[0], taken[1], nil
}

// An auditEvent is a line of the log.
type auditEvent struct {
	ID        string    `json:"auditID"`
	Stage     string    `json:"stage"`
	Verb      string    `json:"verb"`
	UserAgent string    `json:"userAgent"`
	Received  time.Time `json:"requestReceivedTimestamp"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	Answer struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

func (r *Requests) count(e auditEvent, open map[string]bool) {
	refused := e.Answer.Code >= 400
	ended := e.Stage == "ResponseComplete" || e.Stage == "Panic"
	if e.Verb == "watch" { // answered twice: when it begins, and when it ends
		began := e.Stage == "ResponseStarted"
		if began && !refused {
			open[e.ID] = true
		} else {
			delete(open, e.ID)
		}
		ended = began || refused
	}
	if !ended {
		return
	}
	r.Kinds[strings.TrimSuffix(e.Verb+" "+e.Object.Resource+"/"+e.Object.Subresource, "/")]++
	r.seconds[e.Received.Unix()]++
	if refused {
		r.Failed[e.Answer.Code]++
	}
}
