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
	startEvery  = 10 * time.Minute // between two starts that systemd is asked for while it refuses them
	startsFor   = 2 * time.Minute  // for its answer
)

// watchUnit tells the loop what the files of the unit are that started us, at first and whenever they or the program have changed, until ctx ends.
// systemd is asked once which they are, and after each change whether it could start us with them. Where it gives no answer, nothing is said.
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
	var told, now unitSeen
	for ctx.Err() == nil {
		if now.files, err = systemd.Digests(patterns); err != nil {
			l.Logger.Debug("what the files of the unit are is not known", zap.Error(err))
		} else if now.program = l.ownProgram(); told.isOld(now) {
			now.refuse, now.asked = told.refuse, time.Now()
			if told.files != nil { // else systemd has just started us with them, or a reload has asked
				now.refuse = l.askStart(ctx, told.refuse)
			}
			told = now
			l.send(ctx, decide.UnitSeen{Files: told.files, Refuse: told.refuse})
		}
		select {
		case <-time.After(unitEvery):
		case <-ctx.Done():
		}
	}
}

// unitSeen is what systemd would start, and what it says of that.
type unitSeen struct {
	files   map[string]string
	program fileIdentity // zero: there is none
	refuse  string
	asked   time.Time
}

// isOld: it is another unit or program now, or it is time to ask again.
func (u unitSeen) isOld(now unitSeen) bool {
	return u.files == nil || !maps.Equal(u.files, now.files) || u.program != now.program || u.refuse != "" && time.Since(u.asked) >= startEvery
}

// ownProgram is what the unit's next start would execute.
func (l *loop) ownProgram() fileIdentity {
	if l.Successor == nil {
		return fileIdentity{}
	}
	identity, err := identityOf(l.Successor.Path)
	if err != nil {
		return fileIdentity{}
	}
	return identity
}

// askStart gives what systemd has against a start of us, and what it had before where it cannot be asked.
func (l *loop) askStart(ctx context.Context, before string) string {
	if l.AskStart == nil {
		return before
	}
	ctx, cancel := context.WithTimeout(ctx, startsFor)
	defer cancel()
	refuse, err := l.AskStart(ctx)
	if err != nil {
		l.Logger.Debug("whether systemd could start the supervisor again is not known", zap.Error(err))
		return before
	}
	if refuse != before {
		l.Logger.Warn("systemd was asked to start the supervisor once more, because its program or its unit has changed", zap.String("refuses", refuse))
	}
	return refuse
}
