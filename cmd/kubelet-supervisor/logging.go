package main

import (
	"fmt"
	"os"

	"github.com/coreos/go-systemd/v22/journal"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

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
		return zap.New(&journalCore{LevelEnabler: zapcore.InfoLevel, text: zapcore.NewConsoleEncoder(config), sender: newJournalSender()}), nil
	case format == "journald":
		config.TimeKey, config.EncodeLevel, config.ConsoleSeparator = "", encodePriority, " "
		return zap.New(plainCore{toStderr(zapcore.NewConsoleEncoder(config))}), nil
	case format == "text" || format == "":
		return zap.New(plainCore{toStderr(zapcore.NewConsoleEncoder(config))}), nil
	}
	return nil, usage("--log-format=%q is none of journald, text, json", format)
}

// encodePriority writes the level as the prefix that journald understands (sd-daemon(3)).
func encodePriority(level zapcore.Level, to zapcore.PrimitiveArrayEncoder) {
	to.AppendString(fmt.Sprintf("<%d>", priorityOf(level)))
}
