//go:build linux

package metrics

import (
	"maps"
	"slices"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/forecast/rejection"
	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
	"github.com/kubelet-supervisor/kubelet-supervisor/supervisor/core"
)

// Why a kubelet was started.
const (
	startOfOurs = "begin"  // the first of this supervisor
	startChange = "change" // after one that we have stopped
	startExit   = "exit"   // after one that ended without a request
)

// How a kubelet has ended.
const (
	endClean  = "clean" // with 0
	endError  = "error"
	endSignal = "signal"
	endHung   = "hung" // it did not feed its watchdog, and we ended it
)

// The phases of a change.
const (
	phaseDownload  = "download"  // until the payload is on the disk
	phasePreflight = "preflight" // asking the kubelet, or starting the next one as far as the lock
	phaseStop      = "stop"
	phaseStart     = "start"  // from the start to health
	phaseReport    = "report" // from something new to say to a Node that says it
)

const (
	noAnswer    = "none"
	otherAnswer = "other"
	// mostCodes bounds the series of requests: what answers may be anything.
	mostCodes = 32
)

// usualCodes are those that an API server has for a supervisor. Others have a series from their first answer on.
var usualCodes = []string{"200", "201", "400", "401", "403", "404", "409", "422", "429", "500", "503", "504", noAnswer, otherAnswer}

// otherReason counts all reasons that are not in lostReasons, because every user who may write the status of pods can invent one.
const otherReason = "Other"

// lostReasons are a kubelet's reasons for a pod that it rejects, or that makes room for another; and our own reason for a static pod.
var lostReasons = append(rejection.Reasons(), rejection.Preempting, rejection.Evicted, core.StaticPodEnded, otherReason)

// bounds are the upper ones of a histogram's buckets, in seconds; the last bucket is endless.
var bounds = []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120}

// Histogram is of seconds: how many fell into each bucket, and their sum.
type Histogram struct {
	Buckets []uint64
	Sum     float64
}

func (h *Histogram) observe(d time.Duration) {
	i, _ := slices.BinarySearch(bounds, d.Seconds())
	h.Buckets[i]++
	h.Sum += d.Seconds()
}

// Counts are all counters. At a reload one program hands them to the next. Maps are by the value of a label; what may
// come is there from the start, because a rate has to begin at 0.
type Counts struct {
	Starts, Rollbacks, Preflights map[string]uint64
	Exits                         map[string]uint64 // by cause, not asked for
	Asked                         uint64            // exits
	Rejections, Promotions        uint64
	Lost                          uint64            // pods, of any reason: all that an earlier program knew
	LostFor                       map[string]uint64 // by reason
	Aside                         uint64            // state files
	OfOurs                        bool              // the newest exit was asked for
	Unhealthy                     float64
	Changes                       map[string]*Histogram
	Requests                      map[string]uint64 // by the code of the answer, "none" or "other"
}

// filled gives zeros to what is not there: to all of new Counts, and to what an earlier program did not count.
func (c Counts) filled() Counts {
	c.Starts = zeros(c.Starts, startOfOurs, startChange, startExit)
	c.Exits = zeros(c.Exits, endClean, endError, endSignal, endHung)
	c.Rollbacks = zeros(c.Rollbacks, string(core.Exited), string(core.StartTimeout), string(core.PortHeld), string(core.LeaseLost))
	c.Preflights = zeros(c.Preflights, kubeletconfig.Accepted.String(), kubeletconfig.Refused.String(), kubeletconfig.Environment.String(),
		kubeletconfig.Unknown.String())
	c.LostFor = zeros(c.LostFor, lostReasons...)
	rest := c.Lost
	for _, n := range c.LostFor {
		rest -= min(n, rest)
	}
	c.LostFor[otherReason] += rest
	answers := c.Requests
	c.Requests = zeros(answers, usualCodes...)
	for _, code := range slices.Sorted(maps.Keys(answers)) {
		if _, usual := c.Requests[code]; !usual {
			c.answered(code, answers[code])
		}
	}
	changes := map[string]*Histogram{}
	for _, phase := range []string{phaseDownload, phasePreflight, phaseStop, phaseStart, phaseReport} {
		h := c.Changes[phase]
		if h == nil || len(h.Buckets) != len(bounds)+1 {
			h = &Histogram{Buckets: make([]uint64, len(bounds)+1)}
		}
		changes[phase] = h
	}
	c.Changes = changes
	return c
}

