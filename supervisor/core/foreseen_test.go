package core

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A change of which nothing was foreseen, and of which a later look foresees something, is held for the first time.
func TestALaterLookSaysMore(t *testing.T) {
	change := Change{Content: "a"}
	s := State{Doing: Foresee{Change: change}, Held: Held{Outlook: Outlook{Change: change, Pause: lookAgainLeast}}}
	if learnForeseen(&s, Foreseen{Change: change, Lost: 2}); s.Outlook.Pause != lookAgainLeast {
		t.Errorf("looked at again after %s", s.Outlook.Pause)
	}
	if s.Doing = (Foresee{Change: change}); s.Outlook.Lost != 2 {
		t.Errorf("%d lost", s.Outlook.Lost)
	}
	if learnForeseen(&s, Foreseen{Change: change, Lost: 1}); s.Outlook.Pause != 2*lookAgainLeast {
		t.Errorf("looked at again after %s", s.Outlook.Pause)
	}
}

// What is given back is an edit of what runs, when it is taken again, only where it has the same source.
func TestWhatIsGivenBack(t *testing.T) {
	at := func(name, version, content string) *Version {
		return &Version{Source: corev1.ConfigMapNodeConfigSource{Namespace: "n", Name: name, KubeletConfigKey: "kubelet", UID: "uid", ResourceVersion: version}, Content: content}
	}
	for name, row := range map[string]struct {
		taken *Version
		text  string
	}{
		"an edit":            {at("one", "2", "b"), "the text"},
		"another assignment": {at("two", "1", "b"), ""},
		"a removal":          {nil, "the text"},
	} {
		s := State{Process: Process{Child: Child{Version: at("one", "1", "a")}}}
		s.Assigned, s.Text = row.taken, "the text"
		revertAdoption(&s)
		if s.Text != row.text || !Same(s.Assigned, s.Child.Version) || (s.Pending != nil) != (row.taken != nil) || (s.Reset != nil) != (row.taken == nil) {
			t.Errorf("%s: text %q, assigned %s, pending %+v, reset %+v", name, s.Text, Describe(s.Assigned), s.Pending, s.Reset)
		}
	}
}

// The Node says during a trial that nobody knew what it would do to running pods. Each row takes one reason for that away.
func TestWhatWasNotForeseenIsToldInItsTrial(t *testing.T) {
	for name, row := range map[string]struct {
		but  func(s *State)
		says bool
	}{
		"on trial":                       {func(*State) {}, true},
		"it was foreseen":                {func(s *State) { s.Outlook.Warning = "" }, false},
		"the trial is over":              {func(s *State) { s.Child.Version = &Version{Content: "b"} }, false},
		"the look was at another change": {func(s *State) { s.Outlook.Content = "b" }, false},
	} {
		s := State{Process: Process{Child: Child{Alive: true, Version: &Version{Content: "a"}}}, Held: Held{Outlook: Outlook{Change: Change{Content: "a"}, Warning: "no list of pods"}}}
		s.Trial.Content = "a"
		row.but(&s)
		if words := strings.Join(warnings(&s), "; "); strings.Contains(words, "not foreseen") != row.says {
			t.Errorf("%s: %q", name, words)
		}
	}
}

// A look that comes after the assignment was taken, and foresees more than the one before, gives it back. That is told once.
func TestALookAfterTheAssignmentWasTakenHoldsIt(t *testing.T) {
	d := newDrive(t, holding).boot().good("good").fresh()
	d.decide(assigned("one", "1", "one"))
	d.until("the write of the assignment", func(do Action) bool {
		save, is := do.(Save)
		return is && save.assigned != nil
	})
	d.now += outlookLasts + time.Millisecond
	d.kills["one"] = 2
	d.hear(d.answer(d.s.Doing)).pass(time.Second).expectEvents("KubeletConfigHeld").expectDone("prove one", "foresee one", "foresee one")
	d.expect("assigned=good@1 active=good@1 lkg=good@1 False WouldDisrupt")
}
