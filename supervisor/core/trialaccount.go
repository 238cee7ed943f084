package core

import (
	"slices"
	"strings"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// Trial is the account of the one configuration that is on trial (rules 7 and 10). Its zero value is no trial.
type Trial struct {
	Content   string                 `json:"content,omitempty"`
	Kubelet   kubeletconfig.Identity `json:"kubelet,omitzero"`
	Healthy   Span                   `json:"healthy,omitempty"`   // running time that counted so far
	Unhealthy Span                   `json:"unhealthy,omitempty"` // running time after the first health without it
	Tries     Count                  `json:"tries,omitempty"`     // starts spent and not refunded, the open one included
	Open      bool                   `json:"open,omitempty"`      // a start was spent whose end is not recorded
	Parked    bool                   `json:"parked,omitempty"`    // the open start waits at the lock, as far as is known
	HadHealth bool                   `json:"sound,omitempty"`     // the open start has had 10 s of health
	BootID    string                 `json:"bootID,omitempty"`    // of the boot in which the open start was spent
	Longest   Span                   `json:"longest,omitempty"`   // longest life of a start that failed
	Baseline  bool                   `json:"baseline,omitempty"`  // the configuration before it, or it itself, renewed the Lease
	Renewed   bool                   `json:"renewed,omitempty"`   // it has itself renewed the Lease
	// Before are the Node's conditions before the start that began the trial.
	Before Conditions `json:"conditionsBefore,omitzero"`
	// Unstarted names pods that came since then and could not be started; empty = none is known, or one that came could be.
	Unstarted string `json:"unstartedPods,omitempty"`
}

// isOf reports whether the account is about what the child runs.
func (t *Trial) isOf(c Child) bool {
	return c.Alive && c.NotInUse == "" && c.Version != nil && t.Content == c.Version.Content && t.Kubelet == c.Kubelet
}

func (t *Trial) isTooLongUnhealthy(settings Settings) bool {
	return time.Duration(t.Unhealthy) >= settings.StartTimeout
}

func (t *Trial) isFull(settings Settings) bool {
	return time.Duration(t.Healthy) >= settings.TrialPeriod
}

// refund gives the open start back: its end says nothing about the configuration.
func (t *Trial) refund() {
	if t.Open {
		t.Open, t.Parked = false, false
		t.Tries--
	}
}

// refundParked refunds the try of a kubelet that never was past its lock, and does not wait at it: perhaps it was never started, because
// its try could not be written.
func (t *Trial) refundParked() {
	if t.Parked {
		t.refund()
	}
}

// worse returns the conditions of the Node that are bad, and were not known to be so before the trial; empty = none.
func (t *Trial) worse(node NodeLooks) string {
	if !node.Known || node.Bad == "" {
		return ""
	}
	before := strings.Split(t.Before.Bad, ", ")
	worse := without(strings.Split(node.Bad, ", "), func(name string) bool { return slices.Contains(before, name) })
	return strings.Join(worse, ", ")
}

// worseWarning returns what the trial waits for; empty = nothing.
func (t *Trial) worseWarning(node NodeLooks, child Child) string {
	worse := t.worse(node)
	if worse == "" || !t.isOf(child) || node.Bads < badsToSay {
		return ""
	}
	since := "since this configuration was started"
	if !t.Before.Known {
		since = "and whether it was so before this configuration was started is not known"
	}
	return "the trial clock stands: bad conditions of the Node, " + since + ": " + worse
}

// unstartedWarning returns that no pod can be started; empty = that is not known.
func (t *Trial) unstartedWarning(child Child) string {
	if t.Unstarted == "" || !t.isOf(child) {
		return ""
	}
	return "no pod could be started since this configuration was: these have no sandbox: " + t.Unstarted
}

// awaited returns what a promotion waits for whose time is over.
func (t *Trial) awaited(node NodeLooks) string {
	switch {
	case !t.Renewed:
		return "and its Lease was seen to be renewed"
	case t.worse(node) != "":
		return "and conditions of the Node are good again: " + t.worse(node)
	case node.Waiting != "":
		return "and a pod that has come since then was seen to be started: " + node.Waiting
	}
	return "and its kubelet was seen to post the Node's conditions"
}
