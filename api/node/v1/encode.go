package v1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// maxStatus bounds [StatusAnnotation], in bytes: all annotations of a Node share 256 KiB, and each change of one goes to every watcher.
const maxStatus = 8 << 10

// Bounds of the parts, in bytes and entries. Longer ones are cut when they are written, and when they are read.
const (
	maxVerbatim = 1024 // an assignment, a retry
	maxWord     = 64   // a reason, a kind, a digest
	maxName     = 600  // NAMESPACE/NAME/KEY, NAMESPACE/NAME, the path of a field
	maxText     = 600  // a message, a warning
	maxValue    = 128
	maxEntries  = 128
	maxPhases   = 16
)

// Encode returns the annotation's value, at most 8 KiB. If it does not fit, losses of a hold are cut, which [Hold.More] counts, then warnings, then
// shadowed fields, and then the rest; reason, approval and retry are never cut.
func (s Status) Encode() string {
	s = s.clean()
	for {
		text := s.json()
		if len(text) <= maxStatus || !s.cut(len(text)-maxStatus) {
			return text
		}
	}
}

func (s Status) json() string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil { // only times may fail to encode, and clean removes such times
		return "{}"
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// namedLosses is how many losses are kept while anything else can be cut.
const namedLosses = 5

// cut leaves out what can be spared most, and reports whether there was anything. It changes nothing that the caller shares: clean has
// copied it.
func (s *Status) cut(excess int) bool {
	losses := 0
	if s.Hold != nil {
		losses = len(s.Hold.Losses)
	}
	switch {
	case losses > namedLosses:
		s.Hold.cut(excess, namedLosses)
	case len(s.Warnings) > 0:
		s.Warnings = cutList(s.Warnings, excess, 0, func(w string) int { return len(w) })
	case len(s.Shadowed) > 0:
		s.Shadowed = cutList(s.Shadowed, excess, 0, func(f ShadowedField) int { return len(f.Field) + len(f.Value) + len(f.By) + len(f.Effective) })
	case len(s.UnknownFields) > 0:
		s.UnknownFields = cutList(s.UnknownFields, excess, 0, func(f string) int { return len(f) })
	case s.Change != nil:
		s.Change = nil
	case s.Failure != nil && s.Failure.Message != "":
		s.Failure.Message = ""
	case losses > 0:
		s.Hold.cut(excess, 0)
	case s.Observed != "": // control characters, each of which takes six bytes
		s.Observed = bounded.Text(s.Observed, len(s.Observed)-max(len(bounded.Ellipsis), excess/6))
	default:
		return false
	}
	return true
}

func (h *Hold) cut(excess, spared int) {
	before := len(h.Losses)
	h.Losses = cutList(h.Losses, excess, spared, func(l Loss) int { return len(l.Pod) + len(l.UID) + len(l.Reason) })
	h.More += before - len(h.Losses)
}

// cutList drops the last entries until excess bytes of text are removed, at least one entry, but none of the first spared ones.
func cutList[T any](list []T, excess, spared int, size func(T) int) []T {
	for gone := 0; len(list) > spared && (gone == 0 || gone < excess); list = list[:len(list)-1] {
		gone += size(list[len(list)-1]) + 1
	}
	return list
}

// DecodeStatus decodes the annotation, which any user may have written if there is no admission policy. The result is bounded and printable, except
// Observed and Retry, which are verbatim and bounded. It returns an error if the text is too long or is not valid JSON.
func DecodeStatus(text string) (Status, error) {
	if len(text) > maxStatus {
		return Status{}, fmt.Errorf("it has %d bytes, and at most %d are read", len(text), maxStatus)
	}
	var s Status
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return Status{}, fmt.Errorf("it does not decode: %s", bounded.Text(bounded.Line(err.Error()), 200))
	}
	return s.clean(), nil
}

