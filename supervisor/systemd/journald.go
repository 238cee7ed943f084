package systemd

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/coreos/go-systemd/v22/journal"
	"go.uber.org/zap/zapcore"
)

const ourIdentifier = "kubelet-supervisor"

// JournalFields are a line's, by names that journald takes: messageID becomes MESSAGE_ID.
func JournalFields(fields []zapcore.Field) map[string]string {
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
