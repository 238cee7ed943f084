package v1

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func exitCode(code int) *int { return &code }

// whole is a Status in which every field says something.
func whole() Status {
	return Status{
		Observed: "ns/a/kubelet@u1", Reason: ReasonWouldDisrupt, Since: noon, Features: []string{LayersFeature}, Retry: "workers/84bd77c4f0/2",
		Approval: "0123456789ab", Content: Content{"aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc", "v1.36.3"},
		Hold: &Hold{Approval: "ba9876543210", Losses: []Loss{{"ns/web", "p1", "OutOfcpu"}}, More: 2, Known: true, WaitsFor: "the container runtime",
			AsOf: noon.Add(time.Second)},
		Trial:    &Trial{"1m30s", "10m0s", 2},
		Failure:  &Failure{Kind: FailureExited, ExitCode: exitCode(0), Times: 3, Message: "exited 3 times"},
		Shadowed: []ShadowedField{{"maxPods", "60", "--max-pods", "20", true}}, UnknownFields: []string{"maxPod"}, Warnings: []string{"a warning"},
		Change: &Change{From: Local, To: "ns/a/kubelet", ResourceVersion: "7", Began: noon, Due: noon, Ended: noon.Add(time.Minute), Outcome: ReasonInTrial,
			Resumed: true, Phases: []ChangePhase{{"download", "40ms"}}, Phase: "report"},
	}
}

// The form is what other programs and other versions read.
func TestEncode(t *testing.T) {
	const want = `{"observed":"ns/a/kubelet@u1","reason":"WouldDisrupt","since":"2026-01-02T12:00:00Z","features":["layers"],"retry":"workers/84bd77c4f0/2",` +
		`"approval":"0123456789ab","content":{"assigned":"aaaaaaaaaaaa","active":"bbbbbbbbbbbb","lastKnownGood":"cccccccccccc","kubeletVersion":"v1.36.3"},` +
		`"hold":{"approval":"ba9876543210","losses":[{"pod":"ns/web","uid":"p1","reason":"OutOfcpu"}],"more":2,"known":true,"waitsFor":"the container runtime",` +
		`"asOf":"2026-01-02T12:00:01Z"},"trial":{"healthy":"1m30s","of":"10m0s","tries":2},` +
		`"failure":{"kind":"Exited","exitCode":0,"times":3,"message":"exited 3 times"},` +
		`"shadowed":[{"field":"maxPods","value":"60","by":"--max-pods","effective":"20","inferred":true}],"unknownFields":["maxPod"],"warnings":["a warning"],` +
		`"change":{"from":"local","to":"ns/a/kubelet","resourceVersion":"7","began":"2026-01-02T12:00:00Z","due":"2026-01-02T12:00:00Z",` +
		`"ended":"2026-01-02T12:01:00Z","outcome":"InTrial","resumed":true,"phases":[{"name":"download","took":"40ms"}],"phase":"report"}}`
	text := whole().Encode()
	if text != want {
		t.Errorf("written\n%s, want\n%s", text, want)
	}
	read, err := DecodeStatus(text)
	if err != nil || !reflect.DeepEqual(read, whole()) {
		t.Errorf("read %v, %+v", err, read)
	}
	if text := (Status{}).Encode(); text != "{}" {
		t.Errorf("nothing is %s", text)
	}
}

