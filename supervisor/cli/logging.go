//go:build linux

package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/coreos/go-systemd/v22/journal"
	"go.uber.org/zap"
	"go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/systemd"
)

// logFormats are the values of --log-format. The empty one is journald where that is, else text.
var logFormats = []string{"journald", "text", "json"}

func checkLogFormat(format string) error {
	if format != "" && !slices.Contains(logFormats, format) {
		return usage("--log-format=%q is not one of %s", format, strings.Join(logFormats, ", "))
	}
	return nil
}

// newLogger writes to journald where stderr is its stream, with fields of their own. Else it writes to stderr: as text, as JSON, or with
// the priorities in front that journald understands. end is for when nothing more is said.
func newLogger(format string) (logger *zap.Logger, end func()) {
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime, config.EncodeLevel = zapcore.ISO8601TimeEncoder, zapcore.LowercaseLevelEncoder
	config.EncodeDuration = zapcore.StringDurationEncoder
	var encode encodeLine
	write := writeTo(os.Stderr)
	switch {
	case format == "json":
		encode = encodeLines(zapcore.NewJSONEncoder(config))
	case (format == "journald" || format == "") && onJournal():
		config.TimeKey, config.LevelKey, config.ConsoleSeparator = "", "", " "
		encode, write = journalLines(plainEncoder{zapcore.NewConsoleEncoder(config)}), sendToJournal(journal.Send, os.Stderr)
	case format == "journald":
		config.TimeKey, config.EncodeLevel, config.ConsoleSeparator = "", encodePriority, " "
		encode = encodeLines(plainEncoder{zapcore.NewConsoleEncoder(config)})
	default:
		encode = encodeLines(plainEncoder{zapcore.NewConsoleEncoder(config)})
	}
	queue := newLogQueue(encode, write)
	go queue.run()
	return zap.New(&logCore{LevelEnabler: zapcore.InfoLevel, encode: encode, queue: queue}), queue.end
}

func encodeLines(encoder zapcore.Encoder) encodeLine {
	return func(e zapcore.Entry, fields []zapcore.Field) (logLine, error) {
		line, err := encoder.EncodeEntry(e, fields)
		if err != nil {
			return logLine{}, err
		}
		defer line.Free()
		return logLine{text: printableLine(line.String()), priority: systemd.PriorityOf(e.Level)}, nil
	}
}

// printableLine is a line of the log, or its JSON, of which what does not show is escaped: a message may quote anybody. What it says takes
// one line.
func printableLine(line string) string {
	words, end := strings.CutSuffix(line, "\n")
	if words = bounded.JSON(strings.ReplaceAll(strings.ToValidUTF8(words, "\uFFFD"), "\n", " ")); end {
		return words + "\n"
	}
	return words
}

func writeTo(to io.Writer) func(logLine) error {
	return func(line logLine) error {
		_, err := io.WriteString(to, line.text)
		return err
	}
}

// plainEncoder writes lines for people. What a line is about comes as one inline object; the message says that, so it is left out.
type plainEncoder struct{ zapcore.Encoder }

func (e plainEncoder) Clone() zapcore.Encoder { return plainEncoder{e.Encoder.Clone()} }

func (e plainEncoder) EncodeEntry(entry zapcore.Entry, fields []zapcore.Field) (*buffer.Buffer, error) {
	var shown []zapcore.Field
	for _, field := range fields {
		if field.Type != zapcore.InlineMarshalerType {
			shown = append(shown, field)
		}
	}
	return e.Encoder.EncodeEntry(entry, shown)
}

// encodePriority writes the level as the prefix that journald understands (sd-daemon(3)).
func encodePriority(level zapcore.Level, to zapcore.PrimitiveArrayEncoder) {
	to.AppendString(fmt.Sprintf("<%d>", systemd.PriorityOf(level)))
}
