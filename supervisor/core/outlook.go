package core

import (
	"slices"
	"strings"
	"time"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// Outlook is what is known of a change (rule 21). A look that knows of a loss is only replaced by one that knows more: what did not answer,
// or was forgotten, leaves the losses as they are.
type Outlook struct {
	Change
	Known   bool          // the newest look was answered in full
	At      time.Duration // of the newest look, answered or not
	Pause   time.Duration // before the next look, while the change is held
	Due     bool          // it is looked at again at once
	Lost    int           // running pods that certainly would be lost
	Losses  []nodev1.Loss // which
	InDoubt []nodev1.Loss // that may be lost, and may not
	Words   string        // the same for people
	AsOf    time.Time     // since when Losses are these; for people
	Warning string        // what cannot be known, or is uncertain: it holds nothing up

	WaitsFor string        // what has not answered the newest look; empty = nothing is waited for
	Since    time.Duration // of the first look in a row that was not answered, or met an obstacle
	Tries    int           // how many those are

	Obstacles []Obstacle // that the newest look has met
}

const (
	outlookLasts   = 5 * time.Second // a change that may be made is made so soon after the look, or looked at again
	lookAgainLeast = time.Minute     // at what is held, doubling
	lookAgainMost  = 5 * time.Minute
	askAgainLeast  = time.Second // what did not answer, doubling
	askAgainMost   = time.Minute
	askedForLong   = time.Minute // what has not answered for so long holds the change, and a person may let it through
)

// learnForeseen takes the answer of a look.
func learnForeseen(s *State, e Foreseen) {
	do, is := s.Doing.(Foresee)
	if !is || do.Change != e.Change {
		return // too late: it was given up
	}
	s.Doing, s.nonce = nil, e.Nonce
	s.Outlook = s.Outlook.with(e, s.Now, s.Wall)
}

// with returns the outlook after one more look. A change is the same for as long as it is from one content to another, whatever becomes of
// the kubelet's program until then.
func (o Outlook) with(e Foreseen, now time.Duration, wall time.Time) Outlook {
	next := Outlook{Change: e.Change, Known: e.Known, At: now, Pause: lookAgainLeast, Lost: e.Lost, Losses: e.Losses, InDoubt: e.InDoubt,
		Words: e.Words, AsOf: wall,
		Warning: e.Warning, WaitsFor: e.WaitsFor, Obstacles: e.Obstacles}
	same := o.Content == e.Content && o.Runs == e.Runs
	if same && e.Unseen {
		next.keepObstacles(o)
	}
	if next.isOpen() {
		next.Since, next.Tries = now, 1
		if same && o.Tries > 0 {
			next.Since, next.Tries = o.Since, o.Tries+1
		}
	}
	if !same || o.Lost == 0 {
		return next
	}
	if !e.Known {
		next.keepLosses(o)
	}
	switch {
	case next.isOpen():
		next.Pause = o.Pause
	case next.Lost > 0:
		next.Pause = min(2*o.Pause, lookAgainMost)
	}
	if slices.Equal(next.Losses, o.Losses) && next.Lost == o.Lost {
		next.AsOf = o.AsOf
	}
	return next
}

// isOpen reports whether the look is made again soon, because something has not answered or is in the way.
func (o Outlook) isOpen() bool { return o.WaitsFor != "" || len(o.Obstacles) > 0 }

// keepLosses keeps what an earlier look knew. What a look without a full answer has found in addition is added.
func (o *Outlook) keepLosses(before Outlook) {
	more := without(o.Losses, func(l nodev1.Loss) bool { return names(before.Losses, l) })
	if len(more) == 0 {
		o.Lost, o.Losses, o.Words = before.Lost, before.Losses, before.Words
		return
	}
	o.Lost, o.Losses = before.Lost+len(more), slices.Concat(before.Losses, more)
	o.Words = before.Words + "; " + o.Words
}

// keepObstacles keeps those that an earlier look has met, where this one could not see whether they are gone. The kubelet's credential is
// looked at whatever the configuration says.
func (o *Outlook) keepObstacles(before Outlook) {
	o.Obstacles = slices.Clone(o.Obstacles)
	for _, known := range before.Obstacles {
		is := slices.ContainsFunc(o.Obstacles, func(now Obstacle) bool { return now.Kind == known.Kind })
		if !is && known.Kind != ObstacleCredential {
			o.Obstacles = append(o.Obstacles, known)
		}
	}
}

// names reports whether the pod of one loss is among others.
func names(losses []nodev1.Loss, one nodev1.Loss) bool {
	return slices.ContainsFunc(losses, func(l nodev1.Loss) bool { return l.Pod == one.Pod && l.UID == one.UID })
}

// lookAgainAfter spreads the looks of many nodes.
func lookAgainAfter(s *State) time.Duration {
	pause := s.Outlook.Pause
	if s.Outlook.isOpen() {
		pause = askAgainAfter(s.Outlook.Tries)
	}
	return jitter(s.NodeUID, pause, s.Outlook.At)
}

// jitter returns a pause, a tenth shorter to a tenth longer.
func jitter(nodeUID string, pause, at time.Duration) time.Duration {
	return pause - pause/10 + spread(nodeUID, at.String(), pause/5)
}

// askAgainAfter returns the pause before the next try, after so many without an answer.
func askAgainAfter(tries int) time.Duration {
	pause := askAgainLeast
	for ; tries > 1 && pause < askAgainMost; tries-- {
		pause *= 2
	}
	return min(pause, askAgainMost)
}

// planAsk asks what the running kubelet was started with as soon as it is healthy, while its program and its files are still the same: a
// change of them, such as a new package, must not leave a node that cannot foresee anything until its next restart.
func planAsk(s *State) Action {
	c := s.Child
	switch {
	case s.Disruption != Hold, c.Asked, s.localFilesChanged(), s.proof(AnyContent, s.OnDisk) != nil:
		return nil
	case s.Now < s.askKubeletAt(s.NodeUID):
		return nil
	}
	return Ask{Version: c.Version, Kubelet: c.Kubelet, Local: c.Local, Tries: c.AskTries}
}

func learnAsked(s *State, e Asked) {
	if _, is := s.Doing.(Ask); !is {
		return
	}
	s.Doing, s.Child.Asked = nil, !e.Open
	if e.Open {
		s.Child.AskTries, s.Child.AskedAt = s.Child.AskTries+1, s.Now
	}
}

// unforeseen returns what was not known of the change to what runs now, as long as that is on trial. The local configuration never is: for
// it the same is reported for as long as a trial would take.
func unforeseen(s *State) string {
	o := s.Outlook
	isRecent := s.OnTrial() || s.Child.Version == nil && s.Now < s.unforeseenUntil(s.Settings)
	if o.Content == "" || o.Content != s.contentRun() || !isRecent {
		return ""
	}
	return strings.Join(without([]string{o.WaitsFor, o.Warning}, func(words string) bool { return words == "" }), "; ")
}
