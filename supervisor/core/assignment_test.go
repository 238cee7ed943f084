package core

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

var sourceMissing = SyncFailed{Text: "x", Problem: Problem{Error: "failed to sync: x", Words: "x"}}

// What becomes of a request when another one comes before it is carried out, and what it leaves behind.
func TestRequests(t *testing.T) {
	const boomed = "exit code 1: boom"
	shadowed := assigned("good", "1", "good")
	shadowed.Shadowed = true
	full := func(d *drive) { d.saveErr = errDisk }
	mended := func(d *drive) { d.saveErr = nil; d.pass(time.Minute) }
	broken := func(d *drive) {
		d.refuse("broken", false).hear(LocalChanged{Kubelet: testKubelet, Local: "broken"}).pass(time.Minute)
	}
	heal := func(d *drive) { d.hear(LocalChanged{Kubelet: testKubelet, Local: "mended"}).pass(time.Minute) }
	for _, row := range []struct {
		name     string
		when     func(d *drive) // good is lastKnownGood
		done     []string
		shown    string
		observed string
	}{
		{"a reset that waits is taken back by an assignment",
			func(d *drive) { broken(d); d.hear(Cleared{NodeUID: "node-uid"}).fresh().assign("good"); heal(d) },
			[]string{"prove mended"}, goodActive, "kube-system/good/kubelet"},
		{"a reset that waits is what the report speaks of",
			func(d *drive) {
				broken(d)
				d.fresh().hear(Cleared{Text: "local", NodeUID: "node-uid"}).pass(time.Minute)
			},
			nil, "assigned=good@1 active=good@1 lkg=good@1 False FallbackBroken", "local"},
		{"an assignment that was lost and is there again",
			func(d *drive) { d.hear(Cleared{NodeUID: "another"}).assign("good") }, nil, goodActive, "kube-system/good/kubelet"},
		{"an assignment that was lost, then local", func(d *drive) { d.hear(Cleared{NodeUID: "another"}).hear(Cleared{Text: "local"}).pass(time.Minute) },
			[]string{"stop", "start local"}, nothing, "local"},
		{"one that waits for the disk is dropped for what holds",
			func(d *drive) { full(d); d.assign("newer").assign("good"); mended(d) }, nil, goodActive, "kube-system/good/kubelet"},
		{"or for a removal", func(d *drive) { full(d); d.assign("newer").hear(Cleared{NodeUID: "node-uid"}); mended(d) },
			[]string{"stop", "start local"}, nothing, ""},
		{"or for one that cannot be had", func(d *drive) { full(d); d.assign("newer").hear(sourceMissing); mended(d) },
			nil, "assigned=good@1 active=good@1 lkg=good@1 False SyncFailed sync: x", "x"},
		{"one that cannot be had comes while another is written",
			func(d *drive) {
				d.decide(assigned("newer", "1", "newer"))
				d.decide(sourceMissing)
				d.hear(d.answer(d.s.Doing)).pass(time.Minute)
			},
			[]string{"prove newer", "stop", "start newer"}, "assigned=newer@1 active=newer@1 lkg=good@1 False SyncFailed sync: x", "x"},
		{"what cannot be rendered is written anew", func(d *drive) {
			d.startErr = map[string]error{"newer": errDisk, "good": errDisk}
			d.assign("newer").pass(time.Minute).fresh()
			d.startErr = nil
			d.assign("newer").pass(time.Minute)
		}, []string{"stop", "start newer"}, "assigned=newer@1 active=newer@1 lkg=good@1 True InTrial", "kube-system/newer/kubelet"},
		{"a shadowed one is no more once it is removed", func(d *drive) {
			d.hear(shadowed).expectMessage("the annotation wins over spec.configSource, which names another source").hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute)
			d.says("using current (default); nothing is assigned")
		}, []string{"stop", "start local"}, nothing, ""},
		{"another one is not kept waiting by what the environment was blamed for", func(d *drive) {
			d.refused["newer"] = Proof{Outcome: kubeletconfig.Environment, Words: "unknown flag"}
			d.assign("newer").pass(time.Second).assign("newest").pass(time.Second)
		}, []string{"prove newer", "prove newest", "stop", "start newest"}, "assigned=newest@1 active=newest@1 lkg=good@1 True InTrial", "kube-system/newest/kubelet"},
		{"nor are the files after a change of them", func(d *drive) {
			d.refused["newer"] = Proof{Outcome: kubeletconfig.Environment, Words: "unknown flag"}
			d.assign("newer").pass(time.Second).refused["newer"] = Proof{Outcome: kubeletconfig.Accepted}
			d.hear(LocalChanged{Kubelet: testKubelet, Local: "local"}).pass(time.Second)
		}, []string{"prove newer", "prove newer", "stop", "start newer"}, "assigned=newer@1 active=newer@1 lkg=good@1 True InTrial", "kube-system/newer/kubelet"},
		{"what runs goes on while the environment is to blame", func(d *drive) {
			d.refused["newer"] = Proof{Outcome: kubeletconfig.Environment, Words: "unknown flag"}
			d.assign("newer").pass(20 * time.Second)
		}, []string{"prove newer"}, "assigned=newer@1 active=good@1 lkg=good@1 Unknown EnvironmentFailing", "kube-system/newer/kubelet"},
		{"when nothing runs the trial has to tell", func(d *drive) {
			d.refused["newer"] = Proof{Outcome: kubeletconfig.Environment, Words: "unknown flag"}
			d.assign("newer").pass(time.Second).hear(ChildExited{}).pass(2 * time.Second)
		}, []string{"prove newer", "start newer"}, "assigned=newer@1 active=newer@1 lkg=good@1 True InTrial", "kube-system/newer/kubelet"},
		{"a reset waits, too, until the environment may be asked again", func(d *drive) {
			d.refused["edited"] = Proof{Outcome: kubeletconfig.Environment, Words: "unknown flag"}
			d.hear(LocalChanged{Kubelet: testKubelet, Local: "edited"}).pass(15 * time.Second).fresh()
			delete(d.refused, "edited")
			d.hear(Cleared{NodeUID: "node-uid"}).pass(10 * time.Second).expectDone().pass(environmentRecheck)
		}, []string{"prove edited", "stop", "start local"}, nothing, ""},
		{"the environment is not to blame any more, and nothing else is done", func(d *drive) {
			d.refused["edited"] = Proof{Outcome: kubeletconfig.Environment, Words: "unknown flag"}
			d.hear(LocalChanged{Kubelet: testKubelet, Local: "edited"}).pass(15 * time.Second).expect("assigned=good@1 active=good@1 lkg=good@1 Unknown EnvironmentFailing")
			delete(d.refused, "edited")
			d.pass(environmentRecheck)
		}, []string{"prove edited", "prove edited"}, goodActive, "kube-system/good/kubelet"},
		{"a Node whose UID was not known has its assignment removed", func(d *drive) {
			d.s.NodeUID = ""
			d.hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute)
		}, []string{"stop", "start local"}, nothing, ""},
		{"nothing can be lost where nothing is assigned", func(d *drive) {
			d.hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute).fresh().hear(Cleared{NodeUID: "another"}).pass(time.Minute).expectEvents()
		}, nil, nothing, ""},
		{"a lost one is what the report speaks of after a restart", func(d *drive) {
			d.boot().fresh().hear(Cleared{NodeUID: "another"}).pass(time.Minute)
		}, nil, "assigned=good@1 active=good@1 lkg=good@1 False AssignmentLost", "kube-system/good/kubelet"},
		{"what was wrong before is not said of another one", func(d *drive) {
			d.s.Warning = "meta/trial was set aside"
			d.hear(ChildExited{Code: 1, Words: boomed}).pass(time.Second).hangs["newer"] = true
			d.assign("newer").pass(2 * time.Second)
			d.says(`using current (UID: "uid-of-cm"); the kubelet is not healthy yet; wait, or see the kubelet's log`)
		}, []string{"start good", "prove newer", "stop", "start newer"}, "assigned=newer@1 active=good@1 lkg=good@1 Unknown Applying", "kube-system/newer/kubelet"},
		{"nor of local", func(d *drive) {
			d.hear(ChildExited{Code: 1, Words: boomed}).pass(time.Second).hangs[""] = true
			d.s.Environment, d.s.EnvironmentRetry = "no runtime", d.now+time.Hour
			d.hear(Cleared{NodeUID: "node-uid"}).pass(2 * time.Second)
			d.says("using current (default); the kubelet is not healthy yet; wait, or see the kubelet's log")
		}, []string{"start good", "stop", "start local"}, "assigned=- active=good@1 lkg=- Unknown Applying", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t).boot().good("good").fresh()
			d.s.Proofs = append(d.s.Proofs, Proof{Content: "local", Kubelet: testKubelet, Outcome: kubeletconfig.Accepted})
			row.when(d)
			d.expectDone(row.done...).expect(row.shown)
			if r, _ := Report(d.s); r.Observed == nil || *r.Observed != row.observed {
				t.Errorf("observed %v, want %q", r.Observed, row.observed)
			}
		})
	}
}

