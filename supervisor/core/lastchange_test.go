package core

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// change is the newest change in one line.
func (d *drive) change() string {
	c := d.s.LastChange
	if c.Began.IsZero() {
		return "none"
	}
	words := []string{nameOf(c.From) + " > " + nameOf(c.To) + ":"}
	for _, part := range []struct {
		phase Phase
		took  Span
	}{{PhaseDownload, c.Took.Download}, {PhaseWait, c.Took.Wait}, {PhasePreflight, c.Took.Preflight}, {PhaseStop, c.Took.Stop}, {PhaseStart, c.Took.Start}, {PhaseReport, c.Took.Report}} {
		if part.took != 0 {
			words = append(words, string(part.phase), part.took.String())
		}
	}
	if c.Resumed {
		words = append(words, "resumed")
	}
	if c.Phase != "" {
		words = append(words, "now", string(c.Phase))
	}
	if c.Outcome != "" {
		words = append(words, "is", c.Outcome)
	}
	if c.IsOpen() {
		words = append(words, "open")
	}
	return strings.Join(words, " ")
}

func (d *drive) expectChange(want string) *drive {
	d.t.Helper()
	if got := d.change(); got != want {
		d.t.Errorf("change: %s\n  want: %s", got, want)
	}
	return d
}

// slow has each pre-flight take 100 ms.
func (d *drive) slow() *drive {
	d.proves = func(string) { d.now += 100 * time.Millisecond }
	return d
}

func hold(s *Settings) { s.Disruption = Hold }

