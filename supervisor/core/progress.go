package core

import "time"

// Progress is how far the newest change is, and what was said of it.
type Progress struct {
	LastChange LastChange
	PhaseSince time.Duration // when its phase began
	Unsettled  time.Duration // since when a change is in flight; negative = none
	Said       Said
	ended      []EndedPhase // by the decision under way
}

// Said is the newest reason that was to be published, and since when it is that. Nothing is decided by it.
type Said struct {
	Reason string
	Since  time.Time
}

// beginChange notes that something else is to run. Where that is what is being changed to already, the change goes on.
func (g *Progress) beginChange(wall time.Time, from, to *Version, download, waited time.Duration) {
	if g.LastChange.IsOpen() && sameGoal(g.LastChange.To, to) {
		return
	}
	g.LastChange = LastChange{From: from, To: to, Began: wall.Add(-download - waited),
		Took: Phases{Download: Span(download), Wait: Span(waited)}}
	if download > 0 {
		g.ended = append(g.ended, EndedPhase{PhaseDownload, download, to})
	}
}

func (g *Progress) endChange(now time.Duration, wall time.Time, settings Settings, outcome string) {
	if settings.Standalone {
		g.enter(now, "") // there is no Node to say it
	} else {
		g.enter(now, PhaseReport)
	}
	g.LastChange.Ended, g.LastChange.Outcome = wall, outcome
}

// enter ends the present phase where the next one differs.
func (g *Progress) enter(now time.Duration, next Phase) {
	c := &g.LastChange
	if c.Phase == next {
		return
	}
	if took := now - g.PhaseSince; c.Phase != "" {
		c.Took.add(c.Phase, took)
		g.ended = append(g.ended, EndedPhase{c.Phase, took, c.To})
	}
	c.Phase, g.PhaseSince = next, now
}

// learnReported records that the Node shows the outcome of the change that began at that time.
func (g *Progress) learnReported(now time.Duration, e Reported) {
	if g.LastChange.Phase == PhaseReport && g.LastChange.Began.Equal(e.Began) {
		g.enter(now, "")
	}
}
