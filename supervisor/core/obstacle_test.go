package core

import (
	"strings"
	"testing"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

var (
	swapIsOn     = Obstacle{ObstacleSwap, "swap is on (/dev/zram0), and failSwapOn is true"}
	hasExpired   = Obstacle{ObstacleCredential, "the client certificate of /etc/kubernetes/kubelet.conf expired"}
	runtimeIsOff = Obstacle{ObstacleRuntime, "the container runtime at unix:///none.sock does not answer"}
)

const (
	obstructed      = "assigned=good@1 active=good@1 lkg=good@1 Unknown EnvironmentFailing"
	takenObstructed = "assigned=one@1 active=good@1 lkg=good@1 Unknown EnvironmentFailing" // where changes are allowed
	obstructedLocal = "assigned=- active=- lkg=- Unknown EnvironmentFailing"
	oneRuns         = "assigned=one@1 active=one@1 lkg=good@1 True InTrial"
)

// obstructedOne is a node with a good configuration, on which nothing could be started with content one.
func obstructedOne(t *testing.T, with ...Obstacle) *drive {
	d := newDrive(t, holding).boot().good("good").pass(time.Minute).fresh()
	d.obstacles["one"] = with
	return d.assign("one").pass(time.Second)
}

// A change whose start would meet what the running kubelet has not met waits, says so at once, and ends its wait itself.
func TestAChangeThatNoKubeletWouldSurviveWaits(t *testing.T) {
	t.Run("until the cause heals", func(t *testing.T) {
		d := obstructedOne(t, swapIsOn).expect(obstructed).expectMessage("kube-system/one/kubelet", "waits: no kubelet would start: swap is on").expectEvents("KubeletConfigHeld")
		d.pass(time.Hour).expect(obstructed)
		if d.times("stop") > 0 || d.times("foresee one") > 100 {
			t.Errorf("%d stops and %d looks in an hour", d.times("stop"), d.times("foresee one"))
		}
		d.obstacles["one"] = nil
		d.pass(2 * time.Minute).expect(oneRuns)
	})
	t.Run("programs are told what it waits for", func(t *testing.T) {
		h := obstructedOne(t, hasExpired).s.HoldStatus()
		if h == nil || h.Known || h.Approval == "" || !strings.Contains(h.WaitsFor, hasExpired.Words) {
			t.Errorf("the hold: %+v", h)
		}
	})
	t.Run("so does a removal", func(t *testing.T) {
		d := newDrive(t, holding).boot().good("good").pass(time.Minute)
		d.obstacles["local"] = []Obstacle{swapIsOn}
		d.fresh().hear(Cleared{NodeUID: "node-uid"}).pass(time.Hour).expect(obstructed).expectMessage("the local configuration waits: no kubelet would start: swap is on")
		d.obstacles["local"] = nil
		d.pass(2 * time.Minute).expect(nothing)
	})
	t.Run("one that cures it does not", func(t *testing.T) {
		d := newDrive(t, holding).boot().good("good").pass(time.Minute).fresh()
		d.obstacles["good"] = []Obstacle{swapIsOn}
		d.assign("one").pass(time.Second).expect(oneRuns)
	})
	t.Run("so does the way back from a trial, for what is refused", func(t *testing.T) {
		d := newDrive(t, holding).boot().good("good").pass(time.Minute).assign("one").pass(time.Second).expect(oneRuns)
		d.obstacles["good"] = []Obstacle{swapIsOn}
		d.refuse("bad", false).fresh().assign("bad").pass(time.Minute)
		d.expect("assigned=one@1 active=one@1 lkg=good@1 False Refused validate config").expectMessage("the kubelet says no", "going back to kube-system/good/kubelet", "swap is on")
	})
	t.Run("beside pods that it would kill", func(t *testing.T) {
		d := newDrive(t, holding).boot().good("good").pass(time.Minute).fresh()
		d.obstacles["one"], d.kills["one"] = []Obstacle{swapIsOn}, 2
		d.assign("one").pass(time.Second).expect(obstructed).expectMessage("swap is on", "2 of 7 running pods")
		if h := d.s.HoldStatus(); h == nil || len(h.Losses) != 2 || h.WaitsFor == "" {
			t.Errorf("the hold: %+v", h)
		}
		d.obstacles["one"] = nil
		d.pass(2 * time.Minute).expect("assigned=good@1 active=good@1 lkg=good@1 False WouldDisrupt")
	})
}

// allowedOne is the same where changes are allowed.
func allowedOne(t *testing.T, with ...Obstacle) *drive {
	d := newDrive(t, allowing).boot().good("good").pass(time.Minute).fresh()
	d.obstacles["one"] = with
	return d.assign("one").pass(time.Second)
}

// Allow is about pods. What no kubelet would survive waits there as well, and what is assigned is said to be.
func TestAChangeThatNoKubeletWouldSurviveWaitsWhereChangesAreAllowed(t *testing.T) {
	t.Run("until the cause heals", func(t *testing.T) {
		d := allowedOne(t, swapIsOn)
		d.kills["one"] = 2
		d.pass(time.Hour).expect(takenObstructed).expectMessage("kube-system/one/kubelet", "waits: no kubelet would start: swap is on").expectEvents("KubeletConfigHeld")
		if d.times("stop") > 0 || d.times("foresee one") > 100 {
			t.Errorf("%d stops and %d looks in an hour", d.times("stop"), d.times("foresee one"))
		}
		d.obstacles["one"] = nil
		d.pass(2 * time.Minute).expect(oneRuns)
	})
	t.Run("a removal too, and both wait quietly", func(t *testing.T) {
		d := allowedOne(t, hasExpired)
		d.obstacles["local"] = []Obstacle{hasExpired}
		d.hear(Cleared{NodeUID: "node-uid"}).pass(time.Hour)
		if d.times("stop") > 0 || d.times("foresee one")+d.times("foresee local") > 200 {
			t.Errorf("%d stops and %d looks in an hour", d.times("stop"), d.times("foresee one")+d.times("foresee local"))
		}
	})
	t.Run("a person lets it through, whatever pods there are", func(t *testing.T) {
		d := allowedOne(t, swapIsOn)
		d.kills["one"] = 2
		d.pass(5 * time.Minute)
		given := d.approval()
		d.pods = "other-"
		d.pass(5 * time.Minute)
		d.silent = away
		d.hear(Consented{Value: given}).pass(time.Minute).expect(oneRuns)
	})
	t.Run("a runtime that refuses for a moment is no matter of pods", func(t *testing.T) {
		d := allowedOne(t, runtimeIsOff)
		d.kills["one"] = 2
		d.pass(10 * time.Second).expect("assigned=one@1 active=good@1 lkg=good@1 Unknown Applying").expectEvents()
		if h := d.s.HoldStatus(); h != nil {
			t.Errorf("it is held: %+v", h)
		}
		d.obstacles["one"] = nil
		d.pass(time.Minute).expect(oneRuns)
	})
	t.Run("a look that could not see it takes nothing away", func(t *testing.T) {
		d := allowedOne(t, swapIsOn)
		d.obstacles["one"], d.untold = nil, true
		d.pass(10 * time.Minute).expect(takenObstructed)
		d.untold = false
		d.pass(2 * time.Minute).expect(oneRuns)
	})
	t.Run("a crash does not begin it", func(t *testing.T) {
		d := allowedOne(t, swapIsOn)
		d.deadly["one"] = time.Second
		d.hear(ChildExited{Code: 1, Words: "x", Delay: time.Second}).pass(2 * time.Minute).expect(takenObstructed)
		if d.times("start one") > 0 {
			t.Errorf("done: %q", d.did)
		}
	})
	t.Run("a crash makes no removal", func(t *testing.T) {
		d := newDrive(t, allowing).boot().good("good").pass(time.Minute).fresh()
		d.obstacles["local"], d.deadly[""] = []Obstacle{swapIsOn}, time.Second
		d.hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute)
		d.hear(ChildExited{Code: 1, Words: "x", Delay: time.Second}).pass(10 * time.Minute)
		if d.times("start local") > 0 || !d.s.Child.Healthy {
			t.Errorf("done: %q", d.did)
		}
	})
	t.Run("an approval ends with the hold that healed", func(t *testing.T) {
		d := allowedOne(t, swapIsOn)
		old := d.approval()
		d.obstacles["one"], d.deadly["one"] = nil, time.Second
		d.pass(5 * time.Minute)
		d.obstacles["one"] = []Obstacle{swapIsOn}
		d.fresh().hear(Consented{Value: old}).hear(Retry{Value: "r1"}).pass(5 * time.Minute)
		if d.times("stop") > 0 || d.approval() == old {
			t.Errorf("done: %q", d.did)
		}
	})
	t.Run("the way back from a trial, for what is refused", func(t *testing.T) {
		d := newDrive(t, allowing).boot().good("good").pass(time.Minute).assign("one").pass(time.Second).expect(oneRuns)
		d.obstacles["good"] = []Obstacle{swapIsOn}
		d.refuse("bad", false).fresh().assign("bad").pass(time.Minute)
		d.expect("assigned=bad@1 active=one@1 lkg=good@1 False Refused validate config").expectMessage("the kubelet says no", "going back to kube-system/good/kubelet", "swap is on")
	})
}

