package controller

import (
	"context"

	"github.com/go-logr/logr"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// maxWarning is how much of a warning is logged, in bytes.
const maxWarning = 1024

// warnings logs the warnings of the API server. An admission policy or a webhook may choose the text.
type warnings struct{ log logr.Logger }

// HandleWarningHeaderWithContext is called with each Warning header of an answer.
func (w warnings) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	if code == 299 && text != "" { // 299 is for the user
		w.log.Info("the API server warns", "warning", bounded.Text(bounded.Line(text), maxWarning))
	}
}
