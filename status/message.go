package status

import "github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"

// MaxMessage bounds the message of a condition or an event, in bytes. It is the API's own limit for the notes of events.
const MaxMessage = 1024

// Message joins the parts of a message into one line of at most [MaxMessage] bytes; [bounded.Parts] says what is cut
// where that is too short.
func Message(parts ...string) string { return bounded.Parts(MaxMessage, parts...) }