// A runtime that is restarted refuses connections for a moment: its minute is one of Applying.
func TestARuntimeThatRefusesIsAskedAgainFirst(t *testing.T) {
	d := obstructedOne(t, runtimeIsOff).pass(time.Second).expect("assigned=good@1 active=good@1 lkg=good@1 Unknown Applying").expectMessage(runtimeIsOff.Words).expectEvents()
	d.pass(time.Minute).expect(obstructed).expectEvents("KubeletConfigHeld")
	d.obstacles["one"] = nil
	d.pass(2 * time.Minute).expect(oneRuns)
}

// What is in the way of a change is in the way of no start that nobody chose.
func TestNoStartWaitsForTheHost(t *testing.T) {
	everywhere := map[string][]Obstacle{"one": {swapIsOn}, "good": {swapIsOn}, "local": {swapIsOn}}
	t.Run("a crash while the change waits", func(t *testing.T) {
		d := obstructedOne(t, swapIsOn).fresh()
		d.obstacles = everywhere
		d.hear(ChildExited{Code: 1, Words: "x", Delay: time.Second}).pass(2 * time.Second).expectDone("start good")
	})
	t.Run("a boot", func(t *testing.T) {
		d := obstructedOne(t, swapIsOn).fresh()
		d.obstacles = everywhere
		d.boot().expectDone("start good")
	})
	t.Run("a rollback", func(t *testing.T) {
		d := newDrive(t, holding).boot().good("good").pass(time.Minute).fresh()
		d.deadly["one"] = time.Second
		d.obstacles["good"] = []Obstacle{swapIsOn}
		d.assign("one").pass(time.Minute)
		if !d.s.runs(version("good", "1", "good")) || d.times("foresee good") > 0 {
			t.Errorf("runs %s: %q", nameOf(d.s.Child.Version), d.did)
		}
	})
}

