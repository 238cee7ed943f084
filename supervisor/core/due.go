package core

import "time"

// never is a time that does not come.
const never time.Duration = -1

// due is when time alone may change what is decided or said, so that the core has to be asked again; never where nothing
// does. It repeats no rule: each row but one is a time that some rule compares with the clock, under a condition that is
// at least as wide as that of the rule. TestNothingHappensBeforeItIsDue finds a row that is missing.
func due(s *State) time.Duration {
	first := never
	for _, row := range []func(*State) []time.Duration{dueToLearn, dueToJudge, dueToAct, dueToTell} {
		for _, at := range row(s) {
			if at > s.Now && (first == never || at < first) {
				first = at
			}
		}
	}
	return first
}

// dueToLearn returns the due times of knowledge: an edit that settles, the turn of a merge, a look at the Node.
func dueToLearn(s *State) []time.Duration {
	list := []time.Duration{lookDue(s)}
	if s.OnTrial() || inControl(s) { // no rule's time: only a due time that is missed shows that the supervisor did not look
		list = append(list, s.Now+stallAfter)
	}
	if s.Edit != nil {
		list = append(list, s.SettlesAt)
	}
	if s.FollowLocal && s.Today.Version != nil {
		list = append(list, s.Today.At)
	}
	return list
}

// dueToJudge returns the due times of verdicts: health that counts, the end of a trial or a control, and a kubelet that is not healthy in
// time.
func dueToJudge(s *State) []time.Duration {
	c := s.Child
	if !s.judges() || !c.Alive {
		return nil
	}
	if !c.EverHealthy {
		return []time.Duration{c.Started + s.StartTimeout, c.Started + s.localHangsAfter()}
	}
	var list []time.Duration
	if c.Healthy {
		list = append(list, c.HealthySince+s.healthThatCounts())
		if inControl(s) {
			list = append(list, c.HealthySince+s.controlTime(s.Settings))
		}
	}
	if s.OnTrial() {
		switch {
		case trialClockRuns(s):
			list = append(list, s.Now+s.TrialPeriod-time.Duration(s.Trial.Healthy))
		case !c.Healthy:
			list = append(list, s.Now+s.StartTimeout-time.Duration(s.Trial.Unhealthy))
		}
	}
	return list
}

// dueToAct returns the due times of actions that were put off. While an action is under way its answer comes first.
func dueToAct(s *State) []time.Duration {
	if s.Doing != nil {
		return nil
	}
	list := []time.Duration{s.SaveRetry, s.ApplyAt, persistAt(s)}
	if s.Environment != "" {
		list = append(list, s.EnvironmentRetry)
	}
	for i := range s.Unanswered {
		list = append(list, askAgainAt(s, &s.Unanswered[i]))
	}
	if !s.Child.Alive {
		return append(list, s.NextStart)
	}
	if want, _, _ := heldChange(s); waits(s, want) {
		list = append(list, s.Outlook.At+lookAgainAfter(s))
	}
	if s.Disruption == Hold && !s.Child.Asked {
		list = append(list, s.askKubeletAt(s.NodeUID))
	}
	return list
}

// dueToTell returns when the report changes because of the time.
func dueToTell(s *State) []time.Duration {
	var list []time.Duration
	if s.Unsettled >= 0 {
		list = append(list, s.Unsettled+applyingAfter)
	}
	if unforeseen(s) != "" {
		list = append(list, s.unforeseenUntil(s.Settings))
	}
	want, _, _ := heldChange(s)
	if since, _, open := openQuestion(s, want); open {
		list = append(list, since+askedForLong)
	}
	return list
}
