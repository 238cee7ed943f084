package core

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// Rule 21: ignorance changes nothing. What is held stays held until a look knows that nothing would be lost.

const (
	away       = "listing the pods of Node n1: too many requests"
	heldLocal  = "assigned=- active=- lkg=- False WouldDisrupt"
	localStays = "assigned=- active=- lkg=- "
)

// heldOne is a node whose local configuration runs, and where assignment one is held.
func heldOne(t *testing.T) *drive {
	d := newDrive(t, holding).boot().pass(time.Minute)
	d.kills["one"] = 4
	return d.assign("one").pass(time.Second).expect(heldLocal).fresh()
}

// reload hands the state over, as one program does to the next.
func (d *drive) reload() *drive {
	d.t.Helper()
	data, err := json.Marshal(d.s)
	if err != nil {
		d.t.Fatal(err)
	}
	settings := d.s.Settings
	d.s = State{}
	if err := json.Unmarshal(data, &d.s); err != nil {
		d.t.Fatal(err)
	}
	d.s.Settings = settings
	return d.hear(LocalChanged{Kubelet: d.s.OnDisk, Local: d.s.Local})
}

// Each row is something that is no answer. It lets nothing through, however long it lasts.
func TestWhatIsHeldStaysHeld(t *testing.T) {
	for name, happens := range map[string]func(d *drive){
		"no look is answered any more":                    func(d *drive) { d.silent = away },
		"what was known cannot be known any more":         func(d *drive) { d.kills["one"], d.unsure = 0, "the kubelet is a script" },
		"and a retry is asked for":                        func(d *drive) { d.silent = away; d.hear(Retry{}) },
		"the program is reloaded":                         func(d *drive) { d.silent = away; d.reload() },
		"the kubelet's program is replaced":               func(d *drive) { d.silent = away; d.hear(LocalChanged{Kubelet: newerKubelet, Local: "local"}) },
		"the node's own file is edited":                   func(d *drive) { d.silent = away; d.hear(LocalChanged{Kubelet: testKubelet, Local: "edited"}) },
		"both, and a reload":                              func(d *drive) { d.silent = away; d.hear(LocalChanged{Kubelet: newerKubelet, Local: "edited"}).reload() },
		"the Node is gone":                                func(d *drive) { d.kills["one"] = 0; d.hear(NodeGone{}) },
		"it is gone, and nothing answers":                 func(d *drive) { d.silent = away; d.hear(NodeGone{}) },
		"the same content at another version":             func(d *drive) { d.silent = away; d.assign("one", "cm", "2") },
		"the kubelet crashes":                             func(d *drive) { d.silent = away; d.hear(ChildExited{Code: 1, Words: "x", Delay: time.Second}) },
		"the pre-flight of another kubelet never answers": func(d *drive) { d.mute["one"] = -1; d.hear(LocalChanged{Kubelet: newerKubelet, Local: "local"}) },
	} {
		t.Run(name, func(t *testing.T) {
			d := heldOne(t)
			happens(d)
			for range 30 {
				d.pass(time.Minute)
				if r, _ := Report(d.s); !d.s.NodeGone && r.Reason != nodev1.ReasonWouldDisrupt {
					t.Fatalf("after %s: %s", d.now-d.began, d.shown())
				}
			}
			if !d.s.runs(nil) || d.disk.Assigned != nil {
				t.Errorf("runs %s, on the disk is %s: %q", nameOf(d.s.Child.Version), nameOf(d.disk.Assigned), d.did)
			}
			if slices.Contains(d.events, "KubeletConfigHeld") {
				t.Error("it is told again")
			}
		})
	}
}

// What did not answer is asked again after 1 s, doubling to a minute, and once it answers the change goes its way.
func TestALookIsAskedForAgain(t *testing.T) {
	for name, row := range map[string]struct {
		kills int
		shown string
	}{
		"it would kill none": {0, "assigned=one@1 active=one@1 lkg=- True InTrial"},
		"it would kill pods": {3, heldLocal},
	} {
		t.Run(name, func(t *testing.T) {
			d := heldOne(t)
			d.silent = away
			var pauses []time.Duration
			for last := d.s.Outlook.At; len(pauses) < 9; {
				d.pass(100 * time.Millisecond)
				if at := d.s.Outlook.At; at > last {
					pauses, last = append(pauses, at-last), at
				}
			}
			for i, about := range []time.Duration{60, 1, 2, 4, 8, 16, 32, 60, 60} {
				if about *= time.Second; pauses[i] < about*9/10 || pauses[i] > about*11/10 {
					t.Errorf("look %d after %s, want about %s", i+1, pauses[i], about)
				}
			}
			d.expect(heldLocal).expectMessage("4 of 7 running pods would be killed at the restart; since then it is not known: " + away)
			d.silent, d.kills["one"] = "", row.kills
			d.pass(2 * time.Minute).expect(row.shown)
			if row.kills > 0 {
				d.expectMessage("3 of 7 running pods would be killed at the restart; drain")
			}
		})
	}
}