// A person may let it through who has read of the obstacle, and nobody else.
func TestAnApprovalIsForTheObstaclesThatWereNamed(t *testing.T) {
	t.Run("it is given", func(t *testing.T) {
		d := obstructedOne(t, swapIsOn).approve().pass(time.Second).expect(oneRuns)
		if d.times("stop") != 1 {
			t.Errorf("done: %q", d.did)
		}
	})
	for name, suffix := range map[string]string{"plain": "", "of any pods": "+any"} {
		t.Run("one of pods, and swap came on meanwhile, "+name, func(t *testing.T) {
			d := newDrive(t, holding).boot().good("good").pass(time.Minute)
			d.kills["one"] = 2
			d.assign("one").pass(time.Second)
			first := d.approval()
			d.obstacles["one"] = []Obstacle{swapIsOn}
			d.fresh().hear(Consented{Value: first + suffix}).pass(time.Minute).expect(obstructed)
			if d.times("stop") > 0 || d.approval() == first {
				t.Errorf("the approval %s of pods was taken: %q", first, d.did)
			}
			d.approve().pass(time.Second).expect(oneRuns)
		})
	}
	t.Run("another obstacle comes", func(t *testing.T) {
		d := obstructedOne(t, swapIsOn)
		first := d.approval()
		d.obstacles["one"] = []Obstacle{swapIsOn, hasExpired}
		d.hear(Consented{Value: first}).pass(time.Minute).expect(obstructed).expectMessage("is of another change")
	})
	t.Run("one that was named comes again", func(t *testing.T) {
		d := obstructedOne(t, swapIsOn)
		d.obstacles["one"] = []Obstacle{hasExpired}
		second := d.pass(2 * time.Minute).approval()
		d.obstacles["one"] = []Obstacle{swapIsOn, hasExpired}
		if got := d.pass(2 * time.Minute).approval(); got != second {
			t.Errorf("the approval was %s, and is %s", second, got)
		}
	})
	t.Run("the details of one differ, and the supervisor is another", func(t *testing.T) {
		d := obstructedOne(t, swapIsOn)
		first := d.approval()
		d.obstacles["one"] = []Obstacle{{ObstacleSwap, "swap is on (/dev/zram0, /swap), and failSwapOn is true"}}
		d.boot().assign("one").pass(5 * time.Minute)
		if got := d.expect(obstructed).approval(); got != first {
			t.Errorf("the approval was %s, and is %s", first, got)
		}
		d.hear(Consented{Value: first}).pass(time.Second).expect(oneRuns)
	})
}