// clean returns a copy within the bounds, which shares nothing with the original.
func (s Status) clean() Status {
	s.Observed, s.Retry = bounded.Text(s.Observed, maxVerbatim), bounded.Text(s.Retry, maxVerbatim)
	s.Reason, s.Approval, s.Since = word(s.Reason), approvalWord(s.Approval), cleanTime(s.Since)
	s.Features, s.UnknownFields, s.Warnings = cleanList(s.Features, maxWord), cleanList(s.UnknownFields, maxName), cleanList(s.Warnings, maxText)
	s.Content = Content{word(s.Content.Assigned), word(s.Content.Active), word(s.Content.LastKnownGood), word(s.Content.KubeletVersion)}
	s.Hold, s.Trial, s.Failure, s.Change = s.Hold.clean(), s.Trial.clean(), s.Failure.clean(), s.Change.clean()
	s.Shadowed = head(s.Shadowed, maxEntries)
	for i, f := range s.Shadowed {
		s.Shadowed[i] = ShadowedField{line(f.Field, maxName), line(f.Value, maxValue), line(f.By, maxValue), line(f.Effective, maxValue), f.Inferred}
	}
	return s
}

func (h *Hold) clean() *Hold {
	if h == nil {
		return nil
	}
	clean := Hold{Approval: approvalWord(h.Approval), More: count(h.More), Known: h.Known, WaitsFor: line(h.WaitsFor, maxText), AsOf: cleanTime(h.AsOf)}
	clean.Losses = head(h.Losses, maxEntries)
	clean.More += len(h.Losses) - len(clean.Losses)
	for i, l := range clean.Losses {
		clean.Losses[i] = Loss{line(l.Pod, maxName), line(l.UID, maxValue), line(l.Reason, maxValue)}
	}
	return &clean
}

func (t *Trial) clean() *Trial {
	if t == nil {
		return nil
	}
	return &Trial{word(t.Healthy), word(t.Of), count(t.Tries)}
}

func (f *Failure) clean() *Failure {
	if f == nil {
		return nil
	}
	clean := Failure{Kind: FailureKind(word(string(f.Kind))), Times: count(f.Times), Message: line(f.Message, maxText)}
	if f.ExitCode != nil {
		code := *f.ExitCode
		clean.ExitCode = &code
	}
	return &clean
}

func (c *Change) clean() *Change {
	if c == nil {
		return nil
	}
	clean := *c
	clean.From, clean.To, clean.ResourceVersion = line(c.From, maxName), line(c.To, maxName), line(c.ResourceVersion, maxValue)
	clean.Began, clean.Due, clean.Ended = cleanTime(c.Began), cleanTime(c.Due), cleanTime(c.Ended)
	clean.Outcome, clean.Phase, clean.Phases = word(c.Outcome), word(c.Phase), head(c.Phases, maxPhases)
	for i, p := range clean.Phases {
		clean.Phases[i] = ChangePhase{word(p.Name), word(p.Took)}
	}
	return &clean
}

// count bounds a number, so that sums do not overflow.
func count(n int) int { return min(max(0, n), 1<<20) }

func line(text string, limit int) string { return bounded.Text(bounded.Line(text), limit) }
func word(text string) string            { return line(text, maxWord) }

// approvalWord returns "" for a text that cannot be an approval, because it is written into an annotation, and shown in a command to type.
func approvalWord(text string) string {
	if len(text) > maxWord || strings.ContainsFunc(text, func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'z') && r != '-' }) {
		return ""
	}
	return text
}

// cleanTime returns the zero time for one that cannot be encoded as JSON because of its zone or year.
func cleanTime(t time.Time) time.Time {
	if t = t.UTC().Truncate(time.Millisecond); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

func cleanList(list []string, limit int) []string {
	list = head(list, maxEntries)
	for i := range list {
		list[i] = line(list[i], limit)
	}
	return list
}

// head copies the first entries of a list.
func head[T any](list []T, limit int) []T { return slices.Clone(list[:min(len(list), limit)]) }

// News is the part of a status that is worth a patch, as a text to compare. Durations and times of observations are written with the next patch, and do
// not cause one.
func (s Status) News() string {
	s = s.clean()
	s.Since = time.Time{}
	if s.Hold != nil {
		s.Hold.AsOf = time.Time{}
	}
	if s.Trial != nil {
		s.Trial.Healthy = ""
	}
	if s.Change != nil {
		s.Change.Phases, s.Change.Phase = nil, ""
	}
	return s.json()
}