// A change of which nobody has answered yet what it would do waits: for a minute as one that is under way, then as one that is held.
func TestAChangeWaitsForAnAnswer(t *testing.T) {
	asking := func(t *testing.T) *drive {
		d := newDrive(t, holding).boot().pass(time.Minute).fresh()
		d.silent = away
		d.assign("one").pass(500 * time.Millisecond)
		if _, due := Report(d.s); due {
			t.Error("a change that is so young is told")
		}
		return d.pass(time.Second).expect(localStays + "Unknown Applying").expectMessage("kube-system/one/kubelet (UID uid-of-cm, resourceVersion 1) waits for an answer: " + away)
	}
	t.Run("it comes: nothing would be lost", func(t *testing.T) {
		d := asking(t)
		d.silent = ""
		d.pass(10 * time.Second).expect("assigned=one@1 active=one@1 lkg=- True InTrial").expectEvents("KubeletConfigChanged")
	})
	t.Run("it comes: pods would be lost", func(t *testing.T) {
		d := asking(t)
		d.silent, d.kills["one"] = "", 2
		d.pass(10 * time.Second).expect(heldLocal).expectEvents("KubeletConfigHeld")
	})
	t.Run("it cannot be known", func(t *testing.T) {
		d := asking(t)
		d.silent, d.unsure = "", "the kubelet is a script"
		d.pass(10 * time.Second).expect("assigned=one@1 active=one@1 lkg=- True InTrial").expectMessage("not foreseen: the kubelet is a script")
	})
	t.Run("it does not come", func(t *testing.T) {
		d := asking(t)
		d.pass(58 * time.Second).expect(localStays + "Unknown Applying").expectEvents()
		if d.s.Observed != nil && *d.s.Observed != "" {
			t.Errorf("the status speaks of %q", *d.s.Observed)
		}
		d.pass(time.Second).expect(heldLocal).expectEvents("KubeletConfigHeld").expectMessage("waits: it is not known what it would do to running pods: " + away)
		if r, _ := Report(d.s); r.Observed == nil || *r.Observed != "kube-system/one/kubelet" {
			t.Errorf("the status speaks of %v", r.Observed)
		}
		d.approve().pass(time.Second).expect("assigned=one@1 active=one@1 lkg=- True InTrial").expectMessage("not foreseen: " + away)
	})
	t.Run("changes are allowed", func(t *testing.T) {
		d := newDrive(t, allowing).boot().pass(time.Minute).fresh()
		d.silent = away
		d.assign("one").pass(time.Second).expectDone("prove one", "foresee one", "stop", "start one").expectMessage("not foreseen: " + away)
	})
}

// What a look without a full answer finds beside what was known is added to it.
func TestLossesAreAdded(t *testing.T) {
	change := Change{Runs: "a", Content: "b"}
	d := newDrive(t)
	d.kills["b"] = 2
	known := Outlook{}.with(d.foresees(Foresee{Change: change}), time.Minute, d.s.Wall)
	d.pods, d.kills["b"] = "more", 1
	partly := d.foresees(Foresee{Change: change})
	partly.Known, partly.WaitsFor = false, away
	got := known.with(partly, 2*time.Minute, d.s.Wall.Add(time.Hour))
	if got.Lost != 3 || len(got.Losses) != 3 || got.WaitsFor != away || got.AsOf == known.AsOf {
		t.Errorf("got %+v", got)
	}
	again := got.with(partly, 3*time.Minute, d.s.Wall.Add(2*time.Hour))
	if again.Lost != 3 || again.Words != got.Words || again.AsOf != got.AsOf || again.Since != got.Since || again.Tries != 2 {
		t.Errorf("got %+v", again)
	}
	partly.Runs = "another"
	if other := got.with(partly, 3*time.Minute, d.s.Wall); other.Lost != 1 || other.Tries != 1 {
		t.Errorf("of another change: %+v", other)
	}
}

