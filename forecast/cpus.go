package forecast

import (
	"fmt"
	"slices"
	"strconv"
)

// Options of the static CPU manager. The others choose which CPUs a container gets, and not whether it gets them.
const (
	wholeCores        = "full-pcpus-only"
	strictReservation = "strict-cpu-reservation"
	spreadOverNodes   = "distribute-cpus-across-numa"
	spreadOverCores   = "distribute-cpus-across-cores"
	alignBySocket     = "align-by-socket"
	preferUncoreCache = "prefer-align-cpus-by-uncorecache"
)

func isOn(options map[string]string, name string) bool {
	on, err := strconv.ParseBool(options[name])
	return err == nil && on
}

// A span is a number that is not known better.
type span struct{ least, most int }

func exactly(n int) span { return span{n, n} }

// less takes away at least and at most so many.
func (s span) less(taken span) span {
	return span{max(s.least-taken.most, 0), max(s.most-taken.least, 0)}
}

func (s span) plus(other span) span { return span{s.least + other.least, s.most + other.most} }

// A cpuPool is what a static CPU manager has for containers that get CPUs alone.
type cpuPool struct {
	has     map[string]map[string][]int // the CPUs of pods' containers, by the state file
	allHave bool                        // those that run, whatever the file says
	free    span                        // CPUs that are shared and not reserved
	whole   span                        // … and that are no siblings of reserved ones

	wholeCores bool
	threads    int  // of a core; 0: not known
	oneNode    bool // of memory
	uneven     bool // the machine's cores or sockets differ: then the kubelet may take a CPU twice, or one that is reserved
	inOrder    bool // CPUs are always taken in one order, so those of an init container are taken again first
}

// poolsOf returns what the CPU manager starts with: one pool where that is known, two where it depends on whether it
// takes the state file, none where it gives no CPUs away. A state file that it refuses is set aside, and then all pods
// are given CPUs again.
func poolsOf(c, now *Configuration, h Host, r room, list []*candidate) []cpuPool {
	if c.CPUManagerPolicy != "static" {
		return nil
	}
	all := int(r.capacity.milliCPU / 1000)
	reserved, _ := reservedOf(c) // roomOf has told of an error
	count := wholeCPUs(reserved.milliCPU, all)
	kept := keepsState(c, now, h, all, count)
	var pools []cpuPool
	if kept != no {
		pools = append(pools, keptPool(c, h, all, count, list))
	}
	if kept != yes {
		pools = append(pools, freshPool(c, h, all, count))
	}
	return pools
}

func freshPool(c *Configuration, h Host, all, reserved int) cpuPool {
	p := cpuPool{free: exactly(all - reserved), wholeCores: isOn(c.CPUManagerPolicyOptions, wholeCores), threads: h.threads(), oneNode: h.oneNode()}
	sockets := h.unit(func(c CPU) int { return c.Socket })
	p.uneven = !uniform(sockets) || !uniform(h.unit(func(c CPU) int { return c.Core }))
	p.inOrder = p.oneNode && len(sockets) == 1 && !p.uneven && (p.threads == 1 || p.wholeCores) && !isOn(c.CPUManagerPolicyOptions, preferUncoreCache)
	p.whole = p.free.without(h.siblingsOfReserved(c, reserved, nil))
	return p
}

func keptPool(c *Configuration, h Host, all, reserved int, list []*candidate) cpuPool {
	p := freshPool(c, h, all, reserved)
	if h.CPUState == nil { // the same policy over the same CPUs
		p.allHave = true
		for _, pod := range list {
			if pod.runs {
				p.free = p.free.less(exactly(alone(pod.containers)))
			}
		}
		p.whole = p.free.without(h.siblingsOfReserved(c, reserved, nil))
		return p
	}
	p.has = h.CPUState.Entries
	p.free = exactly(len(h.CPUState.Shared) - reserved)
	if isOn(c.CPUManagerPolicyOptions, strictReservation) {
		p.free = exactly(len(h.CPUState.Shared)) // the reserved ones are not in it
	}
	p.whole = p.free.without(h.siblingsOfReserved(c, reserved, h.CPUState.Shared))
	return p
}

// without takes away what is one number, or not known.
func (s span) without(count int, known bool) span {
	if !known {
		return span{0, s.most}
	}
	return s.less(exactly(count))
}

// siblingsOfReserved counts CPUs of reserved cores that are not reserved themselves, among these; nil: among all.
func (h Host) siblingsOfReserved(c *Configuration, count int, among []int) (siblings int, known bool) {
	if h.threads() == 1 {
		return 0, true
	}
	reserved, known := reservedSet(c, h, count)
	if !known || h.threads() == 0 {
		return 0, false
	}
	others := without(h.withSiblings(reserved), reserved)
	if among == nil {
		return len(others), true
	}
	set := setOf(among)
	for _, cpu := range others {
		if set[cpu] {
			siblings++
		}
	}
	return siblings, true
}

// wholeCPUs is how many of all CPUs are reserved.
func wholeCPUs(milliCPU int64, all int) int {
	return int(min(milliCPU/1000+min(milliCPU%1000, 1), int64(all)))
}

