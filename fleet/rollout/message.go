package rollout

import "github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"

const (
	messageLimit = 512 // bytes of the text of a status or an Event
	nameLimit    = 64  // bytes of a version, an architecture or a reason reported by a node
)

// message returns a text from any source printable and short (rule 28), for a condition, a stop, a failure or an
// Event.
func message(text string) string { return bounded.Text(bounded.Line(text), messageLimit) }

// nodeWord returns a name reported by a node in a printable form, for the names of cohorts and for people.
func nodeWord(text string) string { return bounded.Text(bounded.Line(text), nameLimit) }