// A kubelet that could not be started again is no matter of a change alone: nothing says True while it is so.
func TestWhatTheNextStartWouldMeet(t *testing.T) {
	d := newDrive(t, holding).boot().pass(time.Minute).fresh()
	d.hear(ObstaclesSeen{[]Obstacle{hasExpired}}).expect(obstructedLocal).expectMessage("the kubelet runs, and no kubelet would start in its place: " + hasExpired.Words).expectDone()
	if r, _ := Report(d.s); r.Details.Failure == nil || r.Details.Failure.Kind != nodev1.FailureEnvironment {
		t.Errorf("programs are told %+v", r.Details.Failure)
	}
	d.hear(ObstaclesSeen{}).expect("assigned=- active=- lkg=- True Local")
	d.good("good").hear(ObstaclesSeen{[]Obstacle{hasExpired}}).expect(obstructed).expectMessage("the kubelet runs, and no kubelet would start in its place: " + hasExpired.Words)
	d.hear(ObstaclesSeen{}).expect("assigned=good@1 active=good@1 lkg=good@1 True Active")
}

// The look is at what a start would take: layers over the file of the node as it is now.
func TestWhatWaitsIsLookedAtOverTodaysFile(t *testing.T) {
	for name, how := range map[string]func(*Settings){"changes are held": holding, "changes are allowed": allowing} {
		for _, follows := range []bool{false, true} {
			waits := func(t *testing.T, now ...Obstacle) (d *drive, approval string) {
				d = goodLayers(t, how, func(s *Settings) { s.FollowLocal = follows })
				d.obstacles["two/local"], d.obstacles["two/edited"] = []Obstacle{swapIsOn}, now
				d.layers("two", "1").pass(5 * time.Minute)
				approval = d.approval()
				return d.fresh().ownFile("edited").pass(5 * time.Minute), approval
			}
			t.Run(name+", and the new file is in the way", func(t *testing.T) {
				d, old := waits(t, hasExpired)
				d.obstacles["two/local"] = nil
				d.pass(5 * time.Minute).hear(Consented{Value: old}).pass(5 * time.Minute)
				if d.times("stop") > 0 || d.times("foresee two/edited") == 0 || d.approval() == old {
					t.Errorf("done: %q", d.did)
				}
			})
			t.Run(name+", and the new file is the cure", func(t *testing.T) {
				d, _ := waits(t)
				if !d.s.runs(&Version{Content: "two/edited"}) || d.times("foresee two/edited") == 0 {
					t.Errorf("done: %q", d.did)
				}
			})
		}
	}
}

// A merge that the node is at fault for is asked about now and then, while the change that would take it waits.
func TestTodaysMergeThatTheNodeSpoilsIsAskedForSeldom(t *testing.T) {
	for name, how := range map[string]func(*Settings){"changes are held": holding, "changes are allowed": allowing} {
		t.Run(name, func(t *testing.T) {
			d := goodLayers(t, how)
			d.obstacles["two/local"] = []Obstacle{swapIsOn}
			d.layers("two", "1").pass(time.Minute)
			d.refused["two/edited"] = Proof{Outcome: kubeletconfig.Environment, Words: "the kubelet says no"}
			d.refuse("edited", false).fresh().ownFile("edited").pass(time.Hour)
			if n := d.times("prove two/edited"); n == 0 || n > 130 {
				t.Errorf("asked %d times in an hour", n)
			}
		})
	}
}

// A credential is looked at whatever the kubelet tells: what a look does not find of it is gone.
func TestACredentialThatIsRenewedIsSeen(t *testing.T) {
	d := obstructedOne(t, hasExpired)
	d.obstacles["one"], d.untold = nil, true
	d.pass(time.Minute)
	if len(d.s.Outlook.Obstacles) > 0 {
		t.Errorf("kept: %v", d.s.Outlook.Obstacles)
	}
}
