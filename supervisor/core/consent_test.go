package core

import (
	"strings"
	"testing"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// An approval that is withdrawn before the stop lets nothing through (rule 19). What had been taken is given back, on the disk too: a host that
// goes down then starts what ran. It was spent, so that another one is asked for.
func TestApprovalWithdrawn(t *testing.T) {
	for name, row := range map[string]struct {
		settings  func(*Settings)
		withdrawn func(d *drive)
		done      []string
	}{
		"while it is looked at": {
			withdrawn: func(d *drive) { d.until("the look", func(do Action) bool { _, is := do.(Foresee); return is }) },
			done:      []string{"foresee two"}},
		"while it is written": {
			withdrawn: func(d *drive) { d.until("the approval", spends) },
			done:      []string{"foresee two", "foresee two"}},
		"while the assignment is written": {
			withdrawn: func(d *drive) {
				d.until("the assignment", func(do Action) bool { save, is := do.(Save); return is && save.assigned != nil })
			},
			done: []string{"foresee two", "foresee two"}},
		"while the edit waits for its turn": {
			settings:  func(s *Settings) { s.EditSpread = time.Hour },
			withdrawn: func(d *drive) { d.hear(d.answer(d.s.Doing)).pass(2 * time.Second) },
			done:      []string{"foresee two", "foresee two"}},
		"while it comes to the lock": {
			settings:  parking,
			withdrawn: func(d *drive) { d.until("the lock", func(do Action) bool { _, is := do.(Park); return is }) },
			done:      []string{"foresee two", "park two", "unpark", "foresee two"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t, holding, func(s *Settings) {
				if row.settings != nil {
					row.settings(s)
				}
			}).boot().assign("one", "cm", "1").pass(12 * time.Minute)
			d.kills["two"] = 1
			d.edit("two", "2").fresh()
			approval := d.approval()
			d.decide(Consented{Value: approval})
			row.withdrawn(d)
			if d.decide(Consented{}); d.s.Doing != nil {
				d.hear(d.answer(d.s.Doing))
			}
			d.pass(5 * time.Second).expectDone(row.done...).expect("assigned=one@1 active=one@1 lkg=one@1 False WouldDisrupt").expectEvents()
			if d.disk.Assigned.Content != "one" || d.disk.Trial.Open {
				t.Errorf("on disk is assigned %s, trial %+v", nameOf(d.disk.Assigned), d.disk.Trial)
			}
			if spent := len(row.done) > 1; (d.approval() != approval) != spent || (d.s.Approval == approval) != spent {
				t.Errorf("the approval was %s, is %s, and spent is %q", approval, d.approval(), d.s.Approval)
			}
			second := d.approval()
			d.approve().pass(time.Hour)
			if got := nameOf(d.s.Child.Version); got != "two" || d.s.Approval != second {
				t.Errorf("with another approval %s runs, and spent is %q, not %q", got, d.s.Approval, second)
			}
		})
	}
}

func spends(do Action) bool { save, is := do.(Save); return is && save.spends }

