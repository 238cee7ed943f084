//go:build linux

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

	all []asked
}

// asked is one request.
type asked struct {
	kind string
	at   time.Time // when it was received
	code int       // of the answer
}

func requestsOf(all []asked) Requests {
	r := Requests{Kinds: map[string]int{}, Failed: map[int]int{}, all: all}
	seconds := map[int64]int{}
	for _, one := range all {
		r.Kinds[one.kind]++
		seconds[one.at.Unix()]++
		r.Peak = max(r.Peak, seconds[one.at.Unix()])
		if one.code >= 400 {
			r.Failed[one.code]++
		}
	}
	return r
}

// And are those of two times.
func (r Requests) And(more Requests) Requests { return requestsOf(slices.Concat(r.all, more.all)) }

// Between are those that were received from begin on, but before end.
func (r Requests) Between(begin, end time.Time) Requests {
	return requestsOf(slices.DeleteFunc(slices.Clone(r.all), func(one asked) bool { return one.at.Before(begin) || !one.at.Before(end) }))
}

// Span is when the first and the last one were received.
func (r Requests) Span() (first, last time.Time) {
	for i, one := range r.all {
		if i == 0 || one.at.Before(first) {
			first = one.at
		}
		if one.at.After(last) {
			last = one.at
		}
	}
	return first, last
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

// An Audit reads the API server's audit log, from where it was read last.
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

// Take gives what the log has more than last time of requests of nodes.
func (a *Audit) Take() (supervisors, kubelets Requests, err error) {
	all, err := a.take(func(e *auditEvent) (program int, is bool) {
		if !strings.HasPrefix(e.UserAgent, supervisorAgent) {
			program = 1
		}
		return program, strings.HasPrefix(e.User.Username, nodeUsers)
	})
	supervisors, kubelets = requestsOf(all[0]), requestsOf(all[1])
	supervisors.Watches, kubelets.Watches = len(a.open[0]), len(a.open[1])
	return supervisors, kubelets, err
}

// TakeOf gives what it has more of requests of one user.
func (a *Audit) TakeOf(user string) (Requests, error) {
	all, err := a.take(func(e *auditEvent) (int, bool) { return 0, e.User.Username == user })
	r := requestsOf(all[0])
	r.Watches = len(a.open[0])
	return r, err
}

// take reads on, and sorts requests by whose they are, as far as anybody wants to know.
func (a *Audit) take(whose func(*auditEvent) (int, bool)) (all [2][]asked, err error) {
	file, err := os.Open(a.path)
	if err != nil {
		return all, err
	}
	defer file.Close()
	for lines := bufio.NewReader(io.NewSectionReader(file, a.offset, 1<<40)); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, nil // and what there is of a line is being written
		}
		if err != nil {
			return all, fmt.Errorf("reading %s: %w", a.path, err)
		}
		a.offset += int64(len(line))
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return all, fmt.Errorf("reading the audit log's line %q: %w", line, err)
		}
		if i, is := whose(&e); is && e.counts(a.open[i]) {
			kind := strings.TrimSuffix(e.Verb+" "+e.Object.Resource+"/"+e.Object.Subresource, "/")
			all[i] = append(all[i], asked{kind, e.Received, e.Answer.Code})
		}
	}
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

// counts tells whether the event is that of a request, and notes watches.
func (e auditEvent) counts(open map[string]bool) bool {
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
	return ended
}
