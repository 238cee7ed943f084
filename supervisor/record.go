//go:build linux

package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/kubelet"
)

// Record is RUN_DIR/state.json: what a running supervisor tells the node's own commands, and the next supervisor, of itself. It is
// written after every step and is never a source of truth about the configuration.
type Record struct {
	APIVersion string          `json:"apiVersion"`
	Supervisor kubelet.Process `json:"supervisor"`
	BootID     string          `json:"bootID"`
	Version    string          `json:"version,omitempty"` // of the supervisor's program
	Generation int             `json:"generation"`        // of the retries that were heard
	Reloads    int             `json:"reloads,omitempty"` // that were answered
	// ReloadFailure is why the newest reload was refused; empty when it was not.
	ReloadFailure string           `json:"reloadFailure,omitempty"`
	Phase         string           `json:"phase"`
	Alone         string           `json:"alone,omitempty"` // why the kubelet runs without a supervisor; its pid is the supervisor's
	Child         *kubelet.Process `json:"child,omitempty"`
	Runs          *core.Version    `json:"runs,omitempty"` // what the child was started with; absent = local
	Healthy       bool             `json:"healthy"`
	Written       time.Time        `json:"written"`

	Assignment    string                  `json:"assignment,omitempty"`
	Config        corev1.NodeConfigStatus `json:"config"`
	Status        RecordedStatus          `json:"status,omitzero"`
	Condition     RecordedCondition       `json:"condition"`
	Trial         *RecordedTrial          `json:"trial,omitempty"`
	Rejected      []core.Rejection        `json:"rejected,omitempty"`
	Exits         []RecordedExit          `json:"exits,omitempty"` // the newest last
	LocalPending  bool                    `json:"localChangePending,omitempty"`
	StateProblems string                  `json:"stateProblems,omitempty"`
	LastChange    *RecordedChange         `json:"lastChange,omitempty"`
}

// RecordedStatus is what the Node says to programs, as it should be. One of another form is none, as with [RecordedChange].
type RecordedStatus struct{ nodev1.Status }

// UnmarshalJSON never fails.
func (r *RecordedStatus) UnmarshalJSON(data []byte) error {
	var s nodev1.Status
	if json.Unmarshal(data, &s) == nil {
		r.Status = s
	}
	return nil
}

// RecordedCondition is the Node condition as it should be.
type RecordedCondition struct {
	Status  corev1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message"`
}

// RecordedTrial is how far a trial is.
type RecordedTrial struct {
	Of       core.Version `json:"of"`
	Failures int          `json:"failures"`
	Healthy  core.Span    `json:"healthy"`
	Left     core.Span    `json:"left"`
}

// RecordedExit is one end of the kubelet.
type RecordedExit struct {
	Time  time.Time `json:"time"`
	Ran   string    `json:"ran"`
	Asked bool      `json:"asked"`
	Words string    `json:"words"`
}

const (
	recordVersion = "kubelet-supervisor.io/v1"
	recordedExits = 10
	recordLimit   = 1 << 20 // bytes
)

// record keeps the file up to date, and what of it the state does not hold.
type record struct {
	path    string
	written []byte
	Record
}

func newRecord(runDir string) *record {
	r := &record{path: filepath.Join(runDir, recordFile)}
	r.APIVersion = recordVersion
	r.BootID = kubelet.BootID()
	r.Supervisor = kubelet.ProcessOf(os.Getpid())
	return r
}

// started notes the child. It is written before the loop hears of it: a supervisor that dies now leaves a kubelet that is found.
func (r *record) started(child kubelet.Process) {
	r.Child, r.Healthy = &child, false
	_ = r.write()
}

// ended notes the end of the child.
func (r *record) ended(s *core.State, exited core.ChildExited) {
	r.Child = nil
	r.Exits = append(r.Exits, RecordedExit{Time: s.Wall, Ran: core.Describe(s.Child.Version), Asked: exited.Asked, Words: exited.Words})
	r.Exits = r.Exits[max(0, len(r.Exits)-recordedExits):]
}

// recorder keeps the record up to date with what is decided.
type recorder struct {
	*record
	inputs *inputs
}

func (r recorder) observe(_ context.Context, d *decision) {
	if exited, is := d.event.(core.ChildExited); is {
		r.ended(&d.after, exited)
	}
	s := &d.after
	r.Phase, r.Runs, r.Healthy = s.Phase(), s.Child.Version, s.Child.Alive && s.Child.Healthy
	r.Assignment, r.Rejected = s.Text, s.Rejected
	r.LocalPending, r.StateProblems = s.LocalChangePending(), s.Warning
	r.Trial, r.LastChange = nil, nil
	if !s.LastChange.Began.IsZero() {
		r.LastChange = &RecordedChange{s.LastChange}
	}
	if s.OnTrial() {
		r.Trial = &RecordedTrial{Of: *s.Child.Version, Healthy: s.Trial.Healthy, Left: max(0, core.Span(s.TrialPeriod)-s.Trial.Healthy),
			Failures: int(s.Trial.Tries) - 1}
	}
	r.Condition = RecordedCondition{Status: d.shown.Status, Reason: d.shown.Reason, Message: d.shown.Message}
	r.Config, r.Status = d.shown.Config, RecordedStatus{d.shown.Details}
	r.save()
}

// save writes what the record says now. A run folder that cannot be written is no reason to do anything else.
func (r recorder) save() {
	err := r.write()
	if errors.Is(err, os.ErrNotExist) { // the folder was removed
		r.inputs.makeRunDir()
		err = r.write()
	}
	if err != nil {
		r.inputs.Logger.Debug(err.Error())
	}
}

func (r *record) write() error {
	r.Written = time.Time{}
	data, err := encodeRecord(r.Record)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", r.path, err)
	}
	if bytes.Equal(data, r.written) {
		return nil
	}
	unstamped := data
	r.Written = time.Now().UTC()
	if data, err = encodeRecord(r.Record); err != nil {
		return fmt.Errorf("encoding %s: %w", r.path, err)
	}
	if err := replaceRunFile(r.path, data); err != nil {
		return err
	}
	r.written = unstamped
	return nil
}

func encodeRecord(r Record) ([]byte, error) {
	data, err := json.MarshalIndent(r, "", "  ")
	return append(data, '\n'), err
}

// ReadRecord reads RUN_DIR/state.json, from any process. running reports whether the supervisor that wrote it is still there. The error
// wraps fs.ErrNotExist where no supervisor has run with this folder since the boot.
func ReadRecord(runDir string) (r Record, running bool, err error) {
	path := filepath.Join(runDir, recordFile)
	data, err := readRunFile(path)
	if err != nil {
		return Record{}, false, fmt.Errorf("reading %s: %w", path, err)
	}
	if r, err = decodeRecord(data); err != nil {
		return Record{}, false, fmt.Errorf("reading %s: %w", path, err)
	}
	return r, r.BootID == kubelet.BootID() && r.Supervisor.Alive(), nil
}

func decodeRecord(data []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, fmt.Errorf("decoding: %w", err)
	}
	if r.APIVersion != recordVersion {
		return Record{}, fmt.Errorf("it is of version %q, and this program reads %q", r.APIVersion, recordVersion)
	}
	return r, nil
}