// One approval is for one hold. Each row is how a change comes to be held again; the approval of before lets it through no more.
func TestOneApprovalIsOneAct(t *testing.T) {
	for name, row := range map[string]struct {
		before func(d *drive) // until something is held
		again  func(d *drive) // once it was made
		spent  bool           // the first approval was
	}{
		"the same content again": {func(d *drive) { d.assign("one") },
			func(d *drive) {
				d.kills["one"] = 0
				d.assign("two").pass(time.Minute)
				d.kills["one"] = 4
				d.assign("one")
			}, true},
		"the way back to local twice": {func(d *drive) { d.good("good").hear(Cleared{NodeUID: "node-uid"}) },
			func(d *drive) { d.good("other").hear(Cleared{NodeUID: "node-uid"}) }, true},
		"a rollback, and a retry": {func(d *drive) { d.good("good"); d.assign("one") },
			func(d *drive) {
				d.lease["one"] = false
				d.pass(3 * time.Minute)
				d.lease["one"] = true
				d.hear(Retry{Value: "again"}).pass(2 * time.Second)
			}, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t, holding).boot().pass(time.Minute)
			d.kills["one"], d.kills["local"] = 4, 4
			row.before(d)
			first := d.approval()
			d.approve().pass(time.Minute)
			if d.s.HoldStatus() != nil || d.s.Approval != first {
				t.Fatalf("it was not let through: %s, spent is %q, not %q", d.shown(), d.s.Approval, first)
			}
			row.again(d)
			d.pass(time.Minute)
			if r, _ := Report(d.s); r.Reason != nodev1.ReasonWouldDisrupt {
				t.Fatalf("it is not held: %s", d.shown())
			}
			if second := d.approval(); second == first {
				t.Error("it asks for the same approval")
			}
			d.expectMessage("; annotation allow-disruption=" + first + " was spent; drain the node, or set annotation kubelet-supervisor.io/allow-disruption=" + d.approval())
		})
	}
	t.Run("a drained node, a rollback, other pods, and a retry", func(t *testing.T) {
		d := newDrive(t, holding).boot().good("good").pass(time.Minute)
		d.kills["one"] = 4
		first := d.assign("one").approval()
		d.kills["one"], d.lease["one"] = 0, false
		d.pass(8 * time.Minute)
		d.kills["one"] = 4
		if d.hear(Retry{Value: "again"}).pass(2*time.Second).approval() == first {
			t.Errorf("another hold of the same change has its approval: %s", d.shown())
		}
	})
	t.Run("another configuration runs meanwhile", func(t *testing.T) {
		d := newDrive(t, holding).boot().good("good").assign("one").pass(time.Minute)
		d.kills["two"] = 2
		first := d.assign("two").approval()
		d.lease["one"] = false
		d.pass(3 * time.Minute)
		if !d.s.runs(version("good", "1", "good")) || d.approval() == first {
			t.Errorf("runs %s, and the approval was %s, and is %s", nameOf(d.s.Child.Version), first, d.approval())
		}
	})
	t.Run("a hold that ended by itself", func(t *testing.T) {
		for name, ends := range map[string]func(d *drive){
			"another assignment": func(d *drive) { d.assign("two").pass(time.Minute).hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute) },
			"back to what runs":  func(d *drive) { d.hear(Cleared{NodeUID: "node-uid"}) },
			"a drained node": func(d *drive) {
				d.kills["one"] = 0
				d.pass(2 * time.Minute).hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute)
			},
		} {
			d := heldOne(t)
			first := d.approval()
			ends(d)
			if d.s.Hold.Nonce != "" {
				t.Errorf("%s: %+v", name, d.s.Hold)
			}
			d.kills["one"] = 4
			d.hear(Consented{Value: first}).assign("one").pass(time.Minute).expect(heldLocal).expectMessage("allow-disruption=" + first + " is of another change")
		}
	})
}