// What holds already costs no write; what says the same in other words, or of another Node, is written.
func TestTheSameAgain(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*Assigned)
		writes int
	}{
		{"to the letter", func(*Assigned) {}, 0},
		{"another reference", func(a *Assigned) { a.Text += "@uid-of-cm" }, 1},
		{"another Node", func(a *Assigned) { a.NodeUID = "another" }, 1},
	} {
		d := newDrive(t).boot().good("good").fresh()
		a := assigned("good", "1", "good")
		row.change(&a)
		d.hear(a).expect(goodActive).expectDone()
		if len(d.saves) != row.writes || d.disk.Text != a.Text || d.disk.NodeUID != a.NodeUID {
			t.Errorf("%s: %d writes, on disk %s of %s", row.name, len(d.saves), d.disk.Text, d.disk.NodeUID)
		}
	}
	t.Run("while something else is written", func(t *testing.T) {
		d := newDrive(t).boot().good("good").fresh()
		d.s.Doing = Save{Durable: d.s.durable()}
		d.decide(assigned("good", "1", "good"))
		if d.hear(Saved{}); len(d.saves) > 0 {
			t.Errorf("%d writes", len(d.saves))
		}
	})
	t.Run("the write of a new one holds it", func(t *testing.T) {
		d := newDrive(t).boot().good("good")
		d.decide(assigned("newer", "1", "newer"))
		if save := d.s.Doing.(Save).Durable; contentOf(save.Assigned) != "newer" || contentOf(save.LastKnownGood) != "good" {
			t.Errorf("written is %+v", save)
		}
	})
	t.Run("one that cannot be rendered is rendered anew", func(t *testing.T) {
		d := newDrive(t).boot()
		d.startErr = map[string]error{"spoilt": errDisk}
		d.assign("spoilt").pass(time.Minute).fresh()
		d.startErr = nil
		d.assign("spoilt").expectDone("stop", "start spoilt")
	})
	t.Run("one whose checkpoint was lost, from another source", func(t *testing.T) {
		d := newDrive(t).boot().good("good")
		lost := &Version{Source: d.disk.Assigned.Source}
		d.disk.Assigned, d.disk.LastKnownGood = lost, lost
		d.boot().assign("good", "copy", "7").pass(time.Minute).expect("assigned=good@7 active=good@7 lkg=good@7 True Active")
	})
	t.Run("last known good moves along, though what it was promoted with cannot be read", func(t *testing.T) {
		d := newDrive(t).boot().good("good")
		d.s.Promoted = Promotion{}
		if d.assign("good", "good", "2"); d.s.LastKnownGood.Source.ResourceVersion != "2" {
			t.Errorf("last known good is %s", Describe(d.s.LastKnownGood))
		}
		d.disk.LastKnownGood = &Version{Source: d.disk.Assigned.Source}
		d.disk.Assigned, d.disk.Promoted = d.disk.LastKnownGood, Promotion{}
		if d.boot().assign("good", "good", "2"); contentOf(d.s.LastKnownGood) != "good" {
			t.Errorf("last known good is %s", Describe(d.s.LastKnownGood))
		}
	})
	t.Run("an excuse holds for equal content", func(t *testing.T) {
		d := newDrive(t).boot().assign("bad").pass(time.Second)
		d.s.Excuses = Excuses{"bad", 3}
		if d.assign("bad", "bad", "2"); d.s.Excuses.Times != 3 {
			t.Errorf("excuses: %+v", d.s.Excuses)
		}
		if d.assign("other"); d.s.Excuses != (Excuses{}) {
			t.Errorf("excuses for another one: %+v", d.s.Excuses)
		}
	})
}

