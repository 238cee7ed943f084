package supervisor

import (
	"context"
	"maps"
	"time"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
	"github.com/kubelet-supervisor/kubelet-supervisor/systemd"
)

const (
	unitEvery   = time.Minute      // between two looks at the unit's files
	unitPatient = 30 * time.Second // for systemd's answer which they are
)

// watchUnit tells the loop what the files of the unit are that started us, at first and whenever they have changed, until ctx ends. systemd is
// asked once which they are. Where it gives no answer, nothing is said of them.
func (l *loop) watchUnit(ctx context.Context) {
	if l.UnitFiles == nil {
		return
	}
	asking, cancel := context.WithTimeout(ctx, unitPatient)
	patterns, err := l.UnitFiles(asking)
	cancel()
	if err != nil {
		l.Logger.Debug("the files of the unit are not watched", zap.Error(err))
		return
	}
	var told map[string]string
	for ctx.Err() == nil {
		if now, err := systemd.Digests(patterns); err != nil {
			l.Logger.Debug("what the files of the unit are is not known", zap.Error(err))
		} else if told == nil || !maps.Equal(now, told) {
			told = now
			l.send(ctx, decide.UnitSeen{Files: now})
		}
		select {
		case <-time.After(unitEvery):
		case <-ctx.Done():
		}
	}
}