// An approval is for the pods that the hold has named, unless it accepts any.
func TestAnApprovalIsForPodsThatWereNamed(t *testing.T) {
	const made = "assigned=one@1 active=one@1 lkg=- True InTrial"
	t.Run("one of them has left", func(t *testing.T) {
		d := heldOne(t)
		first := d.approval()
		d.kills["one"] = 2
		d.pass(3 * time.Minute)
		if d.kills["one"] = 3; d.pass(6*time.Minute).approval() != first {
			t.Error("it asks for another approval although it names no other pod")
		}
		d.approve().pass(time.Second).expect(made)
	})
	t.Run("another one has come", func(t *testing.T) {
		d := heldOne(t)
		first := d.approval()
		d.kills["one"] = 5
		d.approve().pass(time.Second).expect(heldLocal).expectMessage("5 of 7", "allow-disruption="+first+" is of another change")
		if d.approval() == first || d.s.Approval != "" {
			t.Errorf("it asks for %s, before for %s, and %q is spent", d.approval(), first, d.s.Approval)
		}
		d.approve().pass(time.Second).expect(made)
	})
	t.Run("another one has come, and any is accepted", func(t *testing.T) {
		d := heldOne(t)
		d.kills["one"] = 5
		first := d.approval()
		d.hear(Consented{Value: first + "+any"}).pass(time.Second).expect(made)
		if d.s.Approval != first {
			t.Errorf("%q is spent, not %q", d.s.Approval, first)
		}
	})
	t.Run("the fresh look is not answered", func(t *testing.T) {
		d := heldOne(t)
		d.silent = away
		d.approve().pass(time.Hour).expect(heldLocal).expectMessage("allow-disruption=" + d.approval() + " waits for an answer")
		d.silent = ""
		d.pass(2 * time.Minute).expect(made)
	})
	t.Run("it is not answered, and any is accepted", func(t *testing.T) {
		d := heldOne(t)
		d.silent = away
		d.hear(Consented{Value: d.approval() + "+any"}).pass(time.Second).expect(made)
	})
	t.Run("another comes while it is written", func(t *testing.T) {
		d := heldOne(t)
		first := d.approval()
		d.decide(Consented{Value: first})
		d.until("its write", spends)
		d.kills["one"] = 5
		d.now += 2 * outlookLasts
		d.hear(d.answer(d.s.Doing)).pass(time.Second).expect(heldLocal).expectMessage("allow-disruption=" + first + " was spent without effect")
		d.approve().pass(time.Second).expect(made)
	})
}

// The hold goes on, and its approval with it, whatever becomes of the supervisor.
func TestTheApprovalIsKept(t *testing.T) {
	for name, happens := range map[string]func(d *drive){
		"a reload":                          func(d *drive) { d.reload() },
		"another supervisor":                func(d *drive) { d.boot().assign("one").pass(time.Second) },
		"another supervisor, which is deaf": func(d *drive) { d.silent = away; d.boot().assign("one").pass(time.Second) },
		"a retry":                           func(d *drive) { d.hear(Retry{}) },
		"another kubelet on the disk":       func(d *drive) { d.hear(LocalChanged{Kubelet: newerKubelet, Local: "local"}).pass(time.Second) },
		"the ConfigMap is gone for a while": func(d *drive) { d.hear(gone).pass(time.Minute).assign("one") },
		"the Node is gone for a while":      func(d *drive) { d.hear(NodeGone{}).pass(time.Minute).assign("one") },
		"a crash of the kubelet":            func(d *drive) { d.hear(ChildExited{Code: 1, Words: "x", Delay: time.Second}).pass(10 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			d := heldOne(t)
			first := d.approval()
			happens(d)
			if got := d.expect(heldLocal).approval(); got != first {
				t.Errorf("the approval was %s, and is %s", first, got)
			}
			d.silent = ""
			d.approve().pass(2 * time.Second).expect("assigned=one@1 active=one@1 lkg=- True InTrial")
		})
	}
}

