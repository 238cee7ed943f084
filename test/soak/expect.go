//go:build linux

package main

import (
	"slices"
	"time"
)

// A truth is what the node ran at a quiescent moment.
type truth struct{ assigned, active, lastKnownGood payload }

// An expectation is what has to be true at the next quiescent moment.
type expectation struct {
	observed      string
	reason        string    // of KubeletConfigOk
	errors        []string  // one of them begins what the status says; "": exactly none
	assigned      []payload // one of them
	lastKnownGood []payload // one of them
	starts        []int     // one of them counts the kubelets started since the last quiescent moment; nil: cannot be foretold
	losses        int       // pods that a hold has to name, where the reason is WouldDisrupt

	otherwise *expectation // may come instead: a change that was approved, and was not made for what was done to the node
}

// A situation is what else it depends on what comes of the steps.
type situation struct {
	running  int  // pods, those without a mirror included
	approved bool // what was held at the last quiescent moment, by its own word
	renewed  bool // a pod that the hold had named was made again since: of the new one nobody has read
}

// Errors of the status, in upstream's words; the last is this project's.
const (
	downloadError = "failed to sync: failed to download config, see Kubelet log for details"
	loadError     = "failed to load config, see Kubelet log for details"
	validateError = "failed to validate config, see Kubelet log for details"
	runError      = "failed to run config, see Kubelet log for details"
)

// malformedErrors are the beginnings of one and of several errors of an assignment.
var malformedErrors = []string{"failed to sync: spec.configSource.configMap.", "failed to sync: [spec.configSource.configMap."}

// errorsOf are the errors that fit a reason; reasons that say nothing of the assigned configuration alone fit all.
var errorsOf = map[string][]string{
	"Local": {""}, "InTrial": {""}, "Active": {""},
	"InvalidAssignment": malformedErrors,
	"SyncFailed":        {"failed to sync: "},
	"Refused":           {loadError, validateError},
	"RolledBack":        {runError}, "Rejected": {runError},
	"WouldDisrupt": {""},
}

// expect derives from the world and the truth of the last quiescent moment, and from the steps since, what has to come of them. The
// supervisor need not have seen every state in between: what comes fast, or while it is away, is overtaken by what comes next.
func expect(before truth, world world, steps []step, now situation) expectation {
	world = world.clone()
	e := expectation{assigned: []payload{before.assigned}, lastKnownGood: []payload{before.lastKnownGood}, starts: startsOf(before, world, steps, now)}
	approved := payload{}
	if now.approved {
		approved, _ = world.wanted()
		e.assigned, e.lastKnownGood = append(e.assigned, approved), append(e.lastKnownGood, approved)
	}
	waits := func(p payload) bool { return p.quality == harmful && p.number < now.running && p != before.active }
	for _, s := range steps {
		world.apply(s)
		p, known := world.wanted()
		if !known || waits(p) {
			continue
		}
		e.assigned = append(e.assigned, p)
		if p.quality.runs() {
			e.lastKnownGood = append(e.lastKnownGood, p)
		}
	}
	e.observed = world.assignment
	p, known := world.wanted()
	switch {
	case !known && world.assignment == malformed:
		e.reason, e.errors = "InvalidAssignment", malformedErrors
	case !known:
		e.reason, e.errors = "SyncFailed", []string{downloadError}
	case p.quality == none:
		e.reason, e.errors, e.assigned, e.lastKnownGood = "Local", []string{""}, []payload{p}, []payload{p}
	case waits(p):
		held := e
		held.reason, held.errors, held.losses = "WouldDisrupt", []string{""}, now.running-p.number
		held.assigned = append(held.assigned, before.active) // what was taken and waits after all is given back to what runs
		if p != approved {
			return held
		}
		e.reason, e.errors, e.assigned, e.lastKnownGood = "Active", []string{""}, []payload{p}, []payload{p}
		if len(steps) > 1 || now.renewed {
			e.otherwise = &held
		}
	case p.quality == good, p.quality == harmful:
		e.reason, e.errors, e.assigned, e.lastKnownGood = "Active", []string{""}, []payload{p}, []payload{p}
	case p.quality == refused:
		e.reason, e.errors, e.assigned = "Refused", []string{loadError, validateError}, []payload{p}
	case p.quality == deadly:
		e.reason, e.errors, e.assigned = "Rejected", []string{runError}, []payload{p}
	}
	return e
}