func zeros(have map[string]uint64, names ...string) map[string]uint64 {
	all := map[string]uint64{}
	for _, name := range names {
		all[name] = have[name]
	}
	return all
}

// clone is for another goroutine, or another program.
func (c Counts) clone() Counts {
	for _, m := range []*map[string]uint64{&c.Starts, &c.Exits, &c.Rollbacks, &c.Preflights, &c.LostFor, &c.Requests} {
		*m = maps.Clone(*m)
	}
	changes := map[string]*Histogram{}
	for phase, h := range c.Changes {
		changes[phase] = &Histogram{Buckets: slices.Clone(h.Buckets), Sum: h.Sum}
	}
	c.Changes = changes
	return c
}

// decided counts what one decision tells.
func (c *Counts) decided(before, after *core.State, event core.Event, step *core.Step) {
	switch e := event.(type) {
	case core.Proved:
		if e.Outcome != 0 {
			c.Preflights[e.Outcome.String()]++
		}
	case core.ParkEnded:
		if e.Waits {
			c.Preflights[kubeletconfig.Accepted.String()]++
		} else if e.Proved.Outcome != 0 {
			c.Preflights[e.Proved.Outcome.String()]++
		}
	case core.ChildExited:
		c.ended(before, e)
	case core.PodsLost:
		for reason, n := range e.New {
			c.lost(reason, uint64(n))
		}
	case core.Started:
		if e.Err == nil && len(e.InTheWay) == 0 && len(e.Limits) == 0 && !e.Gone {
			c.started()
		}
	}
	for _, e := range step.Events {
		switch e.Reason {
		case "KubeletConfigPromoted":
			c.Promotions++
		case "KubeletConfigRejected":
			c.Rejections++
		case "KubeletStateFileSetAside":
			c.Aside++
		case "KubeletConfigRolledBack":
			c.rolledBack(after)
		}
	}
}

// rolledBack counts by the cause of the newest failure, which is a suspect until its control has spoken.
func (c *Counts) rolledBack(after *core.State) {
	if n := len(after.Suspects); n > 0 {
		c.Rollbacks[string(after.Suspects[n-1].Cause)]++
	} else if n := len(after.Rejected); n > 0 {
		c.Rollbacks[string(after.Rejected[n-1].Cause)]++
	}
}

func (c *Counts) lost(reason string, n uint64) {
	if _, known := c.LostFor[reason]; !known {
		reason = otherReason
	}
	c.LostFor[reason] += n
	c.Lost += n
}

func (c *Counts) started() {
	why := startExit
	switch {
	case c.Starts[startOfOurs]+c.Starts[startChange]+c.Starts[startExit] == 0:
		why = startOfOurs
	case c.OfOurs:
		why = startChange
	}
	c.Starts[why]++
}

func (c *Counts) ended(before *core.State, e core.ChildExited) {
	c.OfOurs = e.Asked && before.Child.Hung == ""
	switch {
	case before.Child.Hung != "":
		c.Exits[endHung]++
	case e.Asked:
		c.Asked++
	case e.Code == 0:
		c.Exits[endClean]++
	case e.Code < 0:
		c.Exits[endSignal]++
	default:
		c.Exits[endError]++
	}
}

// answered counts answers of one code, apart for as long as there are few codes.
func (c *Counts) answered(code string, n uint64) {
	if _, known := c.Requests[code]; !known && len(c.Requests) >= mostCodes {
		code = otherAnswer
	}
	c.Requests[code] += n
}