// keepsState reports whether the kubelet starts with the state file that is there.
func keepsState(c, now *Configuration, h Host, all, reserved int) certainty {
	strict := isOn(c.CPUManagerPolicyOptions, strictReservation)
	if h.CPUState == nil {
		same := now.ReservedSystemCPUs == c.ReservedSystemCPUs &&
			isOn(now.CPUManagerPolicyOptions, strictReservation) == strict
		before, err := reservedOf(now)
		switch {
		case now.CPUManagerPolicy != "static":
			return no
		case same && err == nil && wholeCPUs(before.milliCPU, all) == reserved:
			return yes
		}
		return perhaps
	}
	if h.CPUState.Policy != "static" || len(h.CPUState.Shared) == 0 {
		return no
	}
	cpus, told := reservedSet(c, h, reserved)
	if !told {
		return perhaps
	}
	known := h.CPUState.all()
	if strict {
		if len(without(known, cpus)) < len(known) {
			return no
		}
		known = append(known, cpus...)
	} else if len(without(cpus, h.CPUState.Shared)) > 0 {
		return no
	}
	if !h.sameCPUs(known, all) {
		return no
	}
	return yes
}

// all are the CPUs of which the file knows. Those of an init container are used again, so they may be in it twice.
func (s *CPUState) all() []int {
	known := slices.Clone(s.Shared)
	for _, containers := range s.Entries {
		for _, own := range containers {
			known = append(known, own...)
		}
	}
	return known
}

// sameCPUs compares a list with the machine's CPUs, by number where these are not known.
func (h Host) sameCPUs(list []int, all int) bool {
	slices.Sort(list)
	list = slices.Compact(list)
	if h.CPUs == nil {
		return len(list) == all
	}
	var online []int
	for _, c := range h.CPUs {
		online = append(online, c.ID)
	}
	slices.Sort(online)
	return slices.Equal(list, online)
}

// reservedSet is which CPUs are reserved. Where only their number is given, the kubelet takes the first ones.
func reservedSet(c *Configuration, h Host, count int) (cpus []int, known bool) {
	if c.ReservedSystemCPUs != "" {
		cpus, err := parseCPUs(c.ReservedSystemCPUs)
		return cpus, err == nil
	}
	return h.first(count, c.CPUManagerPolicyOptions)
}

func without(cpus, these []int) []int {
	gone := setOf(these)
	return slices.DeleteFunc(slices.Clone(cpus), func(cpu int) bool { return gone[cpu] })
}

func setOf(cpus []int) map[int]bool {
	set := make(map[int]bool, len(cpus))
	for _, cpu := range cpus {
		set[cpu] = true
	}
	return set
}

// A cpuTurn is one pod's, in one pool: what its init containers had can be taken again.
type cpuTurn struct {
	again   span
	doubted bool // it may have been refused before, and then takes nothing more
}

// take gives a container its CPUs, or returns why not. What a pod got that is refused for something else stays taken for a while.
func (p *cpuPool) take(t *cpuTurn, pod *candidate, c container) verdict {
	if c.cpus == 0 {
		return admitted
	}
	doubt := p.fitsCores(c.cpus)
	if doubt.certain {
		return doubt
	}
	if p.keeps(pod, c) {
		t.used(c, span{0, c.cpus}, span{0, c.cpus})
		return doubt
	}
	if short := p.short(t, c.cpus); short.refused() {
		if short.certain {
			return short
		}
		doubt = short
	}
	again := span{max(c.cpus-p.free.most, 0), min(c.cpus, t.again.most)}
	if p.inOrder {
		again = exactly(min(c.cpus, t.again.most))
	}
	taken := span{c.cpus - again.most, c.cpus - again.least}
	t.doubted = t.doubted || doubt.refused()
	if p.uneven || t.doubted {
		taken.least = 0
	}
	spare := max(p.free.most-p.whole.most, 0)
	p.free = p.free.less(taken)
	if !p.oneNode {
		taken.least = max(taken.least-spare, 0) // they may be siblings of reserved ones
	}
	p.whole = p.whole.less(taken)
	t.used(c, span{c.cpus - again.most, c.cpus - again.least}, again)
	return doubt
}

// keeps reports whether a container has its CPUs already.
func (p *cpuPool) keeps(pod *candidate, c container) bool {
	_, has := p.has[pod.kubeletUID()][c.name]
	return has || p.allHave && pod.runs
}

// used: a container that ends leaves its CPUs to the next ones of the pod.
func (t *cpuTurn) used(c container, taken, again span) {
	if c.ends {
		t.again = t.again.plus(taken)
	} else {
		t.again = t.again.less(again)
	}
}

// fitsCores is what full-pcpus-only asks of each container, one that has its CPUs already among them: whole cores, and that as many CPUs
// are free on cores of which nothing is reserved.
func (p *cpuPool) fitsCores(cpus int) verdict {
	const reason = "SMTAlignmentError"
	switch {
	case !p.wholeCores:
		return admitted
	case p.threads == 0:
		return verdict{Reason: reason, why: fmt.Sprintf("whether %d CPUs are whole cores, and how many are free, is not known", cpus)}
	case cpus%p.threads != 0:
		return verdict{Reason: reason, certain: true, why: fmt.Sprintf("%d CPUs are not whole cores", cpus)}
	case cpus > p.whole.least:
		return verdict{Reason: reason, certain: cpus > p.whole.most, ordered: true,
			why: fmt.Sprintf("it wants %d CPUs of whole cores, and %d are free; its own do not count", cpus, p.whole.most)}
	}
	return admitted
}

func (p *cpuPool) short(t *cpuTurn, cpus int) verdict {
	free := p.free.plus(t.again)
	if cpus <= free.least {
		return admitted
	}
	return verdict{Reason: "UnexpectedAdmissionError", certain: cpus > free.most, ordered: true,
		why: fmt.Sprintf("it wants %d CPUs alone, and %d are free", cpus, free.most)}
}