func TestLastChange(t *testing.T) {
	t.Parallel()
	downloaded := func(content string) Assigned {
		a := assigned(content, "1", content)
		a.Download = 40 * time.Millisecond
		return a
	}
	for name, row := range map[string]struct {
		settings func(*Settings)
		live     func(d *drive)
		want     string
	}{
		"nothing is asked for": {nil, func(d *drive) { d.pass(time.Hour).hear(Cleared{NodeUID: "node-uid"}) }, "none"},
		"accepted": {nil, func(d *drive) { d.hear(downloaded("one")).pass(time.Second) },
			"local > one: download 40ms preflight 100ms start 300ms now report is InTrial"},
		"the Node says it": {nil, func(d *drive) {
			d.hear(downloaded("one")).pass(healthyAfter + 10*time.Millisecond)
			d.hear(Reported{Began: d.s.LastChange.Began}).pass(time.Minute)
		}, "local > one: download 40ms preflight 100ms start 300ms report 10ms is InTrial"},
		"the Node says another": {nil, func(d *drive) {
			d.hear(downloaded("one")).pass(healthyAfter + time.Millisecond).hear(Reported{Began: d.s.LastChange.Began.Add(time.Nanosecond)})
		}, "local > one: download 40ms preflight 100ms start 300ms now report is InTrial"},
		"the Node says that it is under way": {nil, func(d *drive) {
			d.decide(downloaded("one"))
			d.now += 10 * time.Millisecond
			d.decide(Reported{Began: d.s.LastChange.Began})
		}, "local > one: download 40ms now preflight open"},
		"nobody is told": {func(s *Settings) { s.Standalone = true }, func(d *drive) { d.assign("one").pass(time.Second) },
			"local > one: preflight 100ms start 300ms is InTrial"},
		"promoted":                     {nil, func(d *drive) { d.good("one").pass(time.Hour) }, "local > one: preflight 100ms start 300ms now report is Active"},
		"what runs is asked for again": {nil, func(d *drive) { d.good("one").assign("one", "other", "2").pass(time.Minute) }, "local > one: preflight 100ms start 300ms now report is Active"},
		"refused":                      {nil, func(d *drive) { d.refuse("one", false).assign("one").pass(time.Minute) }, "local > one: preflight 100ms now report is Refused"},
		"refused by a kubelet that is replaced": {nil, func(d *drive) {
			newer := testKubelet
			newer.Binary = "binary-2"
			d.refuse("one", false).assign("one").pass(time.Minute)
			d.decide(LocalChanged{Kubelet: newer, Local: "local"}) // it has not said anything yet
		}, "local > one: preflight 100ms now report is Refused"},
		"refused again": {nil, func(d *drive) {
			d.refuse("one", false).assign("one").pass(time.Minute)
			clear(d.refused)
			d.hear(Retry{}).pass(time.Second)
		}, "local > one: preflight 100ms start 300ms now report is InTrial"},
		"a retry of what runs is none": {nil, func(d *drive) { d.good("one").hear(Retry{}).pass(time.Minute) }, "local > one: preflight 100ms start 300ms now report is Active"},
		"rolled back": {nil, func(d *drive) {
			d.deadly["one"] = 100 * time.Millisecond
			d.assign("one").pass(4 * time.Second)
		}, "local > one: preflight 100ms start 1.1s now report is RolledBack"},
		"rejected": {nil, func(d *drive) {
			d.deadly["one"] = 100 * time.Millisecond
			d.assign("one").pass(time.Minute)
		}, "local > one: preflight 100ms start 1.1s now report is Rejected"},
		"rolled back later": {nil, func(d *drive) {
			d.assign("one").pass(time.Minute)
			d.hangs["one"] = true
			d.hear(Unhealthy{Words: "x"}).pass(testSettings.StartTimeout + time.Second)
		}, "local > one: preflight 100ms start 300ms now report is RolledBack"},
		"a crash is no change": {nil, func(d *drive) {
			d.good("one").hear(ChildExited{Code: 1, Words: "x", Delay: time.Second}).pass(time.Minute)
		}, "local > one: preflight 100ms start 300ms now report is Active"},
		"back to local": {nil, func(d *drive) {
			d.good("one").hear(Cleared{NodeUID: "node-uid"}).pass(time.Second)
		}, "one > local: start 300ms now report is Local"},
		"back to local before it ran": {nil, func(d *drive) {
			d.refuse("one", false).assign("one").pass(time.Second).hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute)
		}, "local > one: preflight 100ms now report is Refused"},
		"held": {hold, func(d *drive) {
			d.kills["one"] = 1
			d.hear(downloaded("one")).pass(10 * time.Second)
		}, "local > one: download 40ms preflight 100ms now wait is WouldDisrupt open"},
		"held, and let through": {hold, func(d *drive) {
			d.kills["one"] = 1
			d.assign("one").pass(10 * time.Second).approve().pass(time.Second)
		}, "local > one: wait 10s preflight 100ms start 300ms now report is InTrial"},
		"held, and then not to be had": {hold, func(d *drive) {
			d.kills["one"] = 1
			d.assign("one").pass(10 * time.Second).hear(SyncFailed{Text: "x", Problem: Problem{Words: "x"}}).pass(time.Minute)
		}, "local > one: wait 10s preflight 100ms now report is Superseded"},
		"held, and heard of again": {hold, func(d *drive) {
			d.kills["one"] = 1
			d.assign("one").pass(10 * time.Second).assign("one").pass(10 * time.Second)
		}, "local > one: preflight 100ms now wait is WouldDisrupt open"},
		"held, another supervisor, and then not to be had": {hold, func(d *drive) {
			d.kills["one"] = 1
			d.assign("one").pass(10 * time.Second).boot().hear(SyncFailed{Text: "x", Problem: Problem{Words: "x"}}).pass(time.Minute)
		}, "local > one: preflight 100ms resumed is Interrupted"},
		"held, another supervisor, and held again": {hold, func(d *drive) {
			d.kills["one"] = 1
			d.assign("one").pass(10 * time.Second).boot().assign("one").pass(time.Second)
		}, "local > one: now wait is WouldDisrupt open"},
		"killed before the stop": {nil, func(d *drive) {
			d.decide(assigned("one", "1", "one"))
			d.decide(d.answer(d.s.Doing)) // it is assigned
			d.boot()
		}, "local > one: start 400ms resumed now report is InTrial"},
		"killed once it was over": {nil, func(d *drive) {
			d.assign("one").pass(time.Second)
			d.hear(Reported{Began: d.s.LastChange.Began}).boot().pass(time.Minute)
		}, "local > one: preflight 100ms start 300ms report 700ms is InTrial"},
		"killed before the Node said it": {nil, func(d *drive) { d.assign("one").pass(time.Second).boot().pass(time.Minute) },
			"local > one: preflight 100ms start 300ms is InTrial"},
		"stopped at its start": {nil, func(d *drive) { d.assign("one").pass(100 * time.Millisecond).hear(StopAsked{}) },
			"local > one: preflight 100ms now start open"},
		"the kubelet before takes its time": {nil, func(d *drive) {
			d.decide(assigned("one", "1", "one"))
			for !d.s.isStopping() {
				d.decide(d.answer(d.s.Doing))
			}
			d.now += 50 * time.Millisecond
			d.hear(d.answer(d.s.Doing)).pass(time.Second)
		}, "local > one: preflight 100ms stop 50ms start 300ms now report is InTrial"},
		"asked for while nothing runs": {nil, func(d *drive) {
			d.good("one").hear(ChildExited{Code: 1, Words: "x", Delay: time.Second}).assign("two").pass(time.Second)
		}, "one > two: start 400ms now report is InTrial"},
		"its source is another file's": {hold, func(d *drive) {
			d.kills["one"], d.kills["two"] = 1, 1
			d.assign("one").pass(time.Second)
			pending := *d.s.Pending
			pending.Version.Content = "two"
			d.s.Pending = &pending
			d.hear(Ticked{})
		}, "local > two: wait 1s preflight 200ms now wait is WouldDisrupt open"},
		"refused, and held": {hold, func(d *drive) {
			d.kills["local"] = 1
			d.assign("one").pass(time.Minute).refuse("two", false).assign("two").pass(time.Second)
		}, "one > two: preflight 100ms now wait is Refused open"},
		"it fails long after": {nil, func(d *drive) {
			d.good("one")
			d.deadly["one"] = time.Second
			for d.s.Suspects == nil {
				d.pass(time.Second)
			}
		}, "local > one: preflight 100ms start 300ms now report is RolledBack"},
		"another one fails after": {nil, func(d *drive) {
			d.good("good")
			d.deadly["one"] = 100 * time.Millisecond
			d.assign("one").pass(4 * time.Second).assign("good")
			d.deadly["good"] = time.Second
			d.pass(10 * time.Minute)
			if verdict(&d.s, d.s.Assigned).Kind != VerdictRejected {
				d.t.Errorf("the other one is not rejected: %s", d.shown())
			}
		}, "good > one: preflight 100ms start 1.1s now report is RolledBack"},
		"stopped in the middle": {nil, func(d *drive) {
			d.decide(assigned("one", "1", "one"))
			d.hear(StopAsked{})
		}, "local > one: now preflight open"},
		"what is assigned is found at the start": {nil, func(d *drive) {
			d.disk.Assigned = version("one", "1", "one")
			d.s.LastChange = LastChange{}
			d.boot()
		}, "local > one: start 300ms now report is InTrial"},
		"something newer in the middle": {nil, func(d *drive) {
			d.decide(assigned("one", "1", "one"))
			d.decide(assigned("two", "1", "two"))
			d.hear(d.answer(d.s.Doing)).pass(time.Second)
		}, "local > two: preflight 100ms start 300ms now report is InTrial"},
		"taken back in the middle": {nil, func(d *drive) {
			d.assign("one").pass(100 * time.Millisecond).hear(Cleared{NodeUID: "node-uid"}).pass(time.Second)
		}, "one > local: start 400ms now report is Local"},
		"the disk is full": {nil, func(d *drive) {
			d.saveErr = errDisk
			d.assign("one").pass(time.Second)
		}, "local > one: now wait is InternalError open"},
		"the disk is full once it is assigned": {nil, func(d *drive) {
			d.decide(assigned("one", "1", "one"))
			d.decide(d.answer(d.s.Doing))
			d.saveErr = errDisk
			d.hear(d.answer(d.s.Doing)).pass(time.Second)
		}, "local > one: preflight 100ms now report is InternalError"},
		"local files, followed": {func(s *Settings) { s.FollowLocal = true }, func(d *drive) {
			changed := testKubelet
			changed.Local = "local-2"
			d.pass(time.Minute).hear(LocalChanged{Kubelet: changed, Local: "local"}).pass(time.Minute)
		}, "local > local: start 300ms now report is Local"},
		"an edit": {func(s *Settings) { s.EditSpread = time.Minute }, func(d *drive) {
			d.edit("one", "1").pass(time.Minute).edit("two", "2").pass(2 * time.Minute)
		}, "one > two: wait 27.879007039s preflight 100ms start 300ms now report is InTrial"},
		"the reset waits": {nil, func(d *drive) {
			d.good("one").refuse("local", false).hear(LocalChanged{Kubelet: testKubelet, Local: "local"})
			d.s.Proofs = nil
			d.hear(Cleared{NodeUID: "node-uid"}).pass(time.Second)
		}, "one > local: preflight 100ms now wait is FallbackBroken open"},
		"the environment": {nil, func(d *drive) {
			d.refused["one"] = Proof{Outcome: 3, Words: "x"}
			d.assign("one").pass(time.Second)
		}, "local > one: preflight 100ms now wait is EnvironmentFailing open"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t)
			if row.settings != nil {
				row.settings(&d.s.Settings)
			}
			d.boot().slow().fresh()
			row.live(d)
			d.expectChange(row.want)
		})
	}
}

