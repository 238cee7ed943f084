package forecast

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// What is measured now moves until the kubelet measures it. This near to a threshold, in shares of the capacity, the result is unknown.
const (
	memoryMargin = 0.03
	otherMargin  = 0.01
)

// A certainty reports whether something will be so.
type certainty int

const (
	no certainty = iota
	perhaps
	yes
)

// A pressure is which of the Node's conditions the kubelet will find at its start, before it admits the first pod of the API. A soft
// threshold counts like a hard one: the admission does not know of grace periods.
type pressure struct {
	memory, others       certainty // others: disk and PIDs
	memoryWhy, othersWhy string
	hardMemory           certainty         // a hard threshold of memory: the kubelet goes on to evict
	unmeasured           map[string]string // signals with a threshold about which the facts say nothing, and what is missing
}

// A reading is what a signal of the eviction manager shows.
type reading struct {
	missing string // what the facts lack; "" for nothing
	Amount
	margin float64
	memory bool
}

func pressureOf(c *Configuration, h Host, r room) (pressure, error) {
	p := pressure{unmeasured: map[string]string{}}
	for _, kind := range []struct {
		field      string
		thresholds map[string]string
		hard       bool
	}{{"evictionHard", c.EvictionHard, true}, {"evictionSoft", c.EvictionSoft, false}} {
		for _, signal := range slices.Sorted(maps.Keys(kind.thresholds)) {
			t, err := parseThreshold(kind.thresholds[signal])
			if err != nil {
				return p, fmt.Errorf("%s.%s: %w", kind.field, signal, err)
			}
			p.look(kind.field+"."+signal, kind.hard, t, readSignal(signal, h))
		}
	}
	// The hard threshold of memory is one of the memory of all pods, too, where their cgroup has a limit.
	if t, err := parseThreshold(c.EvictionHard["memory.available"]); err == nil && c.perQOS() && slices.Contains(c.EnforceNodeAllocatable, "pods") {
		p.look(podMemory, true, t, podMemoryReading(h, r))
	}
	return p, nil
}

const podMemory = "the memory of all pods"

func readSignal(signal string, h Host) reading {
	nodeFS, imageFS := "the file system of the kubelet's root folder", "the file system of the images"
	switch signal {
	case "memory.available":
		return readingOf("the machine's memory in use", h.Memory, memoryMargin, true)
	case "pid.available":
		return readingOf("the number of processes", h.PIDs, otherMargin, false)
	case "nodefs.available":
		return filesystemReading(nodeFS, h.NodeFS, false)
	case "nodefs.inodesFree":
		return filesystemReading(nodeFS, h.NodeFS, true)
	case "imagefs.available":
		return filesystemReading(imageFS, h.ImageFS, false)
	case "imagefs.inodesFree":
		return filesystemReading(imageFS, h.ImageFS, true)
	}
	return reading{} // containerfs: the kubelet takes the thresholds of nodefs or imagefs for it, on the same file system
}

func readingOf(what string, amount *Amount, margin float64, memory bool) reading {
	if amount == nil {
		return reading{missing: what}
	}
	return reading{Amount: *amount, margin: margin, memory: memory}
}

func filesystemReading(what string, fs *Filesystem, inodes bool) reading {
	switch {
	case fs == nil:
		return reading{missing: what}
	case inodes:
		return reading{Amount: fs.Inodes, margin: otherMargin}
	}
	return reading{Amount: fs.Bytes, margin: otherMargin}
}

// podMemoryReading is never certain: the kubelet lowers the limit while it measures for the first time.
func podMemoryReading(h Host, r room) reading {
	if h.PodsMemory == nil {
		return reading{missing: "the memory in use by pods"}
	}
	return reading{Amount: Amount{Available: r.podLimit - *h.PodsMemory, Capacity: r.podLimit}, margin: 1, memory: true}
}

// look compares one threshold. A file system that reports no inodes, as btrfs, has none to run out of.
func (p *pressure) look(signal string, hard bool, t threshold, r reading) {
	limit := t.of(r.Capacity)
	switch {
	case t == threshold{}:
		return
	case r.missing != "":
		p.unmeasured[signal] = r.missing
		return
	case r.Capacity <= 0:
		return
	}
	met := no
	if r.Available < limit {
		met = yes
	}
	distance := r.Available - limit
	if r.margin < 1 && float64(max(distance, -distance)) < r.margin*float64(r.Capacity) || r.margin == 1 && met == yes {
		met = perhaps
	}
	why := fmt.Sprintf("%s: less than %s is available", signal, amountText(signal, limit))
	if met == perhaps {
		why = fmt.Sprintf("%s: about %s would be available, and the threshold is %s", signal, amountText(signal, r.Available), amountText(signal, limit))
	}
	if r.memory {
		if hard {
			p.hardMemory = max(p.hardMemory, met)
		}
		p.memory, p.memoryWhy = stronger(p.memory, p.memoryWhy, met, why)
	} else {
		p.others, p.othersWhy = stronger(p.others, p.othersWhy, met, why)
	}
}

// evicts is the word for pods that are admitted, where a hard threshold of memory is certainly met and was not. The
// eviction manager ends one after the other until enough is free: at least one, and which is not known. With pods that
// end for another reason, enough may be free already.
func (p *pressure) evicts(before *pressure) verdict {
	if p.hardMemory < yes || before.hardMemory == yes {
		return admitted
	}
	return verdict{Reason: "Evicted", why: p.memoryWhy + "; the kubelet evicts pods one after the other as long as that is so"}
}

func stronger(a certainty, whyA string, b certainty, whyB string) (certainty, string) {
	if b > a {
		return b, whyB
	}
	return a, whyA
}

// refuses returns what the pressure means for one pod. Pressure of memory alone concerns pods that requested none.
func (p *pressure) refuses(c *candidate) (certainty, string) {
	if c.critical {
		return no, ""
	}
	met, why := p.others, p.othersWhy
	if p.memory > met {
		switch c.pod.Status.QOSClass {
		case corev1.PodQOSBestEffort:
			if !c.memoryPressure {
				met, why = p.memory, p.memoryWhy
			}
		case "":
			met, why = perhaps, p.memoryWhy // it is not told whether it asked for some
		}
	}
	return met, why
}

var memoryPressureTaint = corev1.Taint{Key: corev1.TaintNodeMemoryPressure, Effect: corev1.TaintEffectNoSchedule}
