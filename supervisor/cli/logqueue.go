//go:build linux

package cli

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/journal"
	"go.uber.org/zap/zapcore"
)

const (
	logQueueLength = 512         // lines that may wait for an output that takes none
	logPatience    = time.Second // for them, at the end
)

// logLine is a line as it is written.
type logLine struct {
	text     string
	priority journal.Priority
	fields   map[string]string // for journald
	written  chan struct{}     // not nil: to be closed, instead of a line
}

// logCore is the program's log. What is said is encoded at once and written by the queue's goroutine, so that an output that takes nothing
// holds up neither the loop nor the kubelet.
type logCore struct {
	zapcore.LevelEnabler
	fields []zapcore.Field
	encode encodeLine
	queue  *logQueue
}

type encodeLine func(zapcore.Entry, []zapcore.Field) (logLine, error)

func (c *logCore) With(fields []zapcore.Field) zapcore.Core {
	with := *c
	with.fields = c.and(fields)
	return &with
}

func (c *logCore) and(fields []zapcore.Field) []zapcore.Field {
	return append(append([]zapcore.Field(nil), c.fields...), fields...)
}

func (c *logCore) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

func (c *logCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	line, err := c.encode(e, c.and(fields))
	if err != nil {
		return fmt.Errorf("encoding a line of the log: %w", err)
	}
	c.queue.add(line)
	return nil
}

func (c *logCore) Sync() error {
	c.queue.flush()
	return nil
}

// logQueue writes lines, one after the other. What does not fit, and what cannot be written, is counted, and that is said when the output
// takes lines again.
type logQueue struct {
	lines chan logLine
	lost  atomic.Int64
	write func(logLine) error
	count func(lost int64) (logLine, error) // the words for it
	over  chan struct{}                     // closed when nothing more is said
	ended chan struct{}                     // closed by run
}

func newLogQueue(encode encodeLine, write func(logLine) error) *logQueue {
	return &logQueue{lines: make(chan logLine, logQueueLength), write: write, over: make(chan struct{}), ended: make(chan struct{}),
		count: func(lost int64) (logLine, error) {
			words := fmt.Sprintf("%d lines of the log were lost: they were not read in time", lost)
			return encode(zapcore.Entry{Level: zapcore.WarnLevel, Time: time.Now(), Message: words}, nil)
		}}
}

// run writes until end is called, and what waits then.
func (q *logQueue) run() {
	defer close(q.ended)
	for {
		select {
		case line := <-q.lines:
			q.take(line)
		case <-q.over:
			for len(q.lines) > 0 {
				q.take(<-q.lines)
			}
			return
		}
	}
}

func (q *logQueue) take(line logLine) {
	if line.written != nil {
		close(line.written)
		return
	}
	if err := q.write(line); err != nil {
		q.lost.Add(1)
		return
	}
	lost := q.lost.Swap(0)
	if lost == 0 {
		return
	}
	if words, err := q.count(lost); err != nil || q.write(words) != nil {
		q.lost.Add(lost)
	}
}

func (q *logQueue) add(line logLine) {
	select {
	case q.lines <- line:
	default:
		q.lost.Add(1)
	}
}

// flush waits until what was said is written, but not for long.
func (q *logQueue) flush() {
	patience := time.NewTimer(logPatience)
	defer patience.Stop()
	written := make(chan struct{})
	select {
	case q.lines <- logLine{written: written}:
	case <-patience.C:
		return
	}
	select {
	case <-written:
	case <-patience.C:
	}
}

// end waits until all is written, but not for long: a goroutine that hangs in an output ends with the program.
func (q *logQueue) end() {
	close(q.over)
	select {
	case <-q.ended:
	case <-time.After(logPatience):
	}
}
