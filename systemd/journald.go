package systemd

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/coreos/go-systemd/v22/journal"
	"go.uber.org/zap/zapcore"
)

const (
	journalQueue    = 512         // lines that may wait for a journald that takes none
	journalPatience = time.Second // for them, at the end
	ourIdentifier   = "kubelet-supervisor"
)

// journalCore writes lines with fields of their own to journald. A goroutine sends them, so that a journald that takes none holds
// nothing up; what does not fit meanwhile is counted, and that is said later.
type journalCore struct {
	zapcore.LevelEnabler
	text   zapcore.Encoder // of MESSAGE
	fields []zapcore.Field
	sender *journalSender
}

// NewJournalCore begins to send. The encoder gives the words of a line.
func NewJournalCore(level zapcore.LevelEnabler, words zapcore.Encoder) zapcore.Core {
	return &journalCore{LevelEnabler: level, text: words, sender: newJournalSender()}
}

func (c *journalCore) With(fields []zapcore.Field) zapcore.Core {
	with := *c
	with.fields = append(append([]zapcore.Field(nil), c.fields...), fields...)
	return &with
}

func (c *journalCore) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

func (c *journalCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	all := append(append([]zapcore.Field(nil), c.fields...), fields...)
	message, err := c.text.EncodeEntry(e, all)
	if err != nil {
		return fmt.Errorf("encoding a line of the log: %w", err)
	}
	defer message.Free()
	c.sender.queue(journalLine{message: strings.TrimSuffix(message.String(), "\n"), priority: PriorityOf(e.Level), fields: journalFields(all)})
	return nil
}

func (c *journalCore) Sync() error {
	c.sender.flush()
	return nil
}

// journalFields are the line's, by names that journald takes: messageID becomes MESSAGE_ID.
func journalFields(fields []zapcore.Field) map[string]string {
	encoder := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(encoder)
	}
	named := map[string]string{"SYSLOG_IDENTIFIER": ourIdentifier}
	for key, value := range encoder.Fields {
		named[journalName(key)] = fmt.Sprint(value)
	}
	return named
}

func journalName(key string) string {
	var name strings.Builder
	lower := false
	for _, r := range key {
		if lower && unicode.IsUpper(r) {
			name.WriteByte('_')
		}
		lower = unicode.IsLower(r) || unicode.IsDigit(r)
		name.WriteRune(unicode.ToUpper(r))
	}
	return name.String()
}

type journalLine struct {
	message  string
	priority journal.Priority
	fields   map[string]string
	flushed  chan struct{} // not nil: to be closed, instead of a line
}

// journalSender sends lines, one after the other, as long as the program runs.
type journalSender struct {
	lines    chan journalLine
	lost     atomic.Int64
	send     func(message string, priority journal.Priority, fields map[string]string) error
	fallback io.Writer
}

// newJournalSender begins to send.
func newJournalSender() *journalSender {
	s := &journalSender{lines: make(chan journalLine, journalQueue), send: journal.Send, fallback: os.Stderr}
	go s.run()
	return s
}

func (s *journalSender) run() {
	for line := range s.lines {
		if line.flushed != nil {
			close(line.flushed)
			continue
		}
		s.write(line)
		if lost := s.lost.Swap(0); lost > 0 {
			words := fmt.Sprintf("%d lines of the log were lost: journald did not take them in time", lost)
			s.write(journalLine{message: words, priority: journal.PriWarning, fields: map[string]string{"SYSLOG_IDENTIFIER": ourIdentifier}})
		}
	}
}

// write falls back to the stream that stderr is, as it does with a line that is too long for the socket and for /dev/shm.
func (s *journalSender) write(line journalLine) {
	if err := s.send(line.message, line.priority, line.fields); err != nil {
		_, _ = fmt.Fprintf(s.fallback, "<%s>%s\n", strconv.Itoa(int(line.priority)), line.message)
	}
}

func (s *journalSender) queue(line journalLine) {
	select {
	case s.lines <- line:
	default:
		s.lost.Add(1)
	}
}

// flush waits until what was said is sent, but not for long.
func (s *journalSender) flush() {
	patience := time.NewTimer(journalPatience)
	defer patience.Stop()
	flushed := make(chan struct{})
	select {
	case s.lines <- journalLine{flushed: flushed}:
	case <-patience.C:
		return
	}
	select {
	case <-flushed:
	case <-patience.C:
	}
}

// PriorityOf is the level as journald knows it.
func PriorityOf(level zapcore.Level) journal.Priority {
	switch {
	case level >= zapcore.ErrorLevel:
		return journal.PriErr
	case level == zapcore.WarnLevel:
		return journal.PriWarning
	case level <= zapcore.DebugLevel:
		return journal.PriDebug
	}
	return journal.PriInfo
}
