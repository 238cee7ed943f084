package core

import (
	"testing"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

var (
	here  = kubeletconfig.Identity{Binary: "here"}
	there = kubeletconfig.Identity{Binary: "there"}
)

// Before a start the kubelet is asked about today's merge. Each row takes one reason for that away.
func TestWhenTodaysMergeIsAskedAbout(t *testing.T) {
	for name, row := range map[string]struct {
		but  func(s *State)
		asks bool
	}{
		"before a start":                            {func(*State) {}, true},
		"there is none":                             {func(s *State) { s.Today.Version = nil }, false},
		"a kubelet runs":                            {func(s *State) { s.Child.Alive = true }, false},
		"the node is at fault with it":              {func(s *State) { s.Today.Failing = true }, false},
		"it was rejected":                           {func(s *State) { s.Rejected = []Rejection{{Content: "merge", Binary: "here"}} }, false},
		"it was accepted":                           {func(s *State) { s.Proofs = []Proof{{Content: "merge", Kubelet: here, Outcome: kubeletconfig.Accepted}} }, false},
		"the environment was to blame a moment ago": {func(s *State) { s.Environment, s.EnvironmentRetry = "no runtime", time.Second }, false},
	} {
		s := State{Process: Process{OnDisk: here}, Intake: Intake{Today: Today{Version: &Version{Content: "merge"}}}}
		if row.but(&s); (planMerge(&s) != nil) != row.asks {
			t.Errorf("%s: it asks: %t", name, !row.asks)
		}
	}
}

// Before a start today's merge is taken where it was asked about, or where what ran is no good any more.
func TestWhenTodaysMergeIsTakenAtAStart(t *testing.T) {
	for name, row := range map[string]struct {
		but   func(s *State)
		takes bool
	}{
		"it was accepted":                           {func(*State) {}, true},
		"nobody was asked":                          {func(s *State) { s.Proofs = nil }, false},
		"nobody was asked, and what ran is refused": {func(s *State) { s.Proofs = []Proof{{Content: "ran", Kubelet: here, Outcome: kubeletconfig.Refused}} }, true},
		"the node is at fault with it":              {func(s *State) { s.Today.Failing = true }, false},
		"something is under way":                    {func(s *State) { s.Doing = Save{} }, false},
		"it was refused":                            {func(s *State) { s.Proofs[0].Outcome = kubeletconfig.Refused }, false},
		"a reset is to be made":                     {func(s *State) { s.Reset = &Cleared{} }, false},
		"another assignment has come":               {func(s *State) { s.Pending = &Assigned{} }, false},
	} {
		s := State{Process: Process{OnDisk: here}}
		s.Assigned = &Version{Content: "ran"}
		s.Proofs = []Proof{{Content: "merge", Kubelet: here, Outcome: kubeletconfig.Accepted}}
		if row.but(&s); mayTake(&s, Version{Content: "merge"}) != row.takes {
			t.Errorf("%s: it is taken: %t", name, !row.takes)
		}
	}
}

// Only what failed with today's merge says that the node is at fault with it.
func TestWhatFailsWithTodaysMerge(t *testing.T) {
	for content, failing := range map[string]bool{"merge": true, "other": false} {
		s := State{Intake: Intake{Today: Today{Version: &Version{Content: "merge"}}}}
		if s.learnMergeFails(Proof{Content: content, Outcome: kubeletconfig.Environment}); s.Today.Failing != failing {
			t.Errorf("%s: the node is at fault: %t", content, s.Today.Failing)
		}
	}
}

// Without an assignment there are no layers to blame, whatever runs.
func TestNobodyToBlame(t *testing.T) {
	s := State{Process: Process{OnDisk: here, Child: Child{Alive: true, Version: &Version{Content: "ran"}}}}
	if do := planBlame(&s); do != nil {
		t.Errorf("%+v", do)
	}
}

// Whom to blame is an answer about one content and one program. A late one ends nothing that is under way.
func TestALateAnswerWhomToBlame(t *testing.T) {
	asked := Blame{Version: Version{Content: "layers"}, Kubelet: here}
	for name, row := range map[string]struct {
		doing  Action
		answer Blamed
		ends   bool
	}{
		"what was asked":    {asked, Blamed{Content: "layers", Kubelet: here}, true},
		"another content":   {asked, Blamed{Content: "other", Kubelet: here}, false},
		"another program":   {asked, Blamed{Content: "layers", Kubelet: there}, false},
		"nobody has asked":  {Save{}, Blamed{Content: "layers", Kubelet: here}, false},
		"nothing that fits": {Save{}, Blamed{}, false},
	} {
		s := State{Doing: row.doing}
		if learnBlamed(&s, row.answer); (s.Doing == nil) != row.ends {
			t.Errorf("%s: %+v is under way", name, s.Doing)
		}
	}
}

// Layers over a file of the node that is refused by itself are not to blame; a plain configuration, or one that was rejected, is.
func TestWhoIsToBlameOverABrokenFile(t *testing.T) {
	for name, row := range map[string]struct {
		but  func(s *State)
		says string
	}{
		"layers":                                 {func(*State) {}, nodev1.ReasonFallbackBroken},
		"a plain configuration":                  {func(s *State) { s.Assigned.Base = "" }, nodev1.ReasonRefused},
		"layers over a file that is good":        {func(s *State) { s.Proofs = s.Proofs[:1] }, nodev1.ReasonRefused},
		"layers that were rejected, not refused": {func(s *State) { s.Proofs = s.Proofs[1:]; s.Rejected = []Rejection{{Content: "merge", Binary: "here"}} }, nodev1.ReasonRejected},
	} {
		s := State{Process: Process{OnDisk: here}}
		s.Assigned, s.Local = &Version{Content: "merge", Base: "own"}, "own"
		s.Proofs = []Proof{{Content: "merge", Kubelet: here, Outcome: kubeletconfig.Refused}, {Content: "own", Kubelet: here, Outcome: kubeletconfig.Refused}}
		row.but(&s)
		if f := findVerdict(&s); f == nil || f.reason != row.says {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
