package core

import (
	"fmt"
	"slices"
	"strings"
)

// What a test expects of a drive: what was done, what the Node shows, and what is kept.

// fresh forgets what was done so far.
func (d *drive) fresh() *drive {
	d.began = d.now
	d.did, d.saves, d.events, d.told = nil, nil, nil, nil
	return d
}

func (d *drive) expectDone(want ...string) *drive {
	d.t.Helper()
	if !slices.Equal(d.did, want) {
		d.t.Errorf("done: %q, want %q", d.did, want)
	}
	return d
}

func (d *drive) expectEvents(want ...string) *drive {
	d.t.Helper()
	if !slices.Equal(d.events, want) {
		d.t.Errorf("events: %q, want %q", d.events, want)
	}
	return d
}

// shown is the report in one line: assigned, active and lastKnownGood by content and resourceVersion, reason, error.
func (d *drive) shown() string {
	r, due := Report(d.s)
	if !due {
		return "(nothing yet)"
	}
	text := func(v *Version) string {
		if v == nil {
			return "-"
		}
		return v.Content + "@" + v.Source.ResourceVersion
	}
	short := strings.TrimSuffix(strings.TrimPrefix(r.Config.Error, "failed to "), ", see Kubelet log for details")
	return strings.TrimSpace(fmt.Sprintf("assigned=%s active=%s lkg=%s %s %s %s", text(d.s.Assigned), text(d.s.Active), text(d.s.LastKnownGood), r.Status, r.Reason, short))
}

func (d *drive) expect(want string) *drive {
	d.t.Helper()
	if got := d.shown(); got != want {
		d.t.Errorf("shown: %s\n want: %s", got, want)
	}
	return d
}

func (d *drive) expectMessage(parts ...string) *drive {
	d.t.Helper()
	r, _ := Report(d.s)
	for _, part := range parts {
		if !strings.Contains(r.Message, part) {
			d.t.Errorf("message %q lacks %q", r.Message, part)
		}
	}
	return d
}

// says is the whole message.
func (d *drive) says(want string) *drive {
	d.t.Helper()
	if r, _ := Report(d.s); r.Message != want {
		d.t.Errorf("says: %s\nwant: %s", r.Message, want)
	}
	return d
}

// expectAccount looks at the account of the trial, in one line.
func (d *drive) expectAccount(want string) *drive {
	d.t.Helper()
	if got := account(d.s.Trial); got != want {
		d.t.Errorf("account: %s\n   want: %s", got, want)
	}
	return d
}

func account(t Trial) string {
	if t == (Trial{}) {
		return "none"
	}
	text := fmt.Sprintf("%s with %s: try %d", t.Content, t.Kubelet.Binary, t.Tries)
	for _, word := range []struct {
		is   bool
		text string
	}{
		{t.Open, "open since " + t.BootID}, {t.HadHealth && t.Open, "was healthy"}, {t.Baseline, "the Lease was renewed before"}, {t.Renewed, "renewed it"},
		{t.Unhealthy > 0, "unhealthy for " + t.Unhealthy.String()}, {t.Longest > 0, "lived " + t.Longest.String()},
	} {
		if word.is {
			text += ", " + word.text
		}
	}
	return text
}
