package scale

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	auditPoll = 100 * time.Millisecond
	nodeUsers = "system:node:"
)

// Requests are what the supervisors asked the API server for.
type Requests struct {
	Kinds  map[string]int // VERB RESOURCE
	Failed map[int]int    // by the status code of the answer, 400 and more
	Peak   int            // of the second with the most
}

// Total is the number of all requests; a watch is one when it begins.
func (r Requests) Total() (total int) {
	for _, n := range r.Kinds {
		total += n
	}
	return total
}

func (r Requests) String() string {
	var words []string
	for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
		words = append(words, fmt.Sprintf("%d %s", r.Kinds[kind], kind))
	}
	return strings.Join(words, ", ")
}

// An auditTail follows the API server's audit log, whatever its rotation, and counts.
type auditTail struct {
	path string

	mutex   sync.Mutex // guards what follows
	counted Requests
	seconds map[int64]int
	err     error // the first
}

// follow reads until ctx ends.
func (a *auditTail) follow(ctx context.Context) {
	for ctx.Err() == nil {
		file, err := os.Open(a.path)
		if err == nil {
			err = a.read(ctx, file)
			_ = file.Close()
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			a.mutex.Lock()
			a.err = errors.Join(a.err, err)
			a.mutex.Unlock()
			return
		}
		pause(ctx, auditPoll)
	}
}

// read reads one file until another has its name, or ctx ends.
func (a *auditTail) read(ctx context.Context, file *os.File) error {
	lines, begun := bufio.NewReaderSize(file, 1<<20), ""
	for {
		text, err := lines.ReadString('\n')
		begun += text
		if err == nil {
			if err := a.count([]byte(begun)); err != nil {
				return err
			}
			begun = ""
			continue
		}
		if !errors.Is(err, io.EOF) {
			return fmt.Errorf("reading %s: %w", a.path, err)
		}
		if ctx.Err() != nil || begun == "" && a.replaced(file) {
			return nil
		}
		pause(ctx, auditPoll)
	}
}

// replaced tells whether the log was rotated, and all of this file was read: it was written before the other was made.
func (a *auditTail) replaced(file *os.File) bool {
	mine, err := file.Stat()
	if err != nil {
		return true
	}
	named, err := os.Stat(a.path)
	if err != nil || os.SameFile(mine, named) {
		return false
	}
	position, err := file.Seek(0, io.SeekCurrent)
	return err == nil && position >= mine.Size()
}

// An auditEvent is a line of the log.
type auditEvent struct {
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

func (a *auditTail) count(line []byte) error {
	var e auditEvent
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("reading the audit log's line %q: %w", line, err)
	}
	// A watch is answered twice: when it begins, and when it ends.
	watch := e.Verb == "watch"
	refused := e.Answer.Code >= 400
	if !strings.HasPrefix(e.User.Username, nodeUsers) || watch && e.Stage != "ResponseStarted" && !refused || !watch && e.Stage != "ResponseComplete" {
		return nil
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.counted.Kinds[strings.TrimSuffix(e.Verb+" "+e.Object.Resource+"/"+e.Object.Subresource, "/")]++
	a.seconds[e.Received.Unix()]++
	if refused {
		a.counted.Failed[e.Answer.Code]++
	}
	return nil
}

// take gives what was counted since it was asked last, and counts from nothing.
func (a *auditTail) take() (Requests, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	taken := a.counted
	for _, n := range a.seconds {
		taken.Peak = max(taken.Peak, n)
	}
	a.counted, a.seconds = Requests{Kinds: map[string]int{}, Failed: map[int]int{}}, map[int64]int{}
	return taken, a.err
}
