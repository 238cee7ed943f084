package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// recordAnnotation holds what was assigned to a Node, oldest first, as JSON. It is written with the assignment, in the same patch
// and by the same right; the node does not read it. Anything may stand in it where no admission policy protects it.
const recordAnnotation = "kubelet-supervisor.io/assignments"

const (
	recordEntries = 10       // the newest are kept,
	recordBytes   = 4 << 10  // as many of them as fit
	recordLimit   = 64 << 10 // what is longer was not written by this program, and is not read
	byLimit       = 128      // characters of a user's name
	outcomeLimit  = 32
)

// outcomeUnknown is of an assignment that was replaced before its node spoke of it.
const outcomeUnknown = "Unknown"

// badOutcomes are reasons of the condition for which an assignment is not gone back to.
var badOutcomes = []string{nodev1.ReasonRefused, nodev1.ReasonRolledBack, nodev1.ReasonRejected, nodev1.ReasonInvalidAssignment, nodev1.ReasonLastKnownGoodFailed}

// goodOutcomes are those of an assignment that was seen to serve: it ran, on trial or past it, or is the node's own configuration.
var goodOutcomes = []string{nodev1.ReasonActive, nodev1.ReasonInTrial, nodev1.ReasonLocal}

// An entry is one assignment.
type entry struct {
	Source  string    `json:"source"`            // as the annotation config-source has it, or local
	Time    time.Time `json:"time,omitzero"`     // zero where somebody assigned it without writing an entry
	By      string    `json:"by,omitempty"`      // as the API server knew them
	Outcome string    `json:"outcome,omitempty"` // a reason of the condition, or Unknown; "" while it is assigned
}

// record reads a Node's entries, oldest first; none where there is no record.
func (v nodeView) record() ([]entry, error) {
	entries, err := decodeRecord(v.Annotations[recordAnnotation])
	if err != nil {
		return nil, fmt.Errorf("node %s: annotation %s is no record of assignments: %w; the next assignment begins it anew", v.Name, recordAnnotation, err)
	}
	return entries, nil
}

// decodeRecord takes any text: what cannot be an entry is left out, and what is left is fit to be shown and written.
func decodeRecord(text string) ([]entry, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > recordLimit {
		return nil, fmt.Errorf("it has %d bytes", len(text))
	}
	var entries []entry
	if err := json.Unmarshal([]byte(text), &entries); err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e entry) bool {
		_, err := nodev1.ParseAssignment(e.Source)
		return err != nil
	})
	for i := range entries {
		e := &entries[i]
		e.By, e.Outcome = shorten(bounded.Line(e.By), byLimit), shorten(bounded.Line(e.Outcome), outcomeLimit)
		if e.Time = e.Time.UTC().Truncate(time.Second); e.Time.Year() < 1 || e.Time.Year() > 9999 { // by its zone
			e.Time = time.Time{}
		}
	}
	return entries[max(0, len(entries)-recordEntries):], nil
}

// encodeRecord writes the newest entries, as many as fit.
func encodeRecord(entries []entry) (string, error) {
	entries = entries[max(0, len(entries)-recordEntries):]
	for {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(entries); err != nil {
			return "", fmt.Errorf("writing the record of assignments: %w", err)
		}
		if text.Len() <= recordBytes || len(entries) == 1 {
			return strings.TrimSpace(text.String()), nil
		}
		entries = entries[1:]
	}
}

// recordWith is the record after another assignment. What became of the one before is known best now. One that somebody made
// without an entry gets one.
func (v nodeView) recordWith(next entry) (string, error) {
	entries, err := v.record()
	if err != nil {
		entries = nil
	}
	if now, ok := v.current(); ok {
		if last := len(entries) - 1; last < 0 || !sameSource(entries[last].Source, now.String()) {
			entries = append(entries, entry{Source: now.String()})
		}
		if last := &entries[len(entries)-1]; last.Outcome == "" || v.outcome() != outcomeUnknown {
			last.Outcome = v.outcome()
		}
	}
	next.By, next.Time = shorten(bounded.Line(next.By), byLimit), next.Time.UTC().Truncate(time.Second)
	if last := len(entries) - 1; last >= 0 && sameSource(entries[last].Source, next.Source) {
		entries[last].Source, entries[last].Outcome = next.Source, "" // the same again, pinned maybe
	} else {
		entries = append(entries, next)
	}
	return encodeRecord(entries)
}

// sameSource tells whether two assignments name the same, as far as they say.
func sameSource(a, b string) bool {
	r, err := nodev1.ParseAssignment(a)
	s, other := nodev1.ParseAssignment(b)
	if err != nil || other != nil {
		return a == b
	}
	return r.Equal(s)
}

// lastKnownGoodIs tells whether the node itself names a source its last known good one.
func (v nodeView) lastKnownGoodIs(source string) bool {
	good := v.says.Config.LastKnownGood
	if good == nil {
		return false
	}
	r := nodev1.AssignmentOf(good)
	r.UID = uidOf(good)
	return sameSource(source, r.String())
}

// outcome is what became of the assignment that stands, by the node's own words.
func (v nodeView) outcome() string {
	r, ok := v.current()
	reason := v.reason()
	names := func(source nodev1.Assignment, uid string) bool {
		return source == r.Unpinned() && (r.UID == "" || r.UID == uid)
	}
	switch {
	case !ok || !v.says.Answered():
		return outcomeUnknown
	case slices.Contains(badOutcomes, reason):
		return reason
	case r.IsLocal() && reason == nodev1.ReasonLocal, !r.IsLocal() && (reason == nodev1.ReasonActive || reason == nodev1.ReasonInTrial):
		return reason
	case r.IsLocal():
	case names(nodev1.AssignmentOf(v.says.Config.LastKnownGood), uidOf(v.says.Config.LastKnownGood)):
		return nodev1.ReasonActive
	case names(nodev1.AssignmentOf(v.says.Config.Active), uidOf(v.says.Config.Active)):
		return nodev1.ReasonInTrial
	}
	return outcomeUnknown
}

// whoAmI asks the API server, "" where it does not say (before Kubernetes 1.28).
func whoAmI(ctx context.Context, client kubernetes.Interface) string {
	answer, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return ""
	}
	return answer.Status.UserInfo.Username
}

func uidOf(source *corev1.NodeConfigSource) string {
	if source == nil || source.ConfigMap == nil {
		return ""
	}
	return string(source.ConfigMap.UID)
}
