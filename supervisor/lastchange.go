package supervisor

import (
	"encoding/json"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/decide"
	"github.com/kubelet-supervisor/kubelet-supervisor/status"
)

// RecordedChange is a change in state.json. One of another form, of an earlier or a later program, is none: it is for people, and what else
// is in the file names a kubelet that has to be found.
type RecordedChange struct{ decide.LastChange }

// UnmarshalJSON never fails.
func (r *RecordedChange) UnmarshalJSON(data []byte) error {
	var c decide.LastChange
	if json.Unmarshal(data, &c) == nil {
		r.LastChange = c
	}
	return nil
}

// Shown is the change in the form of the Node's annotation.
func (r RecordedChange) Shown() status.LastChange { return shownChange(r.LastChange) }

// changeBefore is what the supervisor before has noted.
func (l *loop) changeBefore() decide.LastChange {
	before, _, err := ReadRecord(l.RunDir)
	if err != nil || before.LastChange == nil {
		return decide.LastChange{}
	}
	return before.LastChange.LastChange
}

func shownChange(c decide.LastChange) status.LastChange {
	shown := status.LastChange{From: sourceName(c.From), To: sourceName(c.To), Began: c.Began.UTC().Truncate(time.Millisecond), Outcome: c.Outcome,
		Resumed: c.Resumed, Phase: string(c.Phase)}
	if c.To != nil {
		shown.ResourceVersion = c.To.Source.ResourceVersion
	}
	if !c.Ended.IsZero() {
		shown.Ended = c.Ended.UTC().Truncate(time.Millisecond)
	}
	for _, part := range []struct {
		phase decide.Phase
		took  decide.Span
	}{
		{decide.PhaseDownload, c.Took.Download}, {decide.PhaseWait, c.Took.Wait}, {decide.PhasePreflight, c.Took.Preflight},
		{decide.PhaseStop, c.Took.Stop}, {decide.PhaseStart, c.Took.Start}, {decide.PhaseReport, c.Took.Report},
	} {
		if part.took > 0 {
			shown.Phases = append(shown.Phases, status.ChangePhase{Name: string(part.phase), Took: time.Duration(part.took).Round(time.Millisecond).String()})
		}
	}
	return shown
}

// reportChange has the Node say what became of the change. How long its phases took is no news by itself: else each report of a change would
// want another one, of how long that took.
func reportChange(report *status.Report, c decide.LastChange) {
	if c.Began.IsZero() {
		return
	}
	shown := shownChange(c)
	if shown.Phase == string(decide.PhaseReport) {
		shown.Phase, report.ChangeToReport = "", c.Began
	}
	report.LastChange = shown.Encode()
	shown.Phases, shown.Phase = nil, ""
	report.LastChangeGist = shown.Encode()
}
