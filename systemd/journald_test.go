package systemd

import (
	"io"
	"testing"
	"testing/synctest"

	"github.com/coreos/go-systemd/v22/journal"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// A journald that takes nothing holds nobody up; what it missed is counted.
func TestAJournaldThatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		released, said := make(chan struct{}), []string{}
		s := &journalSender{lines: make(chan journalLine, journalQueue), fallback: io.Discard}
		s.send = func(message string, _ journal.Priority, _ map[string]string) error {
			<-released
			said = append(said, message)
			return nil
		}
		over := make(chan struct{})
		go func() { defer close(over); s.run() }()
		logger := zap.New(&journalCore{LevelEnabler: zapcore.InfoLevel, text: zapcore.NewConsoleEncoder(zapcore.EncoderConfig{MessageKey: "msg"}), sender: s})
		logger.Info("first")
		synctest.Wait() // it is being sent
		for range journalQueue + 10 {
			logger.Info("more")
		}
		_ = logger.Sync() // does not wait for ever: the bubble's clock moves on only while all wait
		close(released)
		synctest.Wait()
		if len(said) != journalQueue+2 || said[1] != "10 lines of the log were lost: journald did not take them in time" {
			t.Errorf("%d lines, the second is %q", len(said), said[1])
		}
		close(s.lines)
		<-over
	})
}

func TestJournalNames(t *testing.T) {
	for key, want := range map[string]string{"messageID": "MESSAGE_ID", "configUID": "CONFIG_UID", "configSource": "CONFIG_SOURCE", "onTrial": "ON_TRIAL",
		"words": "WORDS", "error": "ERROR", "phase2Now": "PHASE2_NOW", "": ""} {
		if got := journalName(key); got != want {
			t.Errorf("%q becomes %q, want %q", key, got, want)
		}
	}
}
