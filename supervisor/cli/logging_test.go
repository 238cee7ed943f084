//go:build linux

package cli

import (
	"testing"

	"go.uber.org/zap/zapcore"
)

type said struct {
	zapcore.PrimitiveArrayEncoder
	words string
}

func (s *said) AppendString(words string) { s.words += words }

func TestPriorities(t *testing.T) {
	for level, want := range map[zapcore.Level]string{
		zapcore.DebugLevel: "<7>", zapcore.InfoLevel: "<6>", zapcore.WarnLevel: "<4>", zapcore.ErrorLevel: "<3>", zapcore.FatalLevel: "<3>",
	} {
		var got said
		if encodePriority(level, &got); got.words != want {
			t.Errorf("%s has %s, want %s", level, got.words, want)
		}
	}
}
