//go:build linux

package main

import (
	"math/rand/v2"
	"slices"
	"time"
)

// An action is a kind of step.
type action struct {
	name   string
	weight int                 // how often, relative to the others that can be done
	can    func(w *world) bool // nil: always
	fill   func(p *plan, s *step)
}

// actions are all that is done. A change of the configuration needs the API server.
var actions = []action{
	{"assign", 8, changeable, func(p *plan, s *step) { p.write(s, good, p.pick(configMaps)) }},
	{"assign", 4, changeable, func(p *plan, s *step) { p.write(s, deadly, p.pick(configMaps)) }},
	{"assign", 4, changeable, func(p *plan, s *step) { p.write(s, refused, p.pick(configMaps)) }},
	{"assign", 4, harmable, func(p *plan, s *step) { p.write(s, harmful, p.pick(configMaps)) }},
	{"assign what is absent", 2, changeable, func(_ *plan, s *step) { s.assign = pointer(assignmentOf(absent)) }},
	{"assign what is malformed", 1, changeable, func(_ *plan, s *step) { s.assign = pointer(malformed) }},
	{"assign local", 1, changeable, func(_ *plan, s *step) { s.assign = pointer("local") }},
	{"unassign", 3, changeable, func(_ *plan, s *step) { s.assign = pointer("") }},
	{"retry", 2, changeable, func(_ *plan, s *step) { s.retry = true }},

	{"edit", 5, ownConfigMap, func(p *plan, s *step) { p.edit(s, good) }},
	{"edit", 2, ownConfigMap, func(p *plan, s *step) { p.edit(s, deadly) }},
	{"edit", 2, ownConfigMap, func(p *plan, s *step) { p.edit(s, refused) }},
	{"edit", 1, func(w *world) bool { return ownConfigMap(w) && harmable(w) }, func(p *plan, s *step) { p.edit(s, harmful) }},
	{"relabel", 2, ownConfigMapThere, func(p *plan, s *step) { s.label, _ = p.world.assigned() }},
	{"delete", 2, ownConfigMapThere, func(p *plan, s *step) { s.remove, _ = p.world.assigned() }},
	{"re-create", 3, ownConfigMapThere, func(p *plan, s *step) {
		s.remove, _ = p.world.assigned()
		s.put, s.payload = s.remove, p.world.configMaps[s.remove]
	}},

	{"approve", 100, func(w *world) bool { return w.quiet && w.holds() }, func(p *plan, s *step) {
		s.approve = []approval{approvedOnce, approvedOnce, approvedTwice, approvedAny, approvedStale}[p.random.IntN(5)]
	}},

	{"delete a pod", 2, func(w *world) bool { return w.reachable() && !w.podChanged && !w.noPod }, func(_ *plan, s *step) { s.pod = podDeleted }},
	{"create a pod", 4, func(w *world) bool { return w.reachable() && !w.podChanged && w.noPod && !w.short }, func(_ *plan, s *step) { s.pod = podCreated }},

	{"kill the supervisor", 8, unprotected, func(_ *plan, s *step) { s.supervisor = "KILL" }},
	{"stop the supervisor", 4, unprotected, func(_ *plan, s *step) { s.supervisor = "TERM" }},
	{"quit the supervisor", 1, unprotected, func(_ *plan, s *step) { s.supervisor = "QUIT" }},
	{"reload the supervisor", 1, func(w *world) bool { return !w.holds() }, func(_ *plan, s *step) { s.supervisor = "HUP" }},
	{"reload the supervisor", 8, func(w *world) bool { return w.holds() }, func(_ *plan, s *step) { s.supervisor = "HUP" }},
	{"freeze the supervisor", 2, func(w *world) bool { return !w.suspended }, func(p *plan, s *step) { s.supervisor, s.hold = "STOP", p.hold(90*time.Second) }},
	{"kill the kubelet", 5, nil, func(_ *plan, s *step) { s.kubelet = "KILL" }},
	{"stop the kubelet", 2, thawed, func(_ *plan, s *step) { s.kubelet = "TERM" }},
	{"freeze the kubelet", 1, thawed, func(_ *plan, s *step) { s.kubelet = "STOP" }},

	{"kill", 4, anyWhole, func(p *plan, s *step) { p.harm(s, killed) }},
	{"stop", 2, anyWhole, func(p *plan, s *step) { p.harm(s, stopped) }},
	{"freeze", 2, anyWhole, func(p *plan, s *step) { p.harm(s, frozen) }},
	{"cut the network", 3, func(w *world) bool { return !w.broken[network] }, func(_ *plan, s *step) { s.part, s.harm = network, cut }},
	{"hang", 3, func(w *world) bool { return !w.broken[disk] }, func(p *plan, s *step) { s.part, s.harm, s.hold = disk, hung, p.hold(20*time.Second) }},
	{"answer", 5, func(w *world) bool { return !w.broken[answers] }, func(p *plan, s *step) {
		s.part, s.harm = answers, []harm{busy, failing, podless}[p.random.IntN(3)]
	}},
	{"take", 4, takeable, func(_ *plan, s *step) { s.part, s.harm = pages, taken }},
	{"mend", 8, func(w *world) bool { return len(w.broken) > 0 }, func(p *plan, s *step) { s.part, s.harm = p.pick(p.brokenParts()), mended }},
}

