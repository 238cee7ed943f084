package core

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// The Node's conditions (rule 7): a kubelet whose healthz answers, and whose Lease is renewed, can still be one that runs no pods. So the
// Node is looked at once a minute in a trial, and once more just before a promotion. While a condition is bad that was not bad before the
// trial, the trial clock stands. Nothing is rolled back for it, because other things can be the cause.
//
// What was so before the trial is learned from kubelets that are not on trial. Where that is not known, a bad condition stops the clock as
// well: nothing becomes last known good because of what is not known.
const (
	lookEvery     = time.Minute      // at the Node of a kubelet on trial
	lookRetryMost = 10 * time.Second // where a look had no result; less for a short trial
	lookBefore    = 5 * time.Minute  // at the Node of any other, while a change is in sight
	lookPause     = time.Second      // between two looks
	measuredBy    = 20 * time.Second // after its start a kubelet has posted what it has measured; the trial's length where that is less
	badsToSay     = 2                // looks in a row that find a bad condition before it is said
)

// Conditions are those of the Node that say whether pods can run on it: Ready and the three pressures.
type Conditions struct {
	Known bool   `json:"known,omitempty"`
	Bad   string `json:"bad,omitempty"` // the types of those that are bad, in the order of the alphabet, with commas between
}

// ConditionsOf reads the conditions of a Node. They are not known where its kubelet has posted none.
func ConditionsOf(node *corev1.Node) Conditions {
	var found Conditions
	var bad []string
	for _, c := range node.Status.Conditions {
		switch c.Type {
		case corev1.NodeReady:
			found.Known = true
			if c.Status != corev1.ConditionTrue {
				bad = append(bad, string(c.Type))
			}
		case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure:
			if c.Status == corev1.ConditionTrue {
				bad = append(bad, string(c.Type))
			}
		}
	}
	if !found.Known {
		return Conditions{}
	}
	slices.Sort(bad)
	found.Bad = strings.Join(bad, ", ")
	return found
}

// NodeLooks is what the looks at the Node have shown of the present child.
type NodeLooks struct {
	Conditions               // as the child has posted them
	At         time.Duration // of the newest look that knew them
	Bads       int           // how many looks in a row have found a condition worse than before the trial
	Tried      time.Duration // of the newest look that was answered, or failed
	Next       time.Duration // when the next look is due
	Problem    string        // why the answer of an API server is of no use
	Waiting    string        // pods that came in the trial and have not been started yet, where none has been
}

// PodStarts is what became of the pods that came to the Node since the configuration on trial was started.
type PodStarts struct {
	Known   bool
	Started bool   // one of them was started
	Waiting string // names those that were not, where none was; empty = none came
	Failing bool   // they have waited for so long that something is wrong
}

// maxUnstarted bounds the names of pods that are kept, in bytes.
const maxUnstarted = 200

func learnConditions(s *State, e ConditionsSeen) {
	n := &s.Node
	s.looking = false
	n.Tried, n.Problem = s.Now, e.Problem
	n.Next = s.Now + lookRetry(s)
	if !e.Known || !s.Child.Alive {
		return
	}
	if e.Posted {
		n.Conditions, n.At, n.Next = e.Conditions, s.Now, s.Now+lookEvery
		countBads(s)
	}
	if s.OnTrial() {
		learnPodStarts(s, e.Pods)
		return
	}
	if e.Before || !s.hasMeasured(s.Settings, s.Now) || e.Bad != "" && !s.hasSettled(s.Now, s.Settings) {
		return
	}
	n.Next = s.Now + lookBefore
	s.Before = e.Conditions
	if s.Trial.Content != "" { // its first start was counted, and is still to be made
		s.Trial.Before = e.Conditions
	}
}

// countBads counts the looks in a row with a bad condition. A kubelet that has just started is not Ready for a moment, so the first such
// look is not reported, and the next one follows soon.
func countBads(s *State) {
	n := &s.Node
	if !s.OnTrial() || s.Trial.worse(s.Node) == "" {
		n.Bads = 0
		return
	}
	n.Bads++
	if s.Now < s.Child.Started+lookEvery {
		n.Next = s.Now + lookRetry(s)
	}
}

// learnPodStarts keeps a failure until a pod is seen that was started.
func learnPodStarts(s *State, p PodStarts) {
	if !p.Known {
		return
	}
	s.Node.Waiting = p.Waiting
	switch {
	case p.Started:
		s.Trial.Unstarted = ""
	case p.Failing:
		s.Trial.Unstarted = bounded.Text(p.Waiting, maxUnstarted)
	}
}

// askForLook asks for a look at the Node where one is due; ConditionsSeen answers it.
func askForLook(s *State) bool {
	if !mayLook(s) {
		return false
	}
	at := lookDue(s)
	if at == never {
		s.Node.Next = 0 // at once, when a change is in sight
	}
	s.looking = at != never && s.Now >= at
	return s.looking
}

func mayLook(s *State) bool {
	return !s.Standalone && s.judges() && s.Child.Alive && !s.looking
}

// lookDue returns when the next look at the Node is due; never where a look would show nothing.
func lookDue(s *State) time.Duration {
	n := &s.Node
	due := max(n.Next, n.Tried+lookPause)
	switch {
	case !mayLook(s):
		return never
	case s.OnTrial() && s.Trial.worse(s.Node) == "" && s.Trial.Unstarted == "" && s.Trial.isFull(s.Settings) && s.Child.Healthy:
		return min(due, n.Tried+lookRetry(s))
	case !s.OnTrial() && !changeInSight(s):
		return never
	}
	return due
}

// changeInSight reports whether a configuration is about to be started that would be on trial.
func changeInSight(s *State) bool {
	want := wanted(s)
	if s.Pending != nil {
		want = &s.Pending.Version
	}
	if want == nil || s.runs(want) || !s.needsTrial(want, s.OnDisk) {
		return false
	}
	_, _, held := heldChange(s)
	return !held
}

// lookRetry returns how long a look stays fresh, and how soon one without a result is made again.
func lookRetry(s *State) time.Duration {
	return min(lookRetryMost, max(time.Second, s.TrialPeriod/10))
}

// nodeIsFine reports whether a look that was made just now found nothing that the trial would have to wait for, and that the kubelet has
// measured.
func nodeIsFine(s *State) bool {
	return s.Node.Known && s.hasMeasured(s.Settings, s.Node.At) && s.Now <= s.Node.At+lookRetry(s) && s.Trial.worse(s.Node) == "" &&
		s.Node.Waiting == "" && s.Trial.Unstarted == ""
}
