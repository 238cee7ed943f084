package main

import (
	"os"

	"github.com/coreos/go-systemd/v22/journal"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger writes to stderr: for journald with a priority in front of each line and no time of our own, else as text or JSON.
func newLogger(format string) (*zap.Logger, error) {
	if format == "" {
		format = "text"
		if toJournal, err := journal.StderrIsJournalStream(); err == nil && toJournal {
			format = "journald"
		}
	}
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime, config.EncodeLevel = zapcore.ISO8601TimeEncoder, zapcore.LowercaseLevelEncoder
	config.EncodeDuration = zapcore.StringDurationEncoder
	var encoder zapcore.Encoder
	switch format {
	case "json":
		encoder = zapcore.NewJSONEncoder(config)
	case "text":
		encoder = zapcore.NewConsoleEncoder(config)
	case "journald":
		config.TimeKey, config.EncodeLevel = "", encodePriority
		config.ConsoleSeparator = " "
		encoder = zapcore.NewConsoleEncoder(config)
	default:
		return nil, usage("--log-format=%q is none of journald, text, json", format)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), zapcore.InfoLevel)), nil
}

// encodePriority writes the level as the prefix that journald understands (sd-daemon(3)).
func encodePriority(level zapcore.Level, to zapcore.PrimitiveArrayEncoder) {
	prefix := "<6>"
	switch {
	case level >= zapcore.ErrorLevel:
		prefix = "<3>"
	case level == zapcore.WarnLevel:
		prefix = "<4>"
	case level <= zapcore.DebugLevel:
		prefix = "<7>"
	}
	to.AppendString(prefix)
}
