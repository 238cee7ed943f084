package rollout

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// persist is how often elapsed times are written: often enough that a restart loses little, seldom enough to cost nothing.
const persist = 30 * time.Second

// openWave finds the wave that is open.
func (p *aim) openWave(w *World) {
	if !p.target.there {
		return
	}
	p.begun = p.Status.Target == nil || p.Status.Target.RevisionName != p.target.name || p.Status.Target.Attempt != p.target.attempt
	if !p.target.stable {
		p.clock = p.clockOf(w)
		p.opened = p.clock.Opened
	}
}

// advanceWave brings the open wave's clock up to date, and opens the next waves as long as they pass.
func (p *course) advanceWave(w *World, f *fleet) {
	if p.target.stable {
		p.clock = Clock{}
		return
	}
	if c := &p.count; c.of[Old] == 0 && c.late > 0 && (c.have == 0 || !p.target.completed && c.inWaves == 0) { // all that were there when it was opened are gone
		p.clock.Opened, p.opened = w.Now, w.Now
		p.crew = crewOf(w, f, &p.aim, 0)
	}
	if reached := p.count.have + p.count.of[Proven]; reached > p.clock.Reached {
		p.clock.Reached, p.clock.Idle = reached, 0
	}
	for p.target.stopped == nil {
		p.goal = p.goalOf(&p.rules, p.clock.Wave)
		if !p.waveProven() {
			return
		}
		if p.soaked(w.Elapsed) < p.wave(&p.rules, p.clock.Wave).soak {
			return
		}
		p.passed = append(p.passed, p.clock.Wave)
		if p.lastWave(&p.rules, p.clock.Wave) {
			p.complete(metav1.NewTime(w.Now))
			return
		}
		p.clock = Clock{Retry: p.target.retry, Wave: p.clock.Wave + 1, Opened: w.Now}
		p.opened = w.Now
		p.crew = crewOf(w, f, &p.aim, 0) // who was too late for the wave before is part of this one
	}
	p.goal = p.goalOf(&p.rules, p.clock.Wave)
}

// soaked is for how long the wave has been proven. The time before it was found so does not count.
func (p *course) soaked(elapsed time.Duration) time.Duration {
	if p.wasSoaking {
		p.clock.Soaked += elapsed
		p.wasSoaking = false
	}
	p.clock.Soaking = true
	return p.clock.Soaked
}

// clockOf is the clock of the open wave: that of this process, or else the one in the status.
func (p *aim) clockOf(w *World) Clock {
	clock, known := w.Clocks[p.Name]
	waves := int32(len(p.rules.waves))
	switch s := p.Status.Wave; {
	case known && clock.Retry == p.target.retry && (s == nil || s.Number <= clock.Wave):
		p.wasSoaking = clock.Soaking
		if p.counts(&clock) {
			clock.Elapsed += w.Elapsed
			clock.Idle += w.Elapsed
		}
	case s != nil && !p.begun:
		clock = Clock{Retry: p.target.retry, Wave: s.Number, Soaked: s.Soaked.Duration, Elapsed: s.Elapsed.Duration, Opened: s.Opened.Time}
	default:
		clock = Clock{Retry: p.target.retry, Wave: 1, Opened: w.Now}
	}
	clock.Soaking, clock.Barred = false, false
	clock.Wave = min(max(clock.Wave, 1), waves) // the list may have been shortened
	return clock
}

// counts reports whether the time of an open wave passes.
func (p *aim) counts(c *Clock) bool {
	return p.target.stopped == nil && !p.Spec.Rollout.Paused && !c.Barred
}

// lastWave reports whether no wave follows after this one.
func (c *crew) lastWave(r *rules, number int32) bool {
	return c.straight || int(number) == len(r.waves)
}

// wave is the wave with a number. Going back to what was completed before in all cohorts is one wave without soak.
func (c *crew) wave(r *rules, number int32) wave {
	if c.straight {
		return wave{nodes: amount{100, true}}
	}
	return r.waves[number-1]
}

// placed is how many nodes the open wave has reached.
func (c *crew) placed() int {
	if c.straight {
		return c.count.have
	}
	return c.count.placed
}

// goalOf is how many nodes a wave may have reached: never fewer than the waves before it, and in the first at least one of each cohort.
func (c *crew) goalOf(r *rules, number int32) int {
	if c.straight {
		return c.count.have + c.count.backward
	}
	goal := 0
	for i := range c.cohorts {
		if c.cohorts[i].inWaves {
			goal++
		}
	}
	for i := range r.waves[:number] {
		goal = max(goal, r.waves[i].nodes.roundedUp(c.count.inWaves))
	}
	return goal
}

// waveProven reports whether all that the wave may reach has been reached and has proven the revision, except for few that cannot.
func (p *course) waveProven() bool {
	c, placed := &p.count, p.placed()
	allowed := 0
	if p.clock.Wave > 1 || p.straight {
		allowed = max(1, p.rules.tolerate.of(placed))
	}
	inMotion := c.moving - c.stuck + c.of[Failed] - c.trustedFailed
	if c.trustedFailed > max(1, p.rules.tolerate.of(c.have)) {
		inMotion += c.trustedFailed
	}
	if !p.lastWave(&p.rules, p.clock.Wave) { // one that waits for its pods may wait for days: it fills this wave and the next
		waiting := c.of[Waiting] - c.dead[Waiting]
		if waiting > 0 && p.clock.Wave > 1 && c.proved < p.goalOf(&p.rules, p.clock.Wave-1) {
			return false // else those who wait would fill one wave after the other, and begin at once
		}
		inMotion -= waiting
	} else if p.target.completed {
		inMotion += c.superseded + c.backward
	}
	somebody := c.proved > 0 || p.straight && c.of[Proven] > 0
	return p.doubt == "" && (p.wavers == "" || p.straight) && placed >= p.goal && c.blocked <= allowed && inMotion == 0 && somebody
}

// complete makes the target the stable revision. What was away becomes Late with that.
func (p *course) complete(now metav1.Time) {
	p.done, p.clock, p.goal = true, Clock{}, 0
	name := p.target.name
	p.noteCompletion(name, now)
	p.target.stable, p.target.completed = true, true
	p.stable = p.target.revision
	p.clearStops(targetHash(name))
}

// resultOf is what has become of the target.
func (t *target) result() v1alpha1.Result {
	switch {
	case t.completed:
		return v1alpha1.ResultCompleted
	case t.stopped != nil:
		return v1alpha1.ResultStopped
	}
	return v1alpha1.ResultRolling
}
