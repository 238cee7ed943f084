package rollout

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// persist is how often elapsed times are written: a restart loses little, and the writes cost little.
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

// advanceWave updates the open wave's clock, and opens the next waves as long as they pass.
func (p *course) advanceWave(w *World, f *fleet) {
	if p.target.stable {
		p.clock = Clock{}
		return
	}
	if c := &p.count; c.of[Old] == 0 && c.late > 0 && (c.have == 0 || !p.target.completed && c.inWaves == 0) { // all members from when it was opened are gone
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
		if p.soaked(w.Elapsed) < p.wave().soak {
			return
		}
		p.passed = append(p.passed, p.clock.Wave)
		if p.lastWave() {
			p.complete(metav1.NewTime(w.Now))
			return
		}
		p.clock = Clock{Retry: p.target.retry, Wave: p.clock.Wave + 1, Opened: w.Now}
		p.opened = w.Now
		p.crew = crewOf(w, f, &p.aim, 0) // members that were too late for the previous wave are part of this one
	}
	p.goal = p.goalOf(&p.rules, p.clock.Wave)
}

// soaked returns how long the wave has been proven. The time before this was noticed does not count.
func (p *course) soaked(elapsed time.Duration) time.Duration {
	if p.wasSoaking {
		p.clock.Soaked += elapsed
		p.wasSoaking = false
	}
	p.clock.Soaking = true
	return p.clock.Soaked
}

// clockOf returns the clock of the open wave from this process, or else from the status.
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
	clock.Wave = min(max(clock.Wave, 1), waves) // the list of waves may have been shortened
	return clock
}

// counts reports whether the clock of an open wave advances.
func (p *aim) counts(c *Clock) bool {
	return p.target.stopped == nil && !p.Spec.Rollout.Paused && !c.Barred
}

// lastWave reports whether no wave follows after the open one.
func (p *course) lastWave() bool {
	return p.straight || int(p.clock.Wave) == len(p.rules.waves)
}

// wave returns the open wave. Going back to what all cohorts have completed before is one wave without soak.
func (p *course) wave() wave {
	if p.straight {
		return wave{nodes: amount{100, true}}
	}
	return p.rules.waves[p.clock.Wave-1]
}

// placed returns how many nodes the open wave has reached.
func (c *crew) placed() int {
	if c.straight {
		return c.count.have
	}
	return c.count.placed
}

// goalOf returns how many nodes a wave may have reached: never fewer than the previous waves, and in the first at
// least one of each cohort.
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

// waveProven reports whether the wave has reached all its nodes and they have proven the revision, except for a
// few that cannot.
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
	if !p.lastWave() { // a node that waits for its pods may wait for days: it fills this wave and the next
		waiting := c.of[Waiting] - c.dead[Waiting]
		if waiting > 0 && p.clock.Wave > 1 && c.proved < p.goalOf(&p.rules, p.clock.Wave-1) {
			return false // otherwise the waiting nodes would fill wave after wave, and begin together
		}
		inMotion -= waiting
	} else if p.target.completed {
		inMotion += c.superseded + c.backward
	}
	anyProven := c.proved > 0 || p.straight && c.of[Proven] > 0
	return p.doubt == "" && (p.wavers == "" || p.straight) && placed >= p.goal && c.blocked <= allowed && inMotion == 0 && anyProven
}

// complete makes the target the stable revision. Members that were unavailable become Late.
func (p *course) complete(now metav1.Time) {
	p.done, p.clock, p.goal = true, Clock{}, 0
	name := p.target.name
	p.noteCompletion(name, now)
	p.target.stable, p.target.completed = true, true
	p.stable = p.target.revision
	p.clearStops(targetHash(name))
}

// resultOf returns the result of the target.
func (t *target) result() v1alpha1.Result {
	switch {
	case t.completed:
		return v1alpha1.ResultCompleted
	case t.stopped != nil:
		return v1alpha1.ResultStopped
	}
	return v1alpha1.ResultRolling
}