// A retry forgets what speaks against configurations, and keeps what speaks for them or for what runs.
func TestRetry(t *testing.T) {
	t.Run("verdicts", func(t *testing.T) {
		d := newDrive(t).boot().good("good").assign("young")
		d.deadly["young"] = time.Second
		d.pass(time.Minute).refuse("bad", false).assign("bad").pass(time.Second).assign("young").pass(time.Second)
		d.expect("assigned=young@1 active=good@1 lkg=good@1 False Rejected run config")
		clear(d.deadly)
		d.s.Suspects, d.s.Excuses = []Suspect{{Version: *version("bad", "1", "bad"), Kubelet: newerKubelet}}, Excuses{"young", 2}
		d.s.Proofs = append(d.s.Proofs, Proof{Content: "other", Kubelet: testKubelet, Outcome: kubeletconfig.Accepted})
		d.s = after(d.s, Retry{Value: "x"})
		var kept []string
		for _, p := range d.s.Proofs {
			kept = append(kept, p.Content)
		}
		if !slices.Equal(kept, []string{"good", "local", "other"}) || d.s.Rejected != nil || d.s.Suspects != nil || d.s.Excuses != (Excuses{}) || d.s.Retry != "x" {
			t.Errorf("kept %q, %+v, %+v, %+v", kept, d.s.Rejected, d.s.Suspects, d.s.Excuses)
		}
	})
	t.Run("the last known good one is proved anew, unless it runs", func(t *testing.T) {
		d := newDrive(t).boot().good("good").refuse("bad", false).assign("bad")
		d.startErr = map[string]error{"good": errDisk}
		d.hear(ChildExited{}).pass(time.Minute).fresh()
		d.startErr = nil
		d.hear(Retry{}).expectDone("prove bad", "prove good", "stop", "start good")
	})
	t.Run("the same value again says nothing", func(t *testing.T) {
		d := newDrive(t).boot().hear(Retry{Value: "x"}).pass(time.Minute)
		d.deadly["bad"] = time.Second
		d.assign("bad").pass(time.Minute).fresh().hear(Retry{Value: "x"}).expectDone()
		d.boot().fresh().hear(Retry{Value: "x"}).expectDone().hear(Retry{Value: "y"}).expectDone("prove bad", "stop", "start bad")
	})
	t.Run("a pause is over", func(t *testing.T) {
		d := newDrive(t).boot().hear(ChildExited{Code: 1, Words: "boom", Delay: time.Hour}).fresh()
		d.hear(Retry{}).expectDone("start local")
	})
	t.Run("the environment is asked again", func(t *testing.T) {
		d := newDrive(t).boot()
		d.refused["good"] = Proof{Outcome: kubeletconfig.Environment, Words: "unknown flag"}
		d.assign("good").fresh()
		delete(d.refused, "good")
		d.hear(Retry{}).expectDone("prove good", "stop", "start good")
	})
	t.Run("a kubelet that went past its check is asked again", func(t *testing.T) {
		d := newDrive(t).boot()
		d.assign("good").pass(time.Minute)
		d.s.Proofs = []Proof{{Content: AnyContent, Kubelet: testKubelet, Outcome: kubeletconfig.Unknown, Words: "it started"}}
		d.s.Disk.Proofs = d.s.Proofs
		d.fresh().assign("other").expectDone("stop", "start other").fresh()
		d.hear(Retry{}).pass(time.Second)
		if d.s.proof(AnyContent, testKubelet) != nil || !d.s.runs(d.s.Assigned) {
			t.Errorf("kept %+v, and runs %+v", d.s.Proofs, d.s.Child.Version)
		}
		d.fresh().assign("third").expectDone("prove third", "stop", "start third")
	})
	t.Run("a file that could not be made is made again", func(t *testing.T) {
		d := newDrive(t).boot()
		d.startErr = map[string]error{"good": errDisk}
		d.assign("good").pass(time.Minute).fresh()
		d.startErr = nil
		d.hear(Retry{}).expectDone("prove good", "stop", "start good")
	})
}

