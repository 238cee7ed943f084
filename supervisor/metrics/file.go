//go:build linux

package metrics

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"
)

const (
	// rewriteEvery is how old the file gets: its time reports whether the supervisor is alive.
	rewriteEvery = time.Minute
	// settle is the least between two writes: of the steps of one change the last is what matters.
	settle = time.Second
)

// Keep writes the file at each change and every minute, until ctx ends. An error of writing is logged once, and it tries again.
func (m *Metrics) Keep(ctx context.Context, path string, logger *zap.Logger) {
	said := ""
	for {
		words := ""
		if err := replace(path, m.Text()); err != nil {
			words = err.Error()
		}
		if words != "" && words != said {
			logger.Warn("the metrics cannot be written; the kubelet runs on", zap.String("error", words))
		}
		said = words
		if !wait(ctx, settle, nil) || !wait(ctx, rewriteEvery-settle, m.changed) {
			return
		}
	}
}

// wait is true unless ctx has ended.
func wait(ctx context.Context, long time.Duration, sooner <-chan struct{}) bool {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-sooner:
	case <-ctx.Done():
		return false
	}
	return true
}

// replace renames a new file into place: who reads the folder sees the old one or the new one. It is for everybody to
// read, as node_exporter may be any user. It is not synced, because it is of no use after a power cut.
func replace(path string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".") // does not end as the collector looks for it
	if err != nil {
		return fmt.Errorf("writing metrics: %w", err)
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Chmod(0o644)
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return fmt.Errorf("writing metrics %s: %w", path, err)
	}
	return nil
}
