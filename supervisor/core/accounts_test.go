package core

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// What single events write down, where no story of a whole life shows it.

func TestHealthEndsWhatWasWrong(t *testing.T) {
	s := State{Process: Process{Child: Child{Alive: true, Words: "is not healthy", PortHeld: "nginx (pid 7)"}}}
	s.Now, s.Environment, s.LocalFailures = time.Minute, "the port is held", 2
	learnHealthy(&s)
	if c := s.Child; c.PortHeld != "" || c.Words != "" || c.HealthySince != time.Minute || s.Environment != "" || s.LocalFailures != 0 {
		t.Errorf("%+v, environment %q, %d failures", c, s.Environment, s.LocalFailures)
	}
}

func TestAPortIsOfAKubeletThatLives(t *testing.T) {
	for name, row := range map[string]struct {
		child Child
		want  string
	}{
		"it starts":             {Child{Alive: true}, "nginx"},
		"it has ended":          {Child{}, ""},
		"it was healthy before": {Child{Alive: true, EverHealthy: true}, ""},
	} {
		s := State{Process: Process{Child: row.child}}
		s.learnPort(PortSeen{HeldBy: "nginx"})
		if s.Child.PortHeld != row.want {
			t.Errorf("%s: %q", name, s.Child.PortHeld)
		}
	}
}

// Only a local configuration that never got healthy is a failure of local.
func TestWhatCountsAsAFailureOfLocal(t *testing.T) {
	dynamic := &Version{Source: corev1.ConfigMapNodeConfigSource{Name: "a"}, Content: "a"}
	for name, row := range map[string]struct {
		child  Child
		exited ChildExited
		want   int
	}{
		"local, never healthy":                   {Child{Alive: true}, ChildExited{Code: 1}, 1},
		"local, healthy before":                  {Child{Alive: true, EverHealthy: true}, ChildExited{Code: 1}, 0},
		"another one, never healthy":             {Child{Alive: true, Version: dynamic}, ChildExited{Code: 1}, 0},
		"local, and another holds the lock":      {Child{Alive: true}, ChildExited{Code: 1, LockDenied: true}, 0},
		"local, and the runtime does not answer": {Child{Alive: true}, ChildExited{Code: 1, RuntimeDown: true}, 0},
	} {
		s := State{Process: Process{Child: row.child}}
		learnExited(&s, row.exited)
		if s.LocalFailures != row.want {
			t.Errorf("%s: %d failures", name, s.LocalFailures)
		}
	}
}

// lastKnownGood follows its own source, where the checkpoint was lost; over layers another merge is another configuration, and has to pass a trial.
func TestWhetherLastKnownGoodFollowsItsSource(t *testing.T) {
	source := corev1.ConfigMapNodeConfigSource{Name: "a"}
	for name, row := range map[string]struct {
		was, is  Version
		followed bool
	}{
		"a whole file":              {Version{Source: source, Content: "1"}, Version{Source: source, Content: "2"}, true},
		"layers, over another file": {Version{Source: source, Content: "1", Base: "x"}, Version{Source: source, Content: "2", Base: "y"}, false},
		"layers, over none now":     {Version{Source: source, Content: "1", Base: "x"}, Version{Source: source, Content: "2"}, false},
		"layers, over none before":  {Version{Source: source, Content: "1"}, Version{Source: source, Content: "2", Base: "y"}, false},
	} {
		s := State{Verdicts: Verdicts{LastKnownGood: &row.was}}
		if got := s.durable().with(Assigned{Version: row.is}).LastKnownGood.Content == "2"; got != row.followed {
			t.Errorf("%s: followed %t", name, got)
		}
	}
}

// A person who asks for a retry does not wait for an edit to settle.
func TestARetryWaitsForNothing(t *testing.T) {
	s := State{Intake: Intake{SettlesAt: time.Hour, NextEdit: time.Hour, ApplyAt: time.Hour}, Process: Process{NextStart: time.Hour}}
	learnRetry(&s, Retry{Value: "1"})
	if s.SettlesAt != 0 || s.NextEdit != 0 || s.ApplyAt != 0 || s.NextStart != 0 {
		t.Errorf("settles at %s, next edit at %s, turn at %s, start at %s", s.SettlesAt, s.NextEdit, s.ApplyAt, s.NextStart)
	}
}