// after is the state after an event, none of whose actions is answered.
func after(s State, e Event) State {
	s, _ = Decide(s, Moment{Now: s.Now}, e)
	return s
}

// Verdicts of the pre-flight, and what is kept of them.
func TestVerdicts(t *testing.T) {
	proving := func(do Action) bool { _, is := do.(Prove); return is }
	asked := func(t *testing.T) *drive {
		d := newDrive(t).boot().pass(time.Minute).fresh()
		d.decide(assigned("good", "1", "good"))
		d.until("the pre-flight", proving)
		return d
	}
	t.Run("one that was abandoned is asked for again", func(t *testing.T) {
		d := asked(t)
		d.decide(Proved{})
		if !proving(d.step.Do) || len(d.s.Proofs) > 0 {
			t.Errorf("then %T, kept %+v", d.step.Do, d.s.Proofs)
		}
	})
	t.Run("a kubelet that must not be asked is not asked by the next supervisor either, nor for another configuration", func(t *testing.T) {
		d := asked(t).hear(Proved{Proof: Proof{Content: "good", Kubelet: testKubelet, Outcome: kubeletconfig.Refused, Words: "it started"}, NoMorePreflight: true})
		want := []Proof{{Content: AnyContent, Kubelet: testKubelet, Outcome: kubeletconfig.Unknown, Words: "it started"}}
		if !reflect.DeepEqual(d.s.Proofs, want) {
			t.Errorf("kept %+v", d.s.Proofs)
		}
		d.expectEvents("KubeletConfigChanged").expectDone("stop", "start good").boot().fresh().assign("other").expectDone("stop", "start other")
		t.Run("but another binary is", func(t *testing.T) {
			d.hear(LocalChanged{Kubelet: newerKubelet, Local: "local"}).fresh().assign("third").expectDone("prove third", "stop", "start third")
		})
	})
	t.Run("one of each kubelet is kept", func(t *testing.T) {
		d := newDrive(t).boot().good("good").hear(LocalChanged{Kubelet: newerKubelet, Local: "local"}).pass(time.Minute).fresh()
		d.hear(LocalChanged{Kubelet: testKubelet, Local: "local"}).hear(ChildExited{}).pass(time.Minute).expectDone("start good")
	})
	t.Run("what has just been started is asked about once it is healthy", func(t *testing.T) {
		d := newDrive(t).boot().good("good").hear(ChildExited{}).hear(LocalChanged{Kubelet: newerKubelet, Local: "local"}).fresh()
		d.pass(9*time.Second).expectDone().pass(2*time.Second).expectDone("prove good", "prove local")
	})
	t.Run("a rejection holds for one command line", func(t *testing.T) {
		d := newDrive(t).boot()
		d.deadly["bad"] = time.Second
		d.assign("bad").pass(time.Minute).fresh()
		clear(d.deadly)
		d.hear(LocalChanged{Kubelet: kubeletconfig.Identity{Binary: "binary-1", Arguments: "arguments-2", Local: "local-1"}, Local: "local"})
		d.expectDone("prove bad", "stop", "start bad")
	})
}

