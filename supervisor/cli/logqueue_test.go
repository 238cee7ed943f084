//go:build linux

package cli

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// queued is a log that is written by write, without times.
func queued(write func(text string) error) (logger *zap.Logger, end func()) {
	encode := encodeLines(zapcore.NewConsoleEncoder(zapcore.EncoderConfig{MessageKey: "msg", LevelKey: "level", EncodeLevel: zapcore.LowercaseLevelEncoder}))
	q := newLogQueue(encode, func(line logLine) error { return write(line.text) })
	go q.run()
	return zap.New(&logCore{LevelEnabler: zapcore.InfoLevel, encode: encode, queue: q}), q.end
}

// An output that takes nothing holds nobody up; what was lost is counted, and said when it takes lines again.
func TestAnOutputThatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		released, said := make(chan struct{}), []string{}
		logger, end := queued(func(text string) error {
			<-released
			said = append(said, text)
			return nil
		})
		logger.Info("first")
		synctest.Wait() // it is being written
		for range logQueueLength + 10 {
			logger.Info("more")
		}
		_ = logger.Sync() // does not wait for ever: the bubble's clock moves on only while all wait
		close(released)
		synctest.Wait()
		if len(said) != logQueueLength+2 || said[1] != "warn\t10 lines of the log were lost: they were not read in time\n" {
			t.Errorf("%d lines, the second is %q", len(said), said[1])
		}
		end()
	})
}

// Lines that cannot be written are counted, too, and one is said of them all.
func TestAnOutputThatFails(t *testing.T) {
	var said []string
	broken := errors.New("broken pipe")
	logger, end := queued(func(text string) error {
		said = append(said, text)
		return broken
	})
	logger.Info("first")
	logger.Info("second")
	_ = logger.Sync()
	broken = nil
	logger.Info("third")
	end()
	want := []string{"info\tfirst\n", "info\tsecond\n", "info\tthird\n", "warn\t2 lines of the log were lost: they were not read in time\n"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The end of the program waits for what was said, and not for ever.
func TestTheEndOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		released, said := make(chan struct{}), 0
		logger, end := queued(func(string) error {
			<-released
			said++
			return nil
		})
		for range 3 {
			logger.Info("more")
		}
		end()
		if said != 0 {
			t.Errorf("%d lines were written", said)
		}
		close(released)
		synctest.Wait()
		if said != 3 {
			t.Errorf("%d lines were written", said)
		}
	})
}