// What today's merge was told is noted, also where the environment is to blame.
func TestWhatTodaysMergeWasTold(t *testing.T) {
	for outcome, want := range map[kubeletconfig.Outcome]bool{kubeletconfig.Environment: true, kubeletconfig.Refused: false, kubeletconfig.Accepted: false} {
		s := State{}
		s.Today.Version, s.Today.Failing = &Version{Content: "merge"}, !want
		learnProved(&s, Proved{Proof: Proof{Content: "merge", Outcome: outcome, Words: "words"}})
		if s.Today.Failing != want {
			t.Errorf("%v: failing is %t", outcome, s.Today.Failing)
		}
	}
}

// A kubelet that waited and could not be let through is told to end, and is not what runs.
func TestAKubeletThatCouldNotBeLetThrough(t *testing.T) {
	v := &Version{Content: "a"}
	s := State{Doing: Start{Version: v, Waits: true}, Process: Process{Parked: &Parked{Version: v, Kubelet: kubeletconfig.Identity{Binary: "b"}}}}
	learnStarted(&s, Started{Err: errors.New("its files have changed")})
	if s.Parked == nil || s.Parked.Kubelet != (kubeletconfig.Identity{}) || s.Parked.Version != v || s.Child.Version != nil {
		t.Errorf("%+v, child %+v", s.Parked, s.Child)
	}
}

// Pods are counted after a restart that a look has preceded, and that was a choice: nothing spoke against what ran.
func TestWhetherALookPrecededTheStop(t *testing.T) {
	was, want := &Version{Content: "was"}, &Version{Content: "want"}
	for name, row := range map[string]struct {
		looked, rejected, is bool
	}{
		"looked at":                             {looked: true, is: true},
		"looked at another change":              {},
		"looked at, and what runs was rejected": {looked: true, rejected: true},
	} {
		s := State{Process: Process{Child: Child{Alive: true, Version: was}}}
		s.Assigned = want
		if row.rejected {
			s.Rejected = []Rejection{{Content: "was"}}
		}
		if row.looked {
			s.Outlook.Change = s.changeTo(want)
		}
		s.Disk = s.durable()
		if _, saves := commitStop(&s, want).(Save); saves {
			s.Disk = s.durable() // the try is written before the stop
		}
		stop, is := commitStop(&s, want).(Stop)
		if !is || stop.Looked != row.is {
			t.Errorf("%s: %+v (a stop: %t)", name, stop, is)
		}
	}
}