// startsOf counts the starts of the kubelet that one step makes; of several it depends on how they meet.
func startsOf(before truth, w world, steps []step, now situation) []int {
	if len(steps) != 1 || now.renewed {
		return nil
	}
	s := steps[0]
	switch {
	case s.approve != "" && now.approved:
		return []int{1}
	case s.approve != "":
		return []int{0}
	case s.supervisor == "HUP" || s.supervisor == "STOP" || s.kubelet == "STOP" || s.part != "" || s.jump != 0 || s.pod != "":
		return []int{0}
	case s.supervisor != "" || s.kubelet != "":
		return []int{1}
	case s.retry && before.assigned.quality == deadly:
		return []int{4}
	}
	w = w.clone()
	w.apply(s)
	p, known := w.wanted()
	switch {
	case !known || p == before.active || p.quality == refused || p.quality == harmful && p.number < now.running:
		return []int{0}
	case p.quality == deadly:
		return []int{0, 4} // rejected long since, or three of its own and the fallback's
	}
	return []int{1}
}

// unmet tells why v is not as expected yet, or not the truth; nil when it is.
func (e expectation) unmet(v truth, observed, reason, statusError string) string {
	switch {
	case observed != e.observed:
		return "config-observed is another assignment"
	case reason != e.reason:
		return "the reason is not " + e.reason
	case !fits(statusError, e.errors):
		return "the error is another"
	case !slices.Contains(e.assigned, v.assigned):
		return "assigned is none of what was assigned"
	case !slices.Contains(e.lastKnownGood, v.lastKnownGood):
		return "lastKnownGood is none of what it can be"
	}
	want := v.lastKnownGood
	if v.assigned.quality.runs() {
		want = v.assigned
	}
	switch {
	case e.reason == "WouldDisrupt" && v.active == v.lastKnownGood: // what was taken a moment before is not made any more
	case v.active != want:
		return "active is neither what is assigned nor the fallback"
	case want == v.assigned && v.lastKnownGood != want:
		return "what is active has not become lastKnownGood"
	}
	return ""
}

// fits: an error that ends in a full stop or a colon's space is a beginning, for what follows it is not for this program to know.
func fits(statusError string, errors []string) bool {
	return slices.ContainsFunc(errors, func(e string) bool {
		last := e[max(0, len(e)-1):]
		return statusError == e || (last == "." || last == " ") && len(statusError) > len(e) && statusError[:len(e)] == e
	})
}

// A ledger remembers what was done to kubelets, for what it does to their configurations: three failures in a trial and five exits in
// ten minutes reject even a good one, and it stays so until somebody asks.
type ledger struct {
	strikes []time.Time
	struck  map[payload]bool // good ones that may be rejected
}

const (
	trialFailures = 3
	exitLimit     = 5
	exitWindow    = 11 * time.Minute // the supervisor's ten, and some for the time that things take
)

// round enters the steps of a round, made from begin on, and tells whether a good configuration may have been rejected.
func (l *ledger) round(before truth, world world, steps []step, begin time.Time) bool {
	l.strikes = slices.DeleteFunc(l.strikes, func(at time.Time) bool { return begin.Sub(at) > exitWindow })
	world = world.clone()
	now := 0
	met := []payload{before.assigned, before.lastKnownGood}
	for _, s := range steps {
		world.apply(s)
		if p, _ := world.wanted(); p.quality == good || p.quality == harmful {
			met = append(met, p)
		}
		if s.strikes() {
			now++
			l.strikes = append(l.strikes, begin)
		}
	}
	struck := now >= trialFailures || now > 0 && len(l.strikes) >= exitLimit // earlier exits count with the next
	for _, p := range met {
		if (p.quality == good || p.quality == harmful) && struck {
			l.struck[p] = true
		}
	}
	return slices.ContainsFunc(met, func(p payload) bool { return l.struck[p] })
}

// acquit notes that a configuration was seen to run, or that somebody has asked for it.
func (l *ledger) acquit(p payload) { delete(l.struck, p) }