// A pre-flight that gives no answer is asked again with more time, and the change waits.
func TestAPreflightThatGivesNoAnswer(t *testing.T) {
	asking := func(t *testing.T, mute int, change func(s *Settings)) *drive {
		d := newDrive(t, change).boot().good("good").pass(time.Minute).fresh()
		d.mute["one"], d.mute["local"] = mute, mute
		return d
	}
	inTrial := "assigned=one@1 active=one@1 lkg=good@1 True InTrial"
	t.Run("it answers in time", func(t *testing.T) {
		d := asking(t, 3, holding).assign("one").pass(2 * time.Second).expect("assigned=good@1 active=good@1 lkg=good@1 Unknown Applying").expectMessage("waits for an answer: " + mutePreflight)
		d.pass(10*time.Second).expectDone("prove one", "prove one", "prove one", "prove one", "foresee one", "stop", "start one").expect(inTrial).expectEvents("KubeletConfigChanged")
		if !slices.Equal(d.tries, []int{0, 1, 2}) {
			t.Errorf("it was asked after %v tries", d.tries)
		}
	})
	t.Run("it refuses in time", func(t *testing.T) {
		asking(t, 3, holding).refuse("one", false).assign("one").pass(10 * time.Second).expect("assigned=one@1 active=good@1 lkg=good@1 False Refused validate config")
	})
	t.Run("it never does, and a person lets it through", func(t *testing.T) {
		d := asking(t, -1, holding).assign("one").pass(59 * time.Second).expect("assigned=good@1 active=good@1 lkg=good@1 Unknown Applying").expectEvents()
		d.pass(2 * time.Second).expect("assigned=good@1 active=good@1 lkg=good@1 False WouldDisrupt").expectEvents("KubeletConfigHeld").expectMessage("it is not known what it would do to running pods: " + mutePreflight)
		d.approve().pass(time.Second).expect(inTrial)
	})
	t.Run("a removal waits as well", func(t *testing.T) {
		d := asking(t, -1, holding).hear(LocalChanged{Kubelet: testKubelet, Local: "local"})
		d.s.Proofs = without(d.s.Proofs, func(p Proof) bool { return p.Content == "local" })
		d.hear(Cleared{NodeUID: "node-uid"}).pass(2 * time.Minute).expect("assigned=good@1 active=good@1 lkg=good@1 False WouldDisrupt")
		d.mute["local"] = 0
		d.pass(2 * time.Minute).expect(nothing)
	})
	t.Run("changes are allowed: it is made without a verdict in the end", func(t *testing.T) {
		d := asking(t, -1, allowing).assign("one").pass(10 * time.Second).expect("assigned=one@1 active=good@1 lkg=good@1 Unknown Applying")
		d.pass(30 * time.Second).expect(inTrial)
		if !slices.Equal(d.tries, []int{0, 1, 2, 3, 4}) {
			t.Errorf("it was asked after %v tries", d.tries)
		}
	})
	t.Run("no start waits for it", func(t *testing.T) {
		d := asking(t, -1, holding)
		d.mute["good"] = -1
		d.s.Proofs, d.disk.Proofs = nil, nil
		d.boot().expectDone("prove good", "start good").pass(time.Minute).expect(goodActive)
	})
	t.Run("nor is one asked for without end that nothing waits for", func(t *testing.T) {
		d := asking(t, -1, holding).hear(LocalChanged{Kubelet: newerKubelet, Local: "local"}).fresh().pass(time.Hour)
		if n := d.times("prove local"); n < 55 || n > 75 {
			t.Errorf("it was asked %d times in an hour", n)
		}
	})
}

