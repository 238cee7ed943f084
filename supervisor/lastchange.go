//go:build linux

package supervisor

import (
	"encoding/json"

	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// RecordedChange is a change in state.json. One of another form, of an earlier or a later program, is none: it is for people, and what else
// is in the file names a kubelet that has to be found.
type RecordedChange struct{ core.LastChange }

// UnmarshalJSON never fails.
func (r *RecordedChange) UnmarshalJSON(data []byte) error {
	var c core.LastChange
	if json.Unmarshal(data, &c) == nil {
		r.LastChange = c
	}
	return nil
}
