package rollout

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
)

// persist is how often elapsed times are written: often enough that a restart loses little, seldom enough to cost nothing.
const persist = 30 * time.Second

// openWave finds the wave that is open.
func (d *decision) openWave(p *pool) {
	if !p.target.there {
		return
	}
	p.begun = p.Status.Target == nil || p.Status.Target.RevisionName != p.target.name || p.Status.Target.Attempt != p.target.attempt
	if !p.target.stable {
		p.clock = d.clockOf(p)
		p.opened = p.clock.Opened
	}
}

// advance brings the open wave's clock up to date, and opens the next waves as long as they pass.
func (d *decision) advance(p *pool) {
	if p.target.stable {
		p.clock = Clock{}
		return
	}
	if c := &p.count; c.of[Old] == 0 && c.late > 0 && (c.have == 0 || !p.target.completed && c.inWaves == 0) { // all that were there when it was opened are gone
		p.clock.Opened, p.opened = d.w.Now, d.w.Now
		d.classify(p)
	}
	if reached := p.count.have + p.count.of[Proven]; reached > p.clock.Reached {
		p.clock.Reached, p.clock.Idle = reached, 0
	}
	for p.target.stopped == nil {
		p.goal = p.goalOf(p.clock.Wave)
		if !p.waveProven() {
			return
		}
		if p.soaked(d.w.Elapsed) < p.wave().soak {
			return
		}
		p.passed = append(p.passed, p.clock.Wave)
		if p.lastWave() {
			p.complete(metav1.NewTime(d.w.Now))
			return
		}
		p.clock = Clock{Retry: p.target.retry, Wave: p.clock.Wave + 1, Opened: d.w.Now}
		p.opened = d.w.Now
		d.classify(p) // who was too late for the wave before is part of this one
	}
	p.goal = p.goalOf(p.clock.Wave)
}

// soaked is for how long the wave has been proven. The time before it was found so does not count.
func (p *pool) soaked(elapsed time.Duration) time.Duration {
	if p.wasSoaking {
		p.clock.Soaked += elapsed
		p.wasSoaking = false
	}
	p.clock.Soaking = true
	return p.clock.Soaked
}

// clockOf is the clock of the open wave: that of this process, or else the one in the status.
func (d *decision) clockOf(p *pool) Clock {
	clock, known := d.w.Clocks[p.Name]
	waves := int32(len(p.rules.waves))
	switch s := p.Status.Wave; {
	case known && clock.Retry == p.target.retry && (s == nil || s.Number <= clock.Wave):
		p.wasSoaking = clock.Soaking
		if clock.counts(p) {
			clock.Elapsed += d.w.Elapsed
			clock.Idle += d.w.Elapsed
		}
	case s != nil && !p.begun:
		clock = Clock{Retry: p.target.retry, Wave: s.Number, Soaked: s.Soaked.Duration, Elapsed: s.Elapsed.Duration, Opened: s.Opened.Time}
	default:
		clock = Clock{Retry: p.target.retry, Wave: 1, Opened: d.w.Now}
	}
	clock.Soaking, clock.Barred = false, false
	clock.Wave = min(max(clock.Wave, 1), waves) // somebody may have shortened the list
	return clock
}

// counts: the time of an open wave passes.
func (c *Clock) counts(p *pool) bool {
	return p.target.stopped == nil && !p.Spec.Rollout.Paused && !c.Barred
}

func (p *pool) lastWave() bool {
	return p.straight || int(p.clock.Wave) == len(p.rules.waves)
}

// wave is the open one. Going back to what was completed before in all cohorts is one wave without soak.
func (p *pool) wave() wave {
	if p.straight {
		return wave{nodes: amount{100, true}}
	}
	return p.rules.waves[p.clock.Wave-1]
}

// placed is how many nodes the open wave has reached.
func (p *pool) placed() int {
	if p.straight {
		return p.count.have
	}
	return p.count.placed
}

// goalOf is how many nodes a wave may have reached: never fewer than the waves before it, and in the first at least one of each cohort.
func (p *pool) goalOf(number int32) int {
	if p.straight {
		return p.count.have + p.count.backward
	}
	goal := 0
	for i := range p.cohorts {
		if p.cohorts[i].inWaves {
			goal++
		}
	}
	for i := range p.rules.waves[:number] {
		goal = max(goal, p.rules.waves[i].nodes.roundedUp(p.count.inWaves))
	}
	return goal
}

// waveProven: all that the wave may reach has been reached, and has proven the revision, but for few that cannot.
func (p *pool) waveProven() bool {
	c, placed := &p.count, p.placed()
	allowed := 0
	if p.clock.Wave > 1 || p.straight {
		allowed = max(1, p.rules.tolerate.of(placed))
	}
	inMotion := p.inMotion() - c.stuck + c.of[Failed] - c.trustedFailed
	if c.trustedFailed > max(1, p.rules.tolerate.of(c.have)) {
		inMotion += c.trustedFailed
	}
	if !p.lastWave() { // one that waits for its pods may wait for days: it fills this wave and the next
		waiting := c.of[Waiting] - c.dead[Waiting]
		if waiting > 0 && p.clock.Wave > 1 && c.proved < p.goalOf(p.clock.Wave-1) {
			return false // else those who wait would fill one wave after the other, and begin at once
		}
		inMotion -= waiting
	} else if p.target.completed {
		inMotion += c.superseded + c.backward
	}
	somebody := c.proved > 0 || p.straight && c.of[Proven] > 0
	return p.doubt == "" && (p.wavers == "" || p.straight) && placed >= p.goal && c.blocked <= allowed && inMotion == 0 && somebody
}

// inMotion are the members that have the target, and have not answered for good.
func (p *pool) inMotion() int {
	return p.count.moving
}

// complete makes the target the stable revision. What was away becomes Late with that.
func (p *pool) complete(now metav1.Time) {
	p.done, p.clock, p.goal = true, Clock{}, 0
	name := p.target.name
	p.noteCompletion(name, now)
	p.status.Stable = &name
	p.target.stable, p.target.completed = true, true
	p.stable = p.target.revision
	stops := p.status.Stops[:0:0]
	for _, stop := range p.status.Stops {
		if stop.Hash != targetHash(name) {
			stops = append(stops, stop)
		}
	}
	p.status.Stops = stops
}

// resultOf is what has become of the target.
func (p *pool) resultOf() v1alpha1.Result {
	switch {
	case p.target.completed:
		return v1alpha1.ResultCompleted
	case p.target.stopped != nil:
		return v1alpha1.ResultStopped
	}
	return v1alpha1.ResultRolling
}
