package core

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// One transition is one report: while a change is younger than a second there is nothing to say.
func TestReportWaitsForTheEndOfAChange(t *testing.T) {
	d := newDrive(t).boot()
	d.assign("good")
	if _, due := Report(d.s); due {
		t.Error("a report in the middle of a change")
	}
	d.pass(500 * time.Millisecond).expect(inTrial)

	d.hangs["slow"] = true
	d.assign("slow").pass(900 * time.Millisecond).expect("(nothing yet)")
	d.pass(200 * time.Millisecond).expect("assigned=slow@1 active=good@1 lkg=- Unknown Applying")
}

// A verdict that is told is on the disk, if that can be written (drive.expectDurable sees to it everywhere): a host that goes down then
// still knows of it.
func TestAVerdictWaitsForTheDisk(t *testing.T) {
	t.Run("until it is written", func(t *testing.T) {
		d := newDrive(t, standalone).boot()
		d.assign("good").pass(testSettings.TrialPeriod - time.Second)
		d.now += 5 * time.Second
		d.decide(Ticked{})
		d.expect("(nothing yet)").hear(d.answer(d.s.Doing)).expect("assigned=good@1 active=good@1 lkg=good@1 True Active")
	})
	t.Run("a disk that cannot be written keeps nothing back", func(t *testing.T) {
		d := newDrive(t).boot()
		d.assign("good").pass(time.Minute).saveErr = errDisk
		d.pass(10 * time.Minute).expect("assigned=good@1 active=good@1 lkg=good@1 False InternalError")
	})
	t.Run("while an edit waits for its turn", func(t *testing.T) {
		d := newDrive(t, func(s *Settings) { s.EditSpread = 24 * time.Hour }).boot()
		d.assign("good").pass(9*time.Minute).assign("edited", "good", "2").pass(2 * time.Minute)
		d.expect("assigned=edited@2 active=good@1 lkg=good@1 Unknown Applying")
	})
}

func TestMessages(t *testing.T) {
	for _, row := range []struct {
		name string
		when func(d *drive)
		says []string
	}{
		{"local", func(*drive) {}, []string{"using current (default); nothing is assigned"}},
		{"a kubelet that joins no cluster", func(d *drive) { d.s.Standalone = true; d.hear(Ticked{}) },
			[]string{"using current (default); nothing is assigned, and nothing can be: the kubelet has no --kubeconfig"}},
		{"assigned", func(d *drive) { d.assign("good") }, []string{`using current (UID: "uid-of-cm"); `, "on trial for 10m0s"}},
		{"fallback to local", func(d *drive) { d.refuse("bad", true).assign("bad") },
			[]string{"using last-known-good (default); kube-system/bad/kubelet (UID uid-of-cm, resourceVersion 1) is refused: the kubelet says no; correct the configuration"}},
		{"fallback to lastKnownGood", func(d *drive) { d.good("good").refuse("bad", true).assign("bad") }, []string{`using last-known-good (UID: "uid-of-cm"); `}},
		{"a warning changes nothing else", func(d *drive) {
			d.refused["good"] = Proof{Outcome: kubeletconfig.Accepted, Warnings: []string{`unknown field "maxPodz"`}}
			d.assign("good")
		}, []string{"using current", `unknown field "maxPodz"`}},
		{"shadowed", func(d *drive) { a := assigned("good", "1", "good"); a.Shadowed = true; d.hear(a) }, []string{"the annotation wins over spec.configSource"}},
		{"exits", func(d *drive) { d.deadly["bad"] = time.Second / 10; d.assign("bad").pass(7 * time.Second) },
			[]string{"exited 3 times in its trial: exit code 1: it is deadly"}},
		{"no more pre-flight", func(d *drive) {
			d.hear(Proved{Proof: Proof{Kubelet: testKubelet, Outcome: kubeletconfig.Refused, Words: "it went on to start"}, NoMorePreflight: true})
			d.assign("good")
		}, []string{"no pre-flight with this kubelet: it went on to start"}},
		{"the trial's time is full, no renewed Lease was seen", func(d *drive) { d.online = false; d.assign("good").pass(11 * time.Minute) },
			[]string{"on trial for 10m0s of health, which it has had; it becomes the last known good one when the API server is in reach"}},
		{"the Lease may not be read", func(d *drive) {
			d.online = false
			d.assign("good").hear(LeaseSeen{Problem: `leases "n1" is forbidden`})
		}, []string{`before its Lease was seen to be renewed: leases "n1" is forbidden; let the supervisor's identity get that Lease`}},
		{"unreadable state", func(d *drive) {
			d.hear(Booted{Kubelet: testKubelet, Local: "local", Warning: "meta/trial was set aside"})
		},
			[]string{"meta/trial was set aside"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t).boot()
			row.when(d)
			d.pass(2 * time.Second).expectMessage(row.says...)
		})
	}
}