// So is that of a change of which nothing is known, and of one from a configuration that is not local.
func TestOtherApprovalsThatAreKept(t *testing.T) {
	t.Run("nobody has answered", func(t *testing.T) {
		d := newDrive(t, holding).boot().pass(time.Minute)
		d.silent = away
		first := d.assign("one").pass(2 * time.Minute).expect(heldLocal).approval()
		if again := d.boot().assign("one").pass(2 * time.Minute).expect(heldLocal).approval(); again != first {
			t.Errorf("the approval was %s, and is %s", first, again)
		}
	})
	t.Run("the way back to local, over a restart", func(t *testing.T) {
		d := newDrive(t, holding).boot().good("good").pass(time.Minute)
		d.kills["local"] = 2
		first := d.hear(Cleared{NodeUID: "node-uid"}).pass(time.Second).approval()
		if again := d.boot().hear(Cleared{NodeUID: "node-uid"}).pass(time.Second).approval(); again != first {
			t.Errorf("the approval was %s, and is %s", first, again)
		}
	})
	t.Run("the way back from what is refused, heard of again", func(t *testing.T) {
		d := newDrive(t, holding).boot().good("good").assign("one").pass(time.Minute)
		d.kills["good"] = 3
		first := d.refuse("bad", false).assign("bad").pass(time.Second).approval()
		again := assigned("bad", "1", "bad")
		again.Shadowed = true
		if again := d.hear(again).pass(time.Second).approval(); again != first {
			t.Errorf("the approval was %s, and is %s", first, again)
		}
	})
	t.Run("the kubelet crashes", func(t *testing.T) {
		d := newDrive(t, holding).boot().good("good").pass(time.Minute)
		d.kills["one"] = 2
		first := d.assign("one").approval()
		if again := d.hear(ChildExited{Code: 1, Words: "x", Delay: time.Second}).pass(10 * time.Second).approval(); again != first {
			t.Errorf("the approval was %s, and is %s", first, again)
		}
	})
}

// Who is killed between the spending and the stop asks again: nothing is let through twice.
func TestKilledAfterAnApprovalWasSpent(t *testing.T) {
	d := heldOne(t)
	first := d.approval()
	d.decide(Consented{Value: first})
	d.until("its write", spends)
	d.disk = d.s.Doing.(Save).Durable
	d.fresh().boot().hear(Consented{Value: first}).assign("one").pass(time.Second).expectDone("start local", "foresee one").expect(heldLocal)
	d.expectMessage("annotation allow-disruption=" + first + " was spent without effect; drain the node")
	if d.approval() == first || d.disk.Approval != first {
		t.Errorf("it asks for %s, and on the disk is spent %s, not %s", d.approval(), d.disk.Approval, first)
	}
}

// So does who is killed with one that accepts any, where another pod has come since.
func TestKilledAfterAnyWasSpent(t *testing.T) {
	d := heldOne(t)
	first := d.approval()
	d.decide(Consented{Value: first + "+any"})
	d.until("its write", spends)
	d.disk = d.s.Doing.(Save).Durable
	d.kills["one"] = 6
	d.boot().hear(Consented{Value: first + "+any"}).assign("one").pass(time.Second).expect(heldLocal).expectMessage("6 of 7", first+"+any was spent without effect")
	if d.approval() == first {
		t.Error("it asks for the same approval")
	}
}

// An approval that cannot be recorded is not used, for an assignment or for a removal.
func TestAnApprovalThatCannotBeRecorded(t *testing.T) {
	d := heldOne(t)
	d.saveErr = errDisk
	first := d.approval()
	d.approve().pass(time.Hour)
	if !d.s.runs(nil) || d.s.Approval != "" {
		t.Errorf("runs %s, and spent is %q: %q", nameOf(d.s.Child.Version), d.s.Approval, d.did)
	}
	d.saveErr = nil
	d.pass(time.Minute).expect("assigned=one@1 active=one@1 lkg=- True InTrial")
	if d.s.Approval != first {
		t.Errorf("%s is spent", d.s.Approval)
	}
}

func TestARemovalWhoseApprovalCannotBeRecorded(t *testing.T) {
	d := newDrive(t, holding).boot().good("good").pass(time.Minute)
	d.kills["local"] = 1
	d.hear(Cleared{NodeUID: "node-uid"})
	d.saveErr = errDisk
	before := len(d.saves)
	d.approve().pass(time.Minute)
	if n := len(d.saves) - before; !d.s.runs(version("good", "1", "good")) || n > 8 {
		t.Errorf("runs %s, and it was tried to write %d times", nameOf(d.s.Child.Version), n)
	}
	d.saveErr = nil
	d.pass(time.Minute).expect(nothing)
}