// While the Node is gone nothing that it asked for is made, and the configuration stays. When it is back it says again what it asks for.
func TestWhileTheNodeIsGone(t *testing.T) {
	for name, asks := range map[string]Event{
		"another assignment": assigned("one", "1", "one"),
		"a removal":          Cleared{NodeUID: "node-uid"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, disruption := range []string{Hold, Allow} {
				d := newDrive(t, func(s *Settings) { s.Disruption = disruption }).boot().good("good").pass(time.Minute).fresh()
				d.decide(asks)
				answer := d.answer(d.s.Doing)
				d.decide(NodeGone{})
				d.hear(answer).pass(time.Hour)
				if d.times("stop") > 0 || !d.s.runs(version("good", "1", "good")) {
					t.Errorf("done: %q", d.did)
				}
				d.expectMessage("the Node does not exist: what it asked for is not made")
				if contentOf(d.disk.Assigned) != "good" && disruption == Hold { // else its write was under way
					t.Errorf("on the disk is assigned %s", nameOf(d.disk.Assigned))
				}
				d.hear(asks).pass(time.Minute)
				if d.times("stop") != 1 {
					t.Errorf("done: %q", d.did)
				}
			}
		})
	}
	t.Run("it comes back as another one", func(t *testing.T) {
		d := heldOne(t).hear(NodeGone{}).pass(time.Minute).hear(Cleared{NodeUID: "another"}).pass(time.Hour)
		d.expectDone().expect("assigned=- active=- lkg=- True Local")
	})
	t.Run("its ConfigMap cannot be had when it is back", func(t *testing.T) {
		if d := heldOne(t).hear(NodeGone{}).hear(gone); d.s.NodeGone {
			t.Error("it is still said to be gone")
		}
	})
}

// What a kubelet was started with is asked of its program once, as soon as it is healthy, while program and files are still the same: with kept verdicts
// a supervisor starts it without asking anything.
func TestWhatRunsIsAskedFor(t *testing.T) {
	for name, row := range map[string]struct {
		settings func(*Settings)
		lives    func(d *drive)
		want     []string
	}{
		"once for each kubelet": {holding, func(d *drive) {
			d.boot().pass(time.Hour).hear(ChildExited{Code: 1, Words: "x", Delay: time.Second}).pass(time.Hour)
		}, []string{"good", "good"}},
		"as soon as it answers": {holding, func(d *drive) { d.boot().pass(time.Second) }, []string{"good"}},
		"again, where it was not answered": {holding, func(d *drive) {
			d.deaf = d.now + 5*time.Second
			d.boot().pass(time.Hour)
		}, []string{"good", "good", "good", "good"}},
		"not after a change of its program": {holding, func(d *drive) {
			d.start().hear(LocalChanged{Kubelet: newerKubelet, Local: "local"}).pass(time.Hour)
		}, nil},
		"not once more after a reload": {holding, func(d *drive) { d.boot().pass(time.Minute).reload().pass(time.Hour) }, []string{"good"}},
		"not where nothing is held":    {allowing, func(d *drive) { d.boot().pass(time.Hour) }, nil},
		"not of one that must not be asked": {holding, func(d *drive) {
			d.disk.Proofs = append(d.disk.Proofs, Proof{Content: AnyContent, Kubelet: testKubelet, Outcome: kubeletconfig.Unknown})
			d.boot().pass(time.Hour)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t, row.settings).boot().good("good").pass(time.Minute)
			d.asked = nil
			row.lives(d)
			if !slices.Equal(d.asked, row.want) {
				t.Errorf("asked were %q, want %q", d.asked, row.want)
			}
		})
	}
	t.Run("what comes meanwhile does not wait for the answer", func(t *testing.T) {
		d := newDrive(t, holding).start()
		d.now += healthyAfter
		d.decide(Healthy{})
		d.until("the question", func(do Action) bool { _, is := do.(Ask); return is })
		d.hear(assigned("one", "1", "one")).hear(Asked{}).pass(time.Second).expect("assigned=one@1 active=one@1 lkg=- True InTrial")
	})
}

// A second change that comes half a second after the first, while the Node does not show yet what the first has changed, is held all the same
// for what is certain.
func TestASecondChangeRightAfterTheFirst(t *testing.T) {
	d := newDrive(t, holding).boot().pass(time.Minute).assign("one").pass(500 * time.Millisecond).fresh()
	d.unsure, d.kills["two"] = "the Node's allocatable pods: it is 20, and the configuration that runs would give 19", 3
	d.assign("two").pass(time.Hour)
	if !d.s.runs(version("one", "1", "one")) || d.times("stop") > 0 {
		t.Errorf("runs %s: %q", nameOf(d.s.Child.Version), d.did)
	}
	d.expect("assigned=one@1 active=one@1 lkg=one@1 False WouldDisrupt")
}
