package forecast

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// A verdict is what the kubelet's admission says of one pod. The zero value is: admitted.
type verdict struct {
	Reason  string // the kubelet's word, as in the pod's status; "": admitted
	certain bool
	why     string
	detail  string // which files
	ordered bool   // it depends on who comes before
	stays   bool   // in doubt, but its room is taken for others
	shared  bool   // in doubt, for a reason that holds for all such pods or for none
}

var admitted verdict

func (v verdict) refused() bool { return v.Reason != "" }

// A world is what a kubelet with one configuration admits pods to.
type world struct {
	config, now *Configuration
	room        room
	pressure    pressure
	managers    managers
	declared    []string // features, by the kubelet that runs
}

func newWorld(c *Configuration, f Facts, list []*candidate) (world, error) {
	w := world{config: c, now: f.Now, declared: f.Node.Status.DeclaredFeatures}
	var err error
	if w.room, err = roomOf(c, f.Node, f.Host); err != nil {
		return w, err
	}
	if w.pressure, err = pressureOf(c, f.Host, w.room); err != nil {
		return w, err
	}
	w.managers, err = newManagers(c, f, w.room, list)
	return w, err
}

// An admission is one kubelet's, of one list of pods in one order.
type admission struct {
	world
	inside   []*candidate // those that were admitted
	used     amounts
	verdicts map[*candidate]verdict
	either   map[*candidate]verdict // of those that make room, or equals of theirs do
	shared   bool                   // some are in doubt for a shared reason
	own      bool                   // … for one of their own

	turn
}

// A turn is one outcome of the things that cannot be known.
type turn struct {
	lastOfEquals bool // how preempt chooses
	sharedGo     bool // pods that may be refused for a shared reason are, and make room for others; else they stay
	othersGo     bool // … for a reason of their own
}

// lost reports whether a pod with this verdict goes.
func (t turn) lost(v verdict) bool {
	return v.refused() && (v.certain || v.shared && t.sharedGo || !v.shared && !v.stays && t.othersGo)
}

// admit goes through pods in an order.
func (w world) admit(order []*candidate, t turn) *admission {
	a := &admission{world: w, verdicts: make(map[*candidate]verdict, len(order)), either: map[*candidate]verdict{}, turn: t}
	a.managers = w.managers.clone()
	for _, c := range order {
		v := a.judge(c)
		a.verdicts[c] = v
		if !t.lost(v) {
			a.inside = append(a.inside, c)
			a.used = a.used.plus(c.holds, 1)
		}
	}
	return a
}

// judge asks the handlers in the kubelet's order. The first that refuses for certain counts, else the first that may.
// A pod that goes where it may be refused takes nothing, and evicts no pod.
func (a *admission) judge(c *candidate) verdict {
	doubt := admitted
	for _, handler := range []func(*candidate) verdict{a.underPressure, a.sysctls, a.take, a.fits, a.features, a.plugins} {
		v := handler(c)
		a.shared = a.shared || v.refused() && !v.certain && v.shared
		a.own = a.own || v.refused() && !v.certain && !v.shared && !v.stays
		switch {
		case a.lost(v) && !v.certain:
			return a.atLast(c, v)
		case a.lost(v):
			return v
		case !doubt.refused():
			doubt = v
		}
	}
	return doubt
}

// atLast is the word for a pod that may be refused, and is supposed to: one that another handler says for certain,
// whatever came of the first.
func (a *admission) atLast(c *candidate, doubt verdict) verdict {
	if c.critical && !c.otherOS && !c.misplaced && !c.untolerant && len(c.ports) == 0 {
		return doubt
	}
	for _, handler := range []func(*candidate) verdict{a.sysctls, a.fits, a.features} {
		if v := handler(c); v.certain {
			return v
		}
	}
	return doubt
}

func (a *admission) underPressure(c *candidate) verdict {
	met, why := a.pressure.refuses(c)
	if met == no {
		return admitted
	}
	return verdict{Reason: "Evicted", certain: met == yes, why: why, shared: true}
}

func (a *admission) sysctls(c *candidate) verdict {
	name, certain := a.config.forbidden(c.sysctls, a.now)
	if name == "" {
		return admitted
	}
	return verdict{Reason: "SysctlForbidden", certain: certain, why: "sysctl " + name + " is not in allowedUnsafeSysctls"}
}

// plugins is for what only a device plugin knows, and it reports to the kubelet again after each start. A newer
// kubelet does not ask it for a pod that runs, so for others such a pod stays.
func (a *admission) plugins(c *candidate) verdict {
	if !c.devices {
		return admitted
	}
	return verdict{Reason: "UnexpectedAdmissionError", stays: true, why: "it has devices, which their plugins have to report again"}
}

// fits is the scheduler's part of the admission. A critical pod takes the room of others, but cannot change where it is.
func (a *admission) fits(c *candidate) verdict {
	shortages := a.shortages(c)
	elsewhere := admitted
	switch {
	case c.otherOS:
		return verdict{Reason: "PodOSSelectorNodeLabelDoesNotMatch", certain: true, why: "its label " + corev1.LabelOSStable + " is not " + linux}
	case c.misplaced:
		elsewhere = verdict{Reason: "NodeAffinity", certain: true, why: "its node selector or affinity does not match the Node"}
	case c.untolerant:
		elsewhere = verdict{Reason: "TaintToleration", certain: !c.perhaps, why: "it does not tolerate a NoExecute taint of the Node"}
	}
	if taken := a.portTaken(c); taken != "" && !elsewhere.refused() {
		elsewhere = verdict{Reason: "NodePorts", certain: true, ordered: true, why: taken}
	}
	switch {
	case len(shortages) == 0:
		return elsewhere
	case !c.critical:
		s := shortages[0]
		return verdict{Reason: "OutOf" + string(s.name), certain: true, ordered: true, why: s.String()}
	case elsewhere.refused():
		return elsewhere
	case !a.preempt(c, shortages):
		return verdict{Reason: "UnexpectedAdmissionError", certain: true, ordered: true,
			why: "it is critical, and too few others could make room: " + shortages[0].String()}
	}
	return admitted
}

func (a *admission) shortages(c *candidate) []shortage {
	var list []shortage
	if used := int64(len(a.inside)); used+1 > a.room.pods {
		list = append(list, shortage{corev1.ResourcePods, 1, used, a.room.pods})
	}
	return append(list, c.asks.short(a.used, a.room.amounts)...)
}

func (s shortage) String() string {
	return fmt.Sprintf("%s: %s asked for, %s of %s in use", s.name, quantityText(s.name, s.asked), quantityText(s.name, s.used), quantityText(s.name, s.of))
}

// leave takes a pod out again.
func (a *admission) leave(c *candidate, v verdict) {
	a.verdicts[c] = v
	a.inside = slices.DeleteFunc(a.inside, func(other *candidate) bool { return other == c })
	a.used = a.used.plus(c.holds, -1)
}

// kubeletOrder sorts as the kubelet admits: static pods, which it has before it knows the API, then those of the API, the oldest first.
// Those of one second may come in any order; they are adjacent. It is the same list.
func kubeletOrder(list []*candidate) []*candidate {
	slices.SortStableFunc(list, func(a, b *candidate) int { return cmp.Compare(a.created(), b.created()) })
	return list
}

// created is a second. Static pods have no time that counts, and are before all others.
func (c *candidate) created() int64 {
	if c.static {
		return 0
	}
	return c.pod.CreationTimestamp.Unix()
}