// What a supervisor cannot do without is never cut, however much else there is, and losses are counted.
func TestEncodeCuts(t *testing.T) {
	many := func(n int) (losses []Loss) {
		for i := range n {
			losses = append(losses, Loss{fmt.Sprintf("namespace-%d/%s", i, strings.Repeat("p", 200)), strings.Repeat("u", 36), "OutOfmemory"})
		}
		return losses
	}
	for name, change := range map[string]func(*Status){
		"losses":              func(s *Status) { s.Hold.Losses = many(3000) },
		"losses and warnings": func(s *Status) { s.Hold.Losses, s.Warnings = many(40), slicesOf(strings.Repeat("w", 600), 60) },
		"shadowed": func(s *Status) {
			for range 128 {
				s.Shadowed = append(s.Shadowed, ShadowedField{Field: strings.Repeat("f", 600), Value: "1"})
			}
		},
		"unknown fields":    func(s *Status) { s.UnknownFields = slicesOf(strings.Repeat("f", 600), 128) },
		"a long assignment": func(s *Status) { s.Observed = strings.Repeat("\x00", 5000) },
		"all": func(s *Status) {
			s.Hold.Losses, s.Warnings, s.UnknownFields = many(300), slicesOf(strings.Repeat(`"`, 600), 300), slicesOf(strings.Repeat("\\", 600), 300)
			s.Observed, s.Failure.Message = strings.Repeat("\x01", 5000), strings.Repeat(`"`, 6000)
			s.Change.From, s.Change.To = strings.Repeat("n", 600), strings.Repeat("n", 600)
		},
	} {
		s := whole()
		s.Retry = strings.Repeat("r", 1000)
		change(&s)
		before := s.Hold.More + len(s.Hold.Losses)
		text := s.Encode()
		if len(text) > maxStatus || len(text) < maxStatus/4 {
			t.Errorf("%s: %d bytes", name, len(text))
		}
		read, err := DecodeStatus(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if read.Reason != s.Reason || read.Approval != s.Approval || read.Retry != s.Retry || read.Hold.Approval != s.Hold.Approval {
			t.Errorf("%s: has lost %+v", name, read)
		}
		if got := read.Hold.More + len(read.Hold.Losses); got != before {
			t.Errorf("%s: %d losses, and %d before", name, got, before)
		}
	}
	s := whole()
	s.Hold.Losses, s.Warnings = many(40), slicesOf(strings.Repeat("w", 600), 60)
	if read, _ := DecodeStatus(s.Encode()); len(read.Hold.Losses) < namedLosses || len(read.Warnings) == 0 {
		t.Errorf("%d losses and %d warnings are left", len(read.Hold.Losses), len(read.Warnings))
	}
}

func slicesOf(text string, n int) (list []string) {
	for range n {
		list = append(list, text)
	}
	return list
}

// Encode changes nothing of what it is given.
func TestEncodeCopies(t *testing.T) {
	s := whole()
	s.Warnings, s.Hold.Losses[0].Pod, s.Failure.Message = []string{"a\nb"}, "a\nb", "a\nb"
	s.Encode()
	if s.Warnings[0] != "a\nb" || s.Hold.Losses[0].Pod != "a\nb" || s.Failure.Message != "a\nb" || s.Hold.More != 2 {
		t.Errorf("changed to %+v, %+v", s, *s.Hold)
	}
}

func TestAForgedStatusIsNotRead(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("x", maxStatus+1): "it has 8193 bytes, and at most 8192 are read",
		`{"since":7}`:                    "it does not decode: ",
		`[]`:                             "it does not decode: ",
		``:                               "it does not decode: ",
		`{"hold":"all"}`:                 "it does not decode: ",
		`{"hold":{"more":1e300}}`:        "it does not decode: ",
	} {
		if s, err := DecodeStatus(text); err == nil || !strings.HasPrefix(err.Error(), want) || !reflect.DeepEqual(s, Status{}) {
			t.Errorf("%.40s: %v, %+v", text, err, s)
		}
	}
}

// printed is everything of a Status that is made to be shown.
func printed(s Status) string {
	s.Observed, s.Retry = "", ""
	words := s.json()
	if s.Change != nil {
		words += s.Change.Title() + s.Change.Line()
	}
	return words
}