// Turns of edits.
func TestTurns(t *testing.T) {
	begin := func(t *testing.T) *drive {
		d := newDrive(t, func(s *Settings) { s.EditSpread = time.Hour }).boot()
		return d.assign("one", "cm", "1").pass(time.Minute).fresh()
	}
	t.Run("no spread, no turn", func(t *testing.T) {
		if got := spread("node-uid", "2", 0); got != 0 {
			t.Errorf("%s", got)
		}
	})
	t.Run("another assignment is immediate, though an edit waits", func(t *testing.T) {
		begin(t).edit("two", "2").assign("three", "other", "1").expectDone("prove two", "prove three", "stop", "start three")
	})
	t.Run("an edit that was taken back leaves its turn to nobody", func(t *testing.T) {
		d := begin(t).edit("two", "2").edit("one", "3").pass(30 * time.Second)
		turn := spread("node-uid", "4", time.Hour)
		d.edit("four", "4").pass(turn-time.Second).expectDone("prove two", "prove four").pass(2*time.Second).
			expectDone("prove two", "prove four", "stop", "start four")
	})
	t.Run("a refused edit does not keep the last known good one waiting", func(t *testing.T) {
		d := begin(t)
		d.s.EditSpread = 0
		d.pass(11*time.Minute).assign("two", "cm", "2").pass(time.Minute).s.EditSpread = time.Hour
		d.fresh().edit("three", "3").pass(time.Second).refuse("four", true).edit("four", "4")
		d.expectDone("prove three", "prove four", "stop", "start one")
	})
	t.Run("the turn ends with a start", func(t *testing.T) {
		d := begin(t)
		d.s.FollowLocal = true
		d.edit("two", "2").pass(spread("node-uid", "2", time.Hour)).pass(time.Minute).fresh()
		d.hear(LocalChanged{Kubelet: newerKubelet, Local: "local"}).pass(5*time.Second).expectDone("prove two", "stop", "start two")
	})
	t.Run("but not with one of what ran last, after a crash", func(t *testing.T) {
		d := begin(t)
		d.s.Disruption = Hold
		turn := spread("node-uid", "2", time.Hour)
		d.edit("two", "2").hear(ChildExited{Code: 1, Words: "boom", Delay: time.Second}).pass(time.Minute)
		d.expectDone("prove two", "foresee two", "start one").expectMessage("the edit kube-system/cm/kubelet (UID uid-of-cm, resourceVersion 2) waits for its turn")
		d.pass(turn-2*time.Minute).expectDone("prove two", "foresee two", "start one").
			pass(2*time.Minute).expectDone("prove two", "foresee two", "start one", "foresee two", "stop", "start two")
	})
	t.Run("and with the end of what ran last", func(t *testing.T) {
		d := begin(t)
		d.edit("two", "2").deadly["one"] = time.Second
		d.pass(time.Minute).expectDone("prove two", "start one", "start one", "start two")
	})
	t.Run("and with a reset", func(t *testing.T) {
		d := begin(t).edit("two", "2").hear(LocalChanged{Kubelet: testKubelet, Local: "local"}).pass(time.Second)
		d.decide(Cleared{NodeUID: "node-uid"})
		d.until("the stop", func(do Action) bool { _, is := do.(Stop); return is })
		d.now += 2 * time.Second
		d.decide(Ticked{})
		d.says(`using current (UID: "uid-of-cm"); a change is under way`)
	})
	t.Run("and with another cluster", func(t *testing.T) {
		d := begin(t)
		d.s.Cluster = []string{"key-1"}
		d.edit("two", "2").decide(ClusterSeen{Keys: []string{"key-2"}})
		d.until("the stop", func(do Action) bool { _, is := do.(Stop); return is })
		d.now += 2 * time.Second
		d.decide(Ticked{})
		d.expectMessage("; a change is under way; ")
	})
	t.Run("an assignment whose source was lost has none", func(t *testing.T) {
		d := newDrive(t, func(s *Settings) { s.EditSpread = time.Hour })
		d.disk.Text, d.disk.NodeUID = "kube-system/one/kubelet", "node-uid"
		d.boot().assign("one").expectDone("start local", "prove one", "stop", "start one")
	})
}
