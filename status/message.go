package status

import (
	"strings"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// maxMessage bounds the message of a condition or an event, in bytes. It is the API's own limit for the notes of events.
const maxMessage = 1024

const (
	separator = "; "
	ellipsis  = "…"
)

// Message joins parts, empty ones left out, into one line of printable UTF-8 of at most 1,024 bytes. Where that is too
// short the longest part loses its end, so that what runs, said first, and what to do, said last, stay.
func Message(parts ...string) string {
	var kept []string
	for _, part := range parts {
		if part = bounded.Line(part); part != "" {
			kept = append(kept, part)
		}
	}
	for excess := size(kept) - maxMessage; excess > 0; excess = size(kept) - maxMessage {
		longest := 0
		for i, part := range kept {
			if len(part) > len(kept[longest]) {
				longest = i
			}
		}
		if len(kept[longest]) <= 2*len(bounded.Ellipsis) { // a flood of tiny parts
			kept = kept[:len(kept)-1]
			continue
		}
		kept[longest] = bounded.Text(kept[longest], len(kept[longest])-excess)
	}
	return strings.Join(kept, separator)
}

func size(parts []string) int {
	n := max(0, len(parts)-1) * len(separator)
	for _, part := range parts {
		n += len(part)
	}
	return n
}