func FuzzDecodeStatus(f *testing.F) {
	f.Add(whole().Encode())
	f.Add(`{"reason":"\u001b[2J","warnings":["a\nb"],"change":{"phases":[{"name":"a\nb","took":"\u0000"}],"phase":"x"},"more":-1}`)
	f.Add(`{"since":"9999-12-31T23:59:59-23:59","hold":{"asOf":"0000-01-01T00:00:00+23:59","more":-7,"approval":"a b","losses":[{}]}}`)
	f.Add(`{"hold":{"more":9223372036854775807,"losses":[` + strings.Repeat("{},", 200) + `{}]}}`)
	f.Add(`{"retry":"\u0000\u2028","observed":"\ufffd","approval":"local","trial":{"tries":-3},"failure":{}}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := DecodeStatus(text)
		if err != nil {
			if words := err.Error(); len(words) > 300 || strings.ContainsFunc(words, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q leads to %q", text, words)
			}
			return
		}
		if words := printed(s); strings.ContainsFunc(words, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q leads to %q", text, words)
		}
		if len(s.Observed) > maxVerbatim || len(s.Retry) > maxVerbatim || s.Hold != nil && (s.Hold.More < 0 || len(s.Hold.Losses) > maxEntries) {
			t.Errorf("%q is read as %+v", text, s)
		}
		again := s.Encode()
		if len(again) > maxStatus || !utf8.ValidString(again) {
			t.Fatalf("%q is written again with %d bytes", text, len(again))
		}
		if read, err := DecodeStatus(again); err != nil || read.Encode() != again {
			t.Errorf("%q is written again as %q, which is read as %v, %q", text, again, err, read.Encode())
		}
	})
}

// A person reads which pods, and how many more there are.
func TestTextOfAHold(t *testing.T) {
	two := []Loss{{Pod: "ns/a", Reason: "OutOfcpu"}, {Pod: "ns/b", Reason: "OutOfpods"}}
	for want, h := range map[string]Hold{
		"":                                       {Known: true},
		"ns/a (OutOfcpu), ns/b (OutOfpods)":      {Losses: two, Known: true},
		"ns/a (OutOfcpu), and 5 more":            {Losses: two[:1], More: 5, Known: true, WaitsFor: "nothing"},
		"the container runtime":                  {WaitsFor: "the container runtime"},
		"ns/a (OutOfcpu), the container runtime": {Losses: two[:1], WaitsFor: "the container runtime"},
	} {
		if got := h.Text(2); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (Hold{Losses: two, Known: true}).Text(1); got != "ns/a (OutOfcpu), and 1 more" {
		t.Errorf("%q", got)
	}
}

// A patch costs every node of a fleet a request, and all watchers an event.
func TestNews(t *testing.T) {
	for name, change := range map[string]func(*Status){
		"since":      func(s *Status) { s.Since = s.Since.Add(time.Hour) },
		"a look":     func(s *Status) { s.Hold.AsOf = s.Hold.AsOf.Add(time.Minute) },
		"trial time": func(s *Status) { s.Trial.Healthy = "2m0s" },
		"a phase":    func(s *Status) { s.Change.Phases, s.Change.Phase = nil, "start" },
	} {
		s := whole()
		if change(&s); s.News() != whole().News() {
			t.Errorf("%s alone is news", name)
		}
	}
	for name, change := range map[string]func(*Status){
		"reason":      func(s *Status) { s.Reason = ReasonActive },
		"retry":       func(s *Status) { s.Retry = "x" },
		"approval":    func(s *Status) { s.Approval = "x" },
		"the hold":    func(s *Status) { s.Hold = nil },
		"a loss":      func(s *Status) { s.Hold.Losses[0].Pod = "ns/other" },
		"a try":       func(s *Status) { s.Trial.Tries++ },
		"the change":  func(s *Status) { s.Change.Outcome = ReasonActive },
		"a warning":   func(s *Status) { s.Warnings = nil },
		"the failure": func(s *Status) { s.Failure.Message = "x" },
	} {
		s := whole()
		if change(&s); s.News() == whole().News() {
			t.Errorf("%s is no news", name)
		}
	}
}