// clockJump is for machines that allow it. However often it jumps, the clock is at most 50 minutes off: the certificates of the
// cluster begin an hour ago.
var clockJump = action{"jump the clock", 4, nil, func(p *plan, s *step) {
	s.jump = time.Duration(p.random.IntN(6001)-3000)*time.Second - p.world.clock
}}

func changeable(w *world) bool { return w.reachable() }

// harmable: in a round with an approval nothing else is assigned that would wait for one. Whether it would depends on what came of the first.
func harmable(w *world) bool { return w.reachable() && !w.short }

// takeable: no look can know what goes between it and the start.
func takeable(w *world) bool { return w.hugePages && !w.broken[pages] && !w.moved }

func unprotected(w *world) bool { return !w.protected }
func thawed(w *world) bool      { return !w.frozen }
func anyWhole(w *world) bool    { return len(wholeParts(w)) > 0 }

func ownConfigMap(w *world) bool {
	name, _ := w.assigned()
	return w.reachable() && slices.Contains(configMaps, name)
}

func ownConfigMapThere(w *world) bool {
	name, _ := w.assigned()
	_, is := w.configMaps[name]
	return w.reachable() && is
}

// wholeParts are the processes of the cluster that are not broken. With the network cut none is started anew: it could not be told
// when it is ready.
func wholeParts(w *world) []string {
	return slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return !isProcess(part) || w.broken[part] })
}

// A plan is the endless sequence of steps of a seed.
type plan struct {
	random *rand.Rand
	world  world
	rounds int
	clock  bool
}

func newPlan(seed uint64, clock bool) *plan {
	return &plan{random: rand.New(rand.NewPCG(seed, 0)), world: newWorld(), clock: clock}
}

// Of every lifeRounds rounds the second half leaves the supervisor alone.
const lifeRounds = 8

// round gives the steps of the next round, those that mend included. Every third is of one step, whose restarts can be foretold.
func (p *plan) round() (steps, mending []step) {
	p.world.begin(p.rounds%lifeRounds >= lifeRounds/2)
	count := 1
	if p.rounds%3 != 1 {
		count = 2 + p.random.IntN(5)
	}
	p.rounds++
	for range count {
		s := p.step()
		p.world.apply(s)
		steps = append(steps, s)
	}
	stay(steps, p.world)
	return steps, p.world.mend()
}

// stay lengthens the last pause until what is frozen or hangs has done so for as long as it is to.
func stay(steps []step, w world) {
	var passed, missing time.Duration
	for _, s := range slices.Backward(steps) {
		passed += s.pause
		if s.part == disk && w.broken[disk] || s.supervisor == "STOP" && w.suspended {
			missing = max(missing, s.hold-passed)
		}
	}
	steps[len(steps)-1].pause += missing
}

func (p *plan) step() step {
	list := actions
	if p.clock {
		list = append(slices.Clone(actions), clockJump)
	}
	possible, total := []action{}, 0
	for _, a := range list {
		if a.can == nil || a.can(&p.world) {
			possible, total = append(possible, a), total+a.weight
		}
	}
	at := p.random.IntN(total)
	for _, a := range possible {
		if at -= a.weight; at < 0 {
			s := step{name: a.name}
			a.fill(p, &s)
			s.pause = p.pause()
			return s
		}
	}
	panic("unreachable: the weights add up to the total")
}

// pause is mostly so short that the next step falls into the change that this one has begun.
func (p *plan) pause() time.Duration {
	most := []time.Duration{300 * time.Millisecond, 300 * time.Millisecond, 1500 * time.Millisecond, 6 * time.Second}[p.random.IntN(4)]
	return time.Duration(p.random.Int64N(int64(most))).Round(time.Millisecond)
}

// hold is how long something stays as it is unless it is mended: mostly a moment, now and then up to the longest.
func (p *plan) hold(most time.Duration) time.Duration {
	most /= []time.Duration{16, 16, 4, 1}[p.random.IntN(4)]
	return time.Duration(p.random.Int64N(int64(most))).Round(time.Millisecond)
}

// write puts a payload of the quality into the ConfigMap and assigns it.
func (p *plan) write(s *step, q quality, configMap string) {
	p.fillIn(s, q, configMap)
	s.assign = pointer(assignmentOf(configMap))
}

// edit puts another payload into the ConfigMap that is assigned; it may have to be made.
func (p *plan) edit(s *step, q quality) {
	configMap, _ := p.world.assigned()
	p.fillIn(s, q, configMap)
}

func (p *plan) fillIn(s *step, q quality, configMap string) {
	list := numbers[q]
	s.put, s.payload = configMap, payload{q, list[p.random.IntN(len(list))]}
}

func (p *plan) harm(s *step, h harm) { s.part, s.harm = p.pick(wholeParts(&p.world)), h }

func (p *plan) brokenParts() []string {
	return slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return !p.world.broken[part] })
}

func (p *plan) pick(list []string) string { return list[p.random.IntN(len(list))] }

func pointer(s string) *string { return &s }
