package main

import (
	"fmt"
	"os"

	"github.com/coreos/go-systemd/v22/journal"
	"go.uber.org/zap"
	"go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"

	"github.com/kubelet-supervisor/kubelet-supervisor/systemd"
)

// journalStreams is where journald takes a log stream. It is set when the tests' program is built.
var journalStreams = "/run/systemd/journal/stdout"

// plainEncoder writes lines for people. What a line is about comes as one inline object; its words say that, so it is left out.
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

// onJournal tells whether our stderr is journald's.
func onJournal() bool {
	is, err := journal.StderrIsJournalStream()
	return err == nil && is
}

// newLogger writes to journald where stderr is its stream, with fields of their own. Else it writes to stderr: as text, as JSON, or with
// the priorities in front that journald understands.
func newLogger(format string) (*zap.Logger, error) {
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime, config.EncodeLevel = zapcore.ISO8601TimeEncoder, zapcore.LowercaseLevelEncoder
	config.EncodeDuration = zapcore.StringDurationEncoder
	toStderr := func(encoder zapcore.Encoder) zapcore.Core {
		return zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), zapcore.InfoLevel)
	}
	switch {
	case format == "json":
		return zap.New(toStderr(zapcore.NewJSONEncoder(config))), nil
	case (format == "journald" || format == "") && onJournal():
		config.TimeKey, config.LevelKey, config.ConsoleSeparator = "", "", " "
		return zap.New(systemd.NewJournalCore(zapcore.InfoLevel, plainEncoder{zapcore.NewConsoleEncoder(config)})), nil
	case format == "journald":
		config.TimeKey, config.EncodeLevel, config.ConsoleSeparator = "", encodePriority, " "
		return zap.New(toStderr(plainEncoder{zapcore.NewConsoleEncoder(config)})), nil
	case format == "text" || format == "":
		return zap.New(toStderr(plainEncoder{zapcore.NewConsoleEncoder(config)})), nil
	}
	return nil, usage("--log-format=%q is none of journald, text, json", format)
}

// encodePriority writes the level as the prefix that journald understands (sd-daemon(3)).
func encodePriority(level zapcore.Level, to zapcore.PrimitiveArrayEncoder) {
	to.AppendString(fmt.Sprintf("<%d>", systemd.PriorityOf(level)))
}
