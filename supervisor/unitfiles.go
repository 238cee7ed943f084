//go:build linux

package supervisor

import (
	"context"
	"maps"
	"time"

	"go.uber.org/zap"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/systemd"
)

const (
	unitEvery   = time.Minute      // between two looks at the unit's files
	unitPatient = 30 * time.Second // for systemd's answer which they are
	startEvery  = 10 * time.Minute // between two starts that systemd is asked for while it refuses them, or does not answer
	startsFor   = 2 * time.Minute  // for its answer
)

// watchUnit tells the loop what the files of the unit are that started us, at first and whenever they or the program have changed, until
// ctx ends. systemd is asked once which they are, and after each change whether it could start us with them. An answer that does not come
// changes nothing.
func (w *watches) watchUnit(ctx context.Context, before core.Unit) {
	if w.UnitFiles == nil {
		return
	}
	asking, cancel := context.WithTimeout(ctx, unitPatient)
	patterns, err := w.UnitFiles(asking)
	cancel()
	if err != nil {
		w.Logger.Debug("the files of the unit are not watched", zap.Error(err))
		return
	}
	told := unitSeen{files: before.Now, refuse: before.Refuse} // of the program before this one: nothing where systemd has started us
	asks := false                                              // systemd has just started us with them
	for ctx.Err() == nil {
		now := unitSeen{program: w.ownProgram(), refuse: told.refuse, asked: told.asked, unanswered: told.unanswered}
		now.files, err = systemd.Digests(patterns)
		isNew := now.program != told.program || !maps.Equal(now.files, told.files)
		switch {
		case err != nil:
			w.Logger.Debug("what the files of the unit are is not known", zap.Error(err))
		case isNew || told.isDue():
			if isNew {
				w.send(ctx, core.UnitSeen{Files: now.files, Refuse: now.refuse})
			}
			if asks {
				w.askStart(ctx, &now)
			} else if w.Handover != nil { // it has started another program: an upgrade has enough to do, so it is asked later
				now.asked, now.unanswered = time.Now(), true
			}
			told, asks = now, true
		}
		select {
		case <-time.After(unitEvery):
		case <-ctx.Done():
		}
	}
}

// unitSeen is what systemd would start, and what it says of that.
type unitSeen struct {
	files      map[string]string
	program    fileIdentity // zero: there is none
	refuse     string
	asked      time.Time
	unanswered bool
}

// isDue reports whether it is time to ask again.
func (u unitSeen) isDue() bool {
	return (u.refuse != "" || u.unanswered) && time.Since(u.asked) >= startEvery
}

// ownProgram is what the unit's next start would execute.
func (w *watches) ownProgram() fileIdentity {
	if w.Successor == nil {
		return fileIdentity{}
	}
	identity, err := identityOf(w.Successor.Path)
	if err != nil {
		return fileIdentity{}
	}
	return identity
}

// askStart asks what systemd has against a start of us, and tells the loop where that is something else than before.
func (w *watches) askStart(ctx context.Context, u *unitSeen) {
	if w.AskStart == nil {
		return
	}
	asking, cancel := context.WithTimeout(ctx, startsFor)
	defer cancel()
	refuse, err := w.AskStart(asking)
	u.asked, u.unanswered = time.Now(), err != nil
	if err != nil {
		w.Logger.Debug("whether systemd could start the supervisor again is not known", zap.Error(err))
		return
	}
	if refuse = bounded.Line(refuse); refuse == u.refuse {
		return
	}
	u.refuse = refuse
	w.Logger.Info("systemd was asked to start the supervisor once more", zap.String("refuses", refuse))
	w.send(ctx, core.UnitSeen{Files: u.files, Refuse: refuse})
}