// A fallback fails by its port the same way as a suspect did, where both are of one kubelet.
func TestWhoseControlIsOfThePort(t *testing.T) {
	for name, row := range map[string]struct {
		suspect Suspect
		want    bool
	}{
		"the port, this kubelet":    {Suspect{Cause: PortHeld}, true},
		"the port, another kubelet": {Suspect{Cause: PortHeld, Kubelet: kubeletconfig.Identity{Binary: "old"}}, false},
		"its exit":                  {Suspect{Cause: Exited}, false},
	} {
		s := State{}
		s.Suspects = []Suspect{row.suspect}
		if got := controlIsOfPort(&s); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// What is taken for what runs has had its turn.
func TestWhatIsRecognisedHasNoTurn(t *testing.T) {
	a, b := &Version{Content: "a"}, &Version{Content: "b"}
	s := State{Process: Process{Child: Child{Alive: true, EverHealthy: true, Version: a, Effective: "e"}}, Intake: Intake{ApplyAt: time.Hour}}
	s.Assigned, s.Proofs = b, []Proof{{Content: "b", Outcome: kubeletconfig.Accepted, Effective: "e"}}
	if recognise(&s); s.Child.Version != b || s.ApplyAt != 0 {
		t.Errorf("runs %v, turn at %s", s.Child.Version, s.ApplyAt)
	}
}

// A try that was spent on a kubelet that waits is given back when nothing is to be started.
func TestATryThatIsGivenBack(t *testing.T) {
	for _, kind := range []moveKind{stay, keepChild} {
		s := State{}
		s.Trial = Trial{Tries: 2, Parked: true, Open: true}
		commit(&s, move{kind: kind})
		if s.Trial.Parked || s.Trial.Tries != 1 {
			t.Errorf("%v: %+v", kind, s.Trial)
		}
	}
}

// What spoke against following the assignment is over once a newer one is taken.
func TestWhatIsTakenCanBeFollowed(t *testing.T) {
	a := Assigned{Version: Version{Content: "a"}, Text: "kube-system/a/kubelet"}
	s := State{Intake: Intake{Pending: &a, PendingNumber: 3, Sync: &Problem{}}, Doing: Save{number: 3, assigned: &a}}
	learnSaved(&s, Saved{})
	if s.Pending != nil || s.Sync != nil || s.Observed == nil || *s.Observed != a.Text {
		t.Errorf("pending %v, sync %v, observed %v", s.Pending, s.Sync, s.Observed)
	}
}

// A kubelet that waits is let through as it is: its try is spent, and its state files were cared for before it was started.
func TestAKubeletThatWaitsIsLetThrough(t *testing.T) {
	want := &Version{Content: "a"}
	s := State{Process: Process{Parked: &Parked{Version: want}}, Host: Host{StateFiles: StateFiles{Of: want, InTheWay: []kubeletconfig.StateFile{{Name: "cpu_manager_state"}}}}}
	s.Assigned, s.Trial = want, Trial{Content: "a", Tries: 1, Open: true, Parked: true}
	s.Disk = s.durable()
	before := s.Trial
	if start, is := commitStart(&s, want).(Start); !is || !start.Waits || s.Trial != before {
		t.Errorf("%+v, trial %+v", start, s.Trial)
	}
}

// What a start whose end was not recorded says, by what was known of it.
func TestWhatAnOpenStartCounts(t *testing.T) {
	const died, down = "the supervisor died during its trial", "the host went down during its trial"
	for name, row := range map[string]struct {
		was          Trial
		boot         string
		foundWaiting bool
		want         Trial
		words        string
	}{
		"none":                               {was: Trial{Tries: 2}, boot: "1", want: Trial{Tries: 2}},
		"in this boot":                       {was: Trial{Tries: 2, Open: true, BootID: "1"}, boot: "1", want: Trial{Tries: 2, BootID: "1"}, words: died},
		"in this boot, and was healthy":      {was: Trial{Tries: 2, Open: true, HadHealth: true, BootID: "1"}, boot: "1", want: Trial{Tries: 1, HadHealth: true, BootID: "1"}, words: died},
		"in another boot, and was healthy":   {was: Trial{Tries: 2, Open: true, HadHealth: true, BootID: "1"}, boot: "2", want: Trial{Tries: 2, HadHealth: true, BootID: "1"}, words: down},
		"it waited, and waits still":         {was: Trial{Tries: 2, Open: true, Parked: true, BootID: "1"}, boot: "1", foundWaiting: true, want: Trial{Tries: 1, BootID: "1"}},
		"it waited, in another boot":         {was: Trial{Tries: 2, Open: true, Parked: true, BootID: "1"}, boot: "2", want: Trial{Tries: 1, BootID: "1"}},
		"it waited, and was not found there": {was: Trial{Tries: 2, Open: true, Parked: true, BootID: "1"}, boot: "1", want: Trial{Tries: 2, BootID: "1"}, words: died},
	} {
		s := State{Settings: Settings{TrialFailures: 9}, BootID: row.boot}
		s.Trial = row.was
		if countOpenStart(&s, row.foundWaiting); s.Trial != row.want || s.Exit != row.words {
			t.Errorf("%s: %+v, %q", name, s.Trial, s.Exit)
		}
	}
}

// The Node's answer to a retry says which one it is.
func TestAReportNamesTheRetry(t *testing.T) {
	s := New(testSettings)
	s.Retry = "again-2"
	if shown, _ := Report(s); shown.Details.Retry != "again-2" {
		t.Errorf("%+v", shown)
	}
}
