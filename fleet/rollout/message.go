package rollout

import "github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"

const (
	messageLimit = 512 // bytes of what a status or an Event says
	nameLimit    = 64  // bytes of a version, an architecture or a reason, as a node says it
)

// message makes what is said printable and short, whatever text is in it (rule 28). It may be in a condition, a stop, a failure or an Event.
func message(text string) string { return bounded.Text(bounded.Line(text), messageLimit) }

// nodeWord is a word that a node says of itself, for the names of cohorts and for people.
func nodeWord(text string) string { return bounded.Text(bounded.Line(text), nameLimit) }