// Its write goes before that of the assignment, and before the stop.
func TestWhatAnApprovalIsWrittenBefore(t *testing.T) {
	for name, lives := range map[string]func(d *drive){
		"an assignment": func(d *drive) { d.kills["one"] = 1; d.assign("one") },
		"a removal":     func(d *drive) { d.good("good"); d.kills["local"] = 1; d.hear(Cleared{NodeUID: "node-uid"}) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t, holding).boot().pass(time.Minute)
			lives(d)
			was := d.disk
			d.decide(Consented{Value: d.approval()})
			d.until("its write", spends)
			save := d.s.Doing.(Save)
			if save.Durable.Approval != d.approval() || !Same(save.Durable.Assigned, was.Assigned) || save.Durable.Trial != was.Trial {
				t.Errorf("written is %+v", save.Durable)
			}
			d.decide(d.answer(save))
			if next, is := d.s.Doing.(Save); !is || next.spends || d.disk.Approval == "" {
				t.Errorf("then comes %+v", d.s.Doing)
			}
		})
	}
}

// What the status document says of a hold.
func TestHoldStatus(t *testing.T) {
	d := newDrive(t, holding).boot().pass(time.Minute)
	if d.s.HoldStatus() != nil {
		t.Error("something is held")
	}
	d.kills["one"] = 2
	d.assign("one").pass(time.Second)
	h := d.s.HoldStatus()
	asOf := h.AsOf
	want := nodev1.Loss{Pod: "default/1", UID: "uid-1", Reason: "OutOfpods"}
	if len(h.Approval) != 12 || !h.Known || h.WaitsFor != "" || len(h.Losses) != 2 || h.Losses[0] != want || h.More != 0 || asOf.IsZero() {
		t.Errorf("got %+v", h)
	}
	if d.pass(20 * time.Minute); !d.s.HoldStatus().AsOf.Equal(asOf) {
		t.Error("its time moves with each look")
	}
	d.silent = away
	d.pass(6 * time.Minute)
	if h = d.s.HoldStatus(); h.Known || h.WaitsFor != away || len(h.Losses) != 2 || !h.AsOf.Equal(asOf) {
		t.Errorf("unanswered: %+v", h)
	}
	if h = d.boot().assign("one").pass(time.Second).s.HoldStatus(); h.Known || h.WaitsFor != away || len(h.Losses) != 2 || !h.AsOf.Equal(asOf) {
		t.Errorf("after a restart: %+v", h)
	}
	d.expectMessage("waits: running pods would be lost, when it was last known: 2, default/2 among them; since then it is not known: " + away)
	d.silent, d.kills["one"], d.unsure = "", 0, "the kubelet is a script"
	d.pass(time.Hour).expect(heldLocal)
	if h = d.s.HoldStatus(); h.Known || h.WaitsFor != d.unsure || len(h.Losses) != 2 {
		t.Errorf("it cannot be known any more: %+v", h)
	}
	d.unsure = ""
	d.pass(6 * time.Minute).expect("assigned=one@1 active=one@1 lkg=- True InTrial")
}

func TestTooManyNames(t *testing.T) {
	s := State{}
	pod := func(prefix string, i int) nodev1.Loss {
		return nodev1.Loss{UID: prefix + strings.Repeat("x", i)}
	}
	for i := range namedMost {
		s.Hold.Named = append(s.Hold.Named, pod("old", i))
	}
	s.Outlook.Losses = []nodev1.Loss{pod("old", 0), pod("new", 0), pod("new", 1)}
	s.name(s.Wall, s.Outlook.Losses[1:])
	if len(s.Hold.Named) != namedMost+2 || !names(s.Hold.Named, pod("old", 0)) {
		t.Errorf("%d are named", len(s.Hold.Named))
	}
	s.Outlook.Losses = []nodev1.Loss{pod("newer", 0)}
	s.name(s.Wall, s.Outlook.Losses)
	if len(s.Hold.Named) != namedMost+1 || names(s.Hold.Named, pod("old", 1)) || !names(s.Hold.Named, pod("new", 1)) {
		t.Errorf("%d are named", len(s.Hold.Named))
	}
}

