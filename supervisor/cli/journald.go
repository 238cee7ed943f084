//go:build linux

package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/coreos/go-systemd/v22/journal"
	"go.uber.org/zap/zapcore"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/systemd"
)

// journalStreams is where journald takes a log stream. It is set when the tests' program is built.
var journalStreams = "/run/systemd/journal/stdout"

// onJournal reports whether our stderr is journald's.
func onJournal() bool {
	is, err := journal.StderrIsJournalStream()
	return err == nil && is
}

// journalLines are the messages alone, with fields of their own.
func journalLines(words zapcore.Encoder) encodeLine {
	encode := encodeLines(words)
	return func(e zapcore.Entry, fields []zapcore.Field) (logLine, error) {
		line, err := encode(e, fields)
		line.text, line.fields = strings.TrimSuffix(line.text, "\n"), systemd.JournalFields(fields)
		return line, err
	}
}

// sendToJournal falls back to the stream that stderr is, as journald's own library does with a line that is too long for the socket and
// for /dev/shm.
func sendToJournal(send func(string, journal.Priority, map[string]string) error, fallback io.Writer) func(logLine) error {
	return func(line logLine) error {
		if send(line.text, line.priority, line.fields) == nil {
			return nil
		}
		_, err := fmt.Fprintf(fallback, "<%d>%s\n", line.priority, line.text)
		return err
	}
}
