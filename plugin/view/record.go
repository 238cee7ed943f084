package view

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

// RecordAnnotation holds what was assigned to a Node, oldest first, as JSON. It is written in the same patch as
// the assignment, with the same permission; the node does not read it. Without an admission policy it can have any
// content.
const RecordAnnotation = "kubelet-supervisor.io/assignments"

// Limits of a record, which any client with permission on the Node can write.
const (
	RecordEntries = 10       // the newest are kept,
	RecordBytes   = 4 << 10  // as many as fit
	recordLimit   = 64 << 10 // a longer record is not from this program, and is not read
	ByLimit       = 128      // characters of a user's name
	outcomeLimit  = 32
)

// OutcomeUnknown is the outcome of an assignment that was replaced before its node answered it.
const OutcomeUnknown = "Unknown"

// BadOutcomes are the reasons of assignments that a rollback does not return to.
var BadOutcomes = []string{nodev1.ReasonRefused, nodev1.ReasonRolledBack, nodev1.ReasonRejected, nodev1.ReasonInvalidAssignment, nodev1.ReasonLastKnownGoodFailed}

// GoodOutcomes are the reasons of assignments that ran, on trial or after it, or were the node's own
// configuration.
var GoodOutcomes = []string{nodev1.ReasonActive, nodev1.ReasonInTrial, nodev1.ReasonLocal}

// An Entry is one assignment.
type Entry struct {
	Source  string    `json:"source"`            // as in the annotation config-source, or local
	Time    time.Time `json:"time,omitzero"`     // zero if the assignment was made without an entry
	By      string    `json:"by,omitempty"`      // user name reported by the API server
	Outcome string    `json:"outcome,omitempty"` // a reason of the condition, or Unknown; "" while it is assigned
}

// Record returns a Node's entries, oldest first; none if there is no record.
func (v Node) Record() ([]Entry, error) {
	entries, err := DecodeRecord(v.Annotations[RecordAnnotation])
	if err != nil {
		return nil, fmt.Errorf("node %s: annotation %s is no record of assignments: %w; the next assignment replaces it", v.Name, RecordAnnotation, err)
	}
	return entries, nil
}

// DecodeRecord decodes any text. It drops invalid entries; the others are safe to print and to write.
func DecodeRecord(text string) ([]Entry, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > recordLimit {
		return nil, fmt.Errorf("it has %d bytes", len(text))
	}
	var entries []Entry
	if err := json.Unmarshal([]byte(text), &entries); err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e Entry) bool {
		_, err := nodev1.ParseAssignment(e.Source)
		return err != nil
	})
	for i := range entries {
		e := &entries[i]
		e.By, e.Outcome = Shorten(bounded.Line(e.By), ByLimit), Shorten(bounded.Line(e.Outcome), outcomeLimit)
		if e.Time = e.Time.UTC().Truncate(time.Second); e.Time.Year() < 1 || e.Time.Year() > 9999 { // its zone may move it out of range
			e.Time = time.Time{}
		}
	}
	return entries[max(0, len(entries)-RecordEntries):], nil
}

// EncodeRecord encodes the newest entries, as many as fit.
func EncodeRecord(entries []Entry) (string, error) {
	entries = entries[max(0, len(entries)-RecordEntries):]
	for {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(entries); err != nil {
			return "", fmt.Errorf("writing the record of assignments: %w", err)
		}
		if text.Len() <= RecordBytes || len(entries) == 1 {
			return strings.TrimSpace(text.String()), nil
		}
		entries = entries[1:]
	}
}

// RecordWith returns the record after another assignment. It sets the outcome of the previous entry, which is
// known best now. A previous assignment without an entry gets one.
func (v Node) RecordWith(next Entry) (string, error) {
	entries, err := v.Record()
	if err != nil {
		entries = nil
	}
	if now, ok := v.Current(); ok {
		if last := len(entries) - 1; last < 0 || !SameSource(entries[last].Source, now.String()) {
			entries = append(entries, Entry{Source: now.String()})
		}
		if last := &entries[len(entries)-1]; last.Outcome == "" || v.Outcome() != OutcomeUnknown {
			last.Outcome = v.Outcome()
		}
	}
	next.By, next.Time = Shorten(bounded.Line(next.By), ByLimit), next.Time.UTC().Truncate(time.Second)
	if last := len(entries) - 1; last >= 0 && SameSource(entries[last].Source, next.Source) {
		entries[last].Source, entries[last].Outcome = next.Source, "" // the same again, perhaps pinned
	} else {
		entries = append(entries, next)
	}
	return EncodeRecord(entries)
}

// SameSource reports whether two assignments name the same object, as far as they say.
func SameSource(a, b string) bool {
	r, err := nodev1.ParseAssignment(a)
	s, other := nodev1.ParseAssignment(b)
	if err != nil || other != nil {
		return a == b
	}
	return r.Equal(s)
}

// LastKnownGoodIs reports whether the node reports a source as its last known good one.
func (v Node) LastKnownGoodIs(source string) bool {
	good := v.Says.Config.LastKnownGood
	if good == nil {
		return false
	}
	r := nodev1.AssignmentOf(good)
	r.UID = uidOf(good)
	return SameSource(source, r.String())
}

// Outcome returns the node's own report about the assignment that stands.
func (v Node) Outcome() string {
	r, ok := v.Current()
	reason := v.Reason()
	names := func(source nodev1.Assignment, uid string) bool {
		return source == r.Unpinned() && (r.UID == "" || r.UID == uid)
	}
	switch {
	case !ok || !v.Says.Answered():
		return OutcomeUnknown
	case slices.Contains(BadOutcomes, reason):
		return reason
	case r.IsLocal() && reason == nodev1.ReasonLocal, !r.IsLocal() && (reason == nodev1.ReasonActive || reason == nodev1.ReasonInTrial):
		return reason
	case r.IsLocal():
	case names(nodev1.AssignmentOf(v.Says.Config.LastKnownGood), uidOf(v.Says.Config.LastKnownGood)):
		return nodev1.ReasonActive
	case names(nodev1.AssignmentOf(v.Says.Config.Active), uidOf(v.Says.Config.Active)):
		return nodev1.ReasonInTrial
	}
	return OutcomeUnknown
}

// WhoAmI returns the name of the user; "" if the API server does not report it (before Kubernetes 1.28).
func WhoAmI(ctx context.Context, client kubernetes.Interface) string {
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

// Short returns the source for people, without a uid.
func (e Entry) Short() string {
	r, err := nodev1.ParseAssignment(e.Source)
	if err != nil {
		return bounded.Line(fmt.Sprintf("%q", e.Source))
	}
	return r.Unpinned().String()
}