func TestSameGoal(t *testing.T) {
	lost, moved := version("one", "1", ""), version("other", "2", "one")
	for _, row := range []struct {
		a, b *Version
		want bool
	}{
		{nil, nil, true}, {nil, lost, false}, {lost, nil, false}, {lost, lost, true}, {lost, version("one", "2", ""), false},
		{version("one", "1", "one"), moved, true}, {version("one", "1", "one"), lost, true}, {version("one", "1", "one"), version("two", "1", "two"), false},
	} {
		if sameGoal(row.a, row.b) != row.want {
			t.Errorf("%s and %s: %t", Describe(row.a), Describe(row.b), !row.want)
		}
	}
}

func TestNoChangeIsNone(t *testing.T) {
	d := newDrive(t).boot().pass(time.Hour)
	if d.s.LastChange != (LastChange{}) {
		t.Errorf("got %+v", d.s.LastChange)
	}
}

func TestAChangeIsNotEndedByAStop(t *testing.T) {
	d := newDrive(t).boot()
	d.decide(assigned("one", "1", "one"))
	before := d.s.LastChange
	d.decide(StopAsked{})
	if d.s.LastChange != before {
		t.Errorf("got %+v, want %+v", d.s.LastChange, before)
	}
}

// Each stretch of a phase is told when it ends, once.
func TestPhasesAreTold(t *testing.T) {
	d := newDrive(t).boot().slow()
	d.phases = nil
	a := assigned("one", "1", "one")
	a.Download = 40 * time.Millisecond
	d.hear(a).pass(healthyAfter + time.Millisecond).hear(Reported{Began: d.s.LastChange.Began}).pass(time.Hour)
	want := []string{"download of one 40ms", "preflight of one 100ms", "stop of one 0s", "start of one 300ms", "report of one 1ms"}
	if !slices.Equal(d.phases, want) {
		t.Errorf("told: %q, want %q", d.phases, want)
	}
	for download, want := range map[time.Duration]bool{0: false, 1: true} {
		a := assigned("two", "1", "two")
		d.phases, a.Download = nil, download
		d.hear(a)
		told := slices.ContainsFunc(d.phases, func(p string) bool { return strings.HasPrefix(p, "download of two ") })
		if told != want || len(d.phases) == 0 {
			t.Errorf("downloaded in %s: told %q", download, d.phases)
		}
		d.assign("one").pass(time.Second)
	}
}

