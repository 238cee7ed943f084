package document

import (
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// Limits of the text of an impact.
const (
	impactPods  = 5   // pods that are named
	ImpactLimit = 600 // bytes of a line
)

// An Impact describes what a change would do to the running pods of one node.
type Impact struct {
	Text  string
	Lost  int // pods that are lost for certain
	Known bool
}

// UnknownImpact returns the impact of a change for which no forecast is possible.
func UnknownImpact(why error) Impact {
	return Impact{Text: bounded.Text(bounded.Line("what would happen to running pods is not known: "+why.Error()), ImpactLimit)}
}

// Forecast makes a forecast for each possible configuration. If they differ, the text is that of the one with all
// changes.
func (e Expectation) Forecast(facts forecast.Facts) Impact {
	facts.Now = e.now
	var found Impact
	differ := e.untried || len(e.own) > 0
	for i, then := range e.then {
		facts.Then = then
		f := forecast.Of(facts)
		text := f.Sentence(impactPods)
		if len(f.Doubts) > 0 {
			text += "; not known: " + f.Doubts[0].String()
		}
		if i == 0 {
			found = Impact{Text: text, Lost: f.Harm(), Known: f.Sure()}
			continue
		}
		differ = differ || text != found.Text
		found.Lost, found.Known = min(found.Lost, f.Harm()), found.Known && f.Sure()
	}
	if e.untried || len(e.own) > 0 {
		found.Lost = 0
	}
	if differ {
		found.Known = false
		if len(e.keepers) > 0 {
			found.Text += "; unless a kubelet flag or a drop-in file of the node sets " + strings.Join(e.keepers, ", ")
		}
		if len(e.own) > 0 {
			found.Text += "; not counted, for the node alone knows its own file: " + strings.Join(e.own, ", ")
		}
	}
	return found
}