// An approval that was spent lets nothing through, also while there is no other yet to ask for.
func TestASpentApproval(t *testing.T) {
	for name, row := range map[string]struct {
		change func(s *State)
		want   bool
	}{
		"it is":                {func(*State) {}, true},
		"spent":                {func(s *State) { s.Hold.Spent = true }, false},
		"of what ran before":   {func(s *State) { s.Hold.Runs = "c" }, false},
		"of another change":    {func(s *State) { s.Hold.To = "c" }, false},
		"none was asked for":   {func(s *State) { s.Hold.Nonce = "" }, false},
		"the hold is over":     {func(s *State) { s.Hold = HeldChange{}; s.Consent = string(s.Hold.approval()) }, false},
		"the value of another": {func(s *State) { s.Consent = "0123456789ab" }, false},
	} {
		s := State{Process: Process{Child: Child{Alive: true, Version: version("a", "1", "a")}}}
		s.Hold = HeldChange{Runs: "a", To: "b", Nonce: "n"}
		s.Consent = string(s.Hold.approval())
		row.change(&s)
		b := version("b", "1", "b")
		s.LetThrough = true
		if got := s.isApproved(s.Settings, s.changeTo(b)); got != row.want {
			t.Errorf("%s: approved %v", name, got)
		}
		if asks := s.approval(s.changeTo(b)) != ""; asks != (row.want || s.Consent == "0123456789ab") {
			t.Errorf("%s: it asks for %q", name, s.approval(s.changeTo(b)))
		}
		if through := s.isLetThrough(s.changeTo(b)); through != (row.want || s.Hold.Spent) {
			t.Errorf("%s: let through %v", name, through)
		}
	}
}

// What is said of a value of the annotation that lets nothing through, or not yet.
func TestWhyNotApproved(t *testing.T) {
	open := HeldChange{Runs: "a", To: "b", Nonce: "n", Named: []nodev1.Loss{{Pod: "default/a"}}, Wasted: "0123456789ab"}
	approval := string(open.approval())
	for value, row := range map[string]struct {
		known bool
		want  string
	}{
		"":                 {true, ""},
		approval:           {true, ""},
		approval + " ":     {true, " is of another change"},
		approval + "+any":  {false, ""},
		"0123456789ab":     {true, " was spent without effect"},
		"0123456789ab+any": {true, " was spent without effect"},
		"ba9876543210":     {true, " was spent"},
		"ba9876543210+any": {false, " was spent"},
		"something else":   {true, " is of another change"},
		"+any":             {true, " is of another change"},
	} {
		s := State{Process: Process{Child: Child{Alive: true, Version: version("a", "1", "a")}}, Held: Held{Consent: value, Outlook: Outlook{Known: row.known}}}
		s.Hold, s.Approval = open, "ba9876543210"
		want := row.want
		if want != "" {
			want = "annotation allow-disruption=" + value + want
		}
		if got := s.whyNotApproved(s.Settings, s.changeTo(version("b", "1", "b"))); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
	s := State{Process: Process{Child: Child{Alive: true, Version: version("a", "1", "a")}}, Held: Held{Consent: "+any"}}
	if got := s.whyNotApproved(s.Settings, s.changeTo(version("b", "1", "b"))); got != "annotation allow-disruption=+any is of another change" {
		t.Error(got)
	}
	s.Consent, s.Hold = approval, open
	if got := s.whyNotApproved(s.Settings, s.changeTo(version("b", "1", "b"))); got != "annotation allow-disruption="+approval+" waits for an answer, and with +any at its end would not" {
		t.Error(got)
	}
}