// The times of people's clocks: it began when its download did, and ended when it was healthy.
func TestWhenAChangeWas(t *testing.T) {
	d := newDrive(t, func(s *Settings) { s.EditSpread = 1 }).boot()
	at := d.s.Wall
	a := assigned("one", "1", "one")
	a.Download = time.Second
	d.hear(a).pass(time.Minute)
	if c := d.s.LastChange; !c.Began.Equal(at.Add(-time.Second)) || !c.Ended.Equal(at.Add(healthyAfter)) {
		t.Errorf("at %s it began %s and ended %s", at, c.Began, c.Ended)
	}
	at = d.s.Wall
	d.hear(assigned("one", "2", "two")).pass(time.Minute)
	if c := d.s.LastChange; !c.Began.Equal(at) || c.Took.Wait < Span(editQuiet) || c.Took.Wait > Span(editQuiet)+2 {
		t.Errorf("at %s it began %s and waited for %s", at, c.Began, c.Took.Wait)
	}
}

func TestLastChangeIsReported(t *testing.T) {
	d := newDrive(t).boot().assign("one").pass(time.Second)
	r, _ := Report(d.s)
	c := r.Details.Change
	if c == nil || c.To != "kube-system/one/kubelet" || c.From != nodev1.Local || c.Outcome != nodev1.ReasonInTrial || c.Phase != "" || c.Ended.IsZero() {
		t.Errorf("reported %+v", c)
	}
	if !r.ChangeToReport.Equal(d.s.LastChange.Began) || r.ChangeToReport.IsZero() {
		t.Errorf("the change of %s is to be reported", r.ChangeToReport)
	}
	d.hear(Reported{Began: d.s.LastChange.Began})
	if r, _ := Report(d.s); !r.ChangeToReport.IsZero() {
		t.Errorf("the change of %s is to be reported again", r.ChangeToReport)
	}
}

// A form that a later version reads.
func TestLastChangeIsWritten(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := LastChange{To: version("one", "1", "one"), Began: at, Ended: at, Phase: PhaseReport, Took: Phases{Start: Span(time.Second)}, Outcome: nodev1.ReasonActive, Resumed: true}
	text, err := json.Marshal(c)
	want := `{"to":{"source":{"namespace":"kube-system","name":"one","uid":"uid-of-cm","resourceVersion":"1","kubeletConfigKey":"kubelet"},"content":"one"},` +
		`"began":"2026-01-02T03:04:05Z","ended":"2026-01-02T03:04:05Z","phase":"report","phases":{"start":"1s"},"outcome":"Active","resumed":true}`
	if err != nil || string(text) != want {
		t.Errorf("%v, %s", err, text)
	}
	var again LastChange
	if err := json.Unmarshal(text, &again); err != nil || fmt.Sprint(again.Took) != fmt.Sprint(c.Took) || !again.Began.Equal(at) {
		t.Errorf("%v, %+v", err, again)
	}
}
