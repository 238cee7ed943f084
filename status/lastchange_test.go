package status

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
)

func someChange() LastChange {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return LastChange{From: "local", To: "ns/a/kubelet", ResourceVersion: "7", Began: at, Ended: at.Add(time.Second), Outcome: "InTrial",
		Phases: []ChangePhase{{"download", "40ms"}, {"wait", "1h0m0.4s"}, {"start", "1.28s"}}}
}

func TestLastChangeOfTheAnnotation(t *testing.T) {
	text := someChange().Encode()
	const want = `{"from":"local","to":"ns/a/kubelet","resourceVersion":"7","began":"2026-01-02T03:04:05Z","ended":"2026-01-02T03:04:06Z","outcome":"InTrial",` +
		`"phases":[{"name":"download","took":"40ms"},{"name":"wait","took":"1h0m0.4s"},{"name":"start","took":"1.28s"}]}`
	if text != want {
		t.Errorf("written %s", text)
	}
	read, err := DecodeLastChange(text)
	if err != nil || fmt.Sprint(read) != fmt.Sprint(someChange()) {
		t.Errorf("read %v, %+v", err, read)
	}
	if line := read.Line(); line != "download 40ms | wait 1h0m0s | start 1.3s" {
		t.Errorf("drawn %s", line)
	}
	longest := LastChange{From: strings.Repeat("n", 63+253+253+2), ResourceVersion: strings.Repeat("9", 255), Began: read.Began, Ended: read.Ended,
		Outcome: "LastKnownGoodFailed", Resumed: true, Phase: "preflight"}
	for longest.To = longest.From; len(longest.Phases) < 6; {
		longest.Phases = append(longest.Phases, ChangePhase{"preflight", "2562047h47m16.854s"})
	}
	if _, err := DecodeLastChange(longest.Encode()); err != nil {
		t.Errorf("the longest that a supervisor writes: %v", err)
	}
}

func TestTitleOfAChange(t *testing.T) {
	for want, change := range map[string]func(*LastChange){
		"local -> ns/a/kubelet: InTrial":                                             func(*LastChange) {},
		"local -> ns/a/kubelet: under way":                                           func(c *LastChange) { c.Ended, c.Outcome = time.Time{}, "" },
		"local -> ns/a/kubelet: WouldDisrupt":                                        func(c *LastChange) { c.Ended, c.Outcome = time.Time{}, "WouldDisrupt" },
		"local -> ns/a/kubelet: InTrial, begun by a supervisor that has ended since": func(c *LastChange) { c.Resumed = true },
	} {
		c := someChange()
		if change(&c); c.Title() != want {
			t.Errorf("%s, want %s", c.Title(), want)
		}
	}
}

func TestALineWithNonsense(t *testing.T) {
	c := LastChange{Phases: []ChangePhase{{"stop", "-1s"}, {"start", "soon"}}, Phase: "report"}
	if line := c.Line(); line != "stop ? | start ? | report ..." {
		t.Errorf("drawn %s", line)
	}
	if line := (LastChange{}).Line(); line != "" {
		t.Errorf("drawn %s", line)
	}
}

func TestAForgedLastChangeIsNotRead(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("x", maxLastChange+1):                      "it has 4097 bytes, and at most 4096 are read",
		`{"phases":[` + strings.Repeat("{},", maxPhases) + `{}]}`: "it has 17 phases, and at most 16 are read",
		`{"began":7}`:      "it does not decode: ",
		`[]`:               "it does not decode: ",
		``:                 "it does not decode: ",
		`{"phases":"all"}`: "it does not decode: ",
	} {
		if _, err := DecodeLastChange(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40s: %v", text, err)
		}
	}
}

func FuzzDecodeLastChange(f *testing.F) {
	f.Add(someChange().Encode())
	f.Add(`{"from":"\u001b[2J","phases":[{"name":"a\nb","took":"\u0000"}],"phase":"x"}`)
	f.Add(`{"began":"9999-12-31T23:59:59+23:59","phases":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := DecodeLastChange(text)
		words := c.Title() + c.Line()
		if err != nil {
			words += err.Error()
		}
		if len(words) > 4*maxLastChange || strings.ContainsFunc(words, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q leads to %q", text, words)
		}
	})
}

// How long phases took is no news: it comes with the next patch.
func TestLastChangeIsInThePatchOfTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		p := publish(t, api)
		r := report("True", "InTrial", "ns/a/kubelet")
		r.LastChange, r.LastChangeGist = "took 1", "the change"
		p.Offer(r)
		p.expect(t, "get patch")
		if got := api.node.Annotations[LastChangeAnnotation]; got != "took 1" {
			t.Errorf("the Node says %q", got)
		}
		r.LastChange = "took 2"
		p.Offer(r)
		p.expect(t, "")
		r.LastChange, r.LastChangeGist = "took 3", "its end"
		p.Offer(r)
		p.expect(t, "patch")
		if got := api.node.Annotations[LastChangeAnnotation]; got != "took 3" {
			t.Errorf("the Node says %q", got)
		}
	})
}