// Messages to the letter.
func TestMessagesInFull(t *testing.T) {
	const refused = "using last-known-good (default); kube-system/bad/kubelet (UID uid-of-cm, resourceVersion 1) is refused: the kubelet says no; "
	const pending = "LocalChangePending: local files, drop-ins or the kubelet binary changed and take effect at the next start"
	crash := ChildExited{Code: 1, Words: "boom"}
	for _, row := range []struct {
		name string
		when func(d *drive)
		want string
	}{
		{"no exit", func(d *drive) { d.refuse("bad", true).assign("bad") }, refused + "correct the configuration"},
		{"the last exit", func(d *drive) { d.refuse("bad", true).assign("bad").hear(crash) }, refused + "last exit: boom; correct the configuration"},
		{"is not told of what is well", func(d *drive) { d.hear(crash) }, "using current (default); nothing is assigned"},
		{"nor at the end", func(d *drive) { d.hear(crash).hear(StopAsked{}) }, "using current (default); the supervisor was asked to stop; start it again"},
		{"nor twice", func(d *drive) { d.hear(ChildExited{Code: 1, Words: "boom", Delay: time.Hour}) }, "using current (default); boom; see the kubelet's log"},
		{"what is refused has no warnings", func(d *drive) {
			d.refused["bad"] = Proof{Outcome: kubeletconfig.Refused, Words: "the kubelet says no", Warnings: []string{"unknown field"}}
			d.assign("bad")
		}, refused + "correct the configuration"},
		{"changed files", func(d *drive) { d.hear(LocalChanged{Kubelet: newerKubelet, Local: "local"}) }, "using current (default); nothing is assigned; " + pending},
		{"that were accepted", func(d *drive) { d.hear(LocalChanged{Kubelet: newerKubelet, Local: "local"}).pass(time.Minute) },
			"using current (default); nothing is assigned; " + pending},
		{"that would be refused", func(d *drive) {
			d.good("good").refuse("good", false).hear(LocalChanged{Kubelet: newerKubelet, Local: "local"}).pass(time.Minute)
		}, `using current (UID: "uid-of-cm"); the assigned configuration passed its trial; ` + pending + ", which would be refused: the kubelet says no"},
		{"failed, and the next supervisor knows no verdict", func(d *drive) {
			d.refused["bad"], d.deadly["bad"] = Proof{Outcome: kubeletconfig.Unknown}, time.Second
			d.assign("bad").pass(9 * time.Second).boot()
		}, "using last-known-good (default); kube-system/bad/kubelet (UID uid-of-cm, resourceVersion 1) exited 3 times in its trial: exit code 1: it is deadly; correct the configuration"},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDrive(t).boot()
			row.when(d)
			d.pass(2 * time.Second).says(row.want)
		})
	}
}

// What to do is said however long the kubelet's words are.
func TestLongWordsLeaveTheRemedy(t *testing.T) {
	d := newDrive(t).boot().refuse("bad", false)
	proof := d.refused["bad"]
	proof.Words = strings.Repeat("grün ", 400)
	d.refused["bad"] = proof
	d.assign("bad").pass(time.Second)
	r, _ := Report(d.s)
	if len(r.Message) > 1024 || !strings.HasSuffix(r.Message, "correct the configuration") || !utf8.ValidString(r.Message) {
		t.Errorf("%d bytes: %s", len(r.Message), r.Message)
	}
}

// The report says which assignment it speaks of, and nothing before one was seen.
func TestObserved(t *testing.T) {
	d := newDrive(t).boot()
	observed := func() string {
		if r, _ := Report(d.s); r.Observed != nil {
			return *r.Observed
		}
		return "(nothing)"
	}
	for _, row := range []struct {
		event Event
		want  string
	}{
		{Ticked{}, "(nothing)"},
		{Cleared{NodeUID: "node-uid"}, ""},
		{assigned("good", "1", "good"), "kube-system/good/kubelet"},
		{SyncFailed{Text: "///", Problem: Problem{Malformed: true}}, "///"},
		{assigned("good", "1", "good"), "kube-system/good/kubelet"},
		{Cleared{NodeUID: "another"}, "kube-system/good/kubelet"}, // the assignment is lost, the configuration stays
		{Cleared{Text: "local", NodeUID: "another"}, "local"},
	} {
		if d.hear(row.event).pass(2 * time.Second); observed() != row.want {
			t.Errorf("after %T: observed %q, want %q", row.event, observed(), row.want)
		}
	}
}

func TestEvents(t *testing.T) {
	d := newDrive(t).boot().good("good")
	d.expectEvents("KubeletConfigChanged", "KubeletConfigPromoted")
	d.fresh().refuse("bad", true).assign("bad").pass(time.Minute).expectEvents("KubeletConfigRefused")
	d.fresh().deadly["deadly"] = time.Second / 2
	d.assign("deadly").pass(time.Minute).expectEvents("KubeletConfigChanged", "KubeletConfigRolledBack", "KubeletConfigRejected")
	d.fresh().hear(Cleared{NodeUID: "another"}).pass(time.Minute).expectEvents("AssignmentLost")
	d.fresh().hear(Cleared{Text: "local"}).pass(time.Minute).expectEvents("KubeletConfigChanged")
}

// Upstream's exact words (upstream's event KubeletConfigChanged).
func TestChangeMessage(t *testing.T) {
	if got, want := changeMessage(nil), "Kubelet restarting to use local config"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	want := "Kubelet restarting to use /api/v1/namespaces/kube-system/configmaps/good, UID: uid-of-cm, ResourceVersion: 1, KubeletConfigKey: kubelet"
	if got := changeMessage(version("good", "1", "good")); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
