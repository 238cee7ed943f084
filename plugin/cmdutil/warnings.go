package cmdutil

import (
	"context"
	"sync"
)

const (
	// warningForPeople is the code of a warning for the user (RFC 7234, 299 "miscellaneous persistent warning").
	warningForPeople = 299
	// MaxWarnings limits the different warnings that a command prints.
	MaxWarnings = 20
)

// Warnings prints the API server's warnings, each text once. An admission policy, a webhook or an aggregated API
// server chooses the text, so it is printed as a note; client-go would log it.
type Warnings struct {
	Note func(format string, values ...any)

	mutex sync.Mutex
	said  map[string]bool
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext; client-go calls it for each Warning
// header.
func (w *Warnings) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if code != warningForPeople || text == "" || w.said[text] || len(w.said) > MaxWarnings {
		return
	}
	if w.said == nil {
		w.said = map[string]bool{}
	}
	w.said[text] = true
	if len(w.said) > MaxWarnings {
		w.Note("Warning: the API server has more warnings, which are not shown")
		return
	}
	w.Note("Warning: %s", text)
}
