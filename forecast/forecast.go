package forecast

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Forecast is what a change of the configuration would do to running pods at the restart. Pods that have ended, that do not run yet or
// that are about to end are no losses.
type Forecast struct {
	Running    int        // pods that run now, static ones not counted
	Losses     []Loss     // by the change
	Least      int        // how many of them are certain, though it may not be certain which
	Static     []Loss     // static pods, by the change: no drain removes them
	Anyway     []Loss     // by any restart, with the configuration that runs too, static pods among them
	LeastOfAll int        // how many pods are certain to go, by the change or by any restart, static ones not counted
	Missing    []Unknown  // facts without which nothing is known
	Doubts     []Unknown  // what is not certain although all facts are there
	Cgroups    []Overfull // whose limits would be below what their processes take, certainly
	Unmeasured []Loss     // running pods that a threshold may evict about which the facts say nothing
}

// A Loss is a running pod that is killed, or whose containers are restarted.
type Loss struct {
	Namespace, Name, UID string
	Reason               string // the kubelet's word, or one of ours
	Restarted            bool   // the pod stays, its containers restart
	DaemonSet            bool   // it is on a drained node, too
	Static               bool   // it does not come from the API
	Certain              bool
	Why                  string // for people; "" with nothing to add
	Detail               string // which files, for the message
}

// Unknown is what the facts do not tell.
type Unknown struct {
	What string // a field, or what else it is about
	Why  string
}

// Known reports whether the facts were there: the Node, its pods and both configurations. A forecast that is known may have doubts.
func (f Forecast) Known() bool { return len(f.Missing) == 0 }

// Sure reports whether a forecast is known and has no doubt about what the change does.
func (f Forecast) Sure() bool {
	uncertain := func(l Loss) bool { return !l.Certain }
	return f.Known() && len(f.Doubts) == 0 && !slices.ContainsFunc(f.Losses, uncertain) && !slices.ContainsFunc(f.Static, uncertain)
}

// Lost are the running pods that certainly go, or whose containers certainly start again, where that is a reason to
// wait until the node is drained: by the change, or by any restart, because the restart is our choice. Static pods are
// one, because a person has to know. Pods of a DaemonSet are not where they stay and only their containers start
// again, because no drain removes them. Where only the number of pods is certain, all pods that it may be are in it.
func (f Forecast) Lost() (lost []Loss) {
	all := slices.Concat(f.Losses, f.Static, f.Anyway)
	named := certain(f.Losses) + certain(f.Anyway)
	for _, l := range all {
		if l.counts() && (l.Certain || !l.Static && named < f.LeastOfAll) {
			lost = append(lost, l)
		}
	}
	return lost
}

// InDoubt are the running pods that may go, and may not: a loss of one that was certain before has not been seen to be none.
func (f Forecast) InDoubt() (list []Loss) {
	for _, l := range slices.Concat(f.Losses, f.Static, f.Anyway, f.Unmeasured) {
		if l.counts() && !l.Certain {
			list = append(list, l)
		}
	}
	return list
}

// Harm is how many pods of Lost go for certain, and how many cgroups lose processes.
func (f Forecast) Harm() int {
	harm := f.LeastOfAll + len(f.Cgroups)
	for _, l := range slices.Concat(f.Losses, f.Static, f.Anyway) {
		switch {
		case !l.Certain:
		case l.Static:
			harm++
		case !l.counts():
			harm--
		}
	}
	return max(harm, 0)
}

// counts reports whether a loss is a reason to wait.
func (l Loss) counts() bool { return l.Static || !l.Restarted || !l.DaemonSet }

func certain(losses []Loss) (count int) {
	for _, l := range losses {
		if l.Certain && !l.Static {
			count++
		}
	}
	return count
}

// Of makes the forecast.
func Of(f Facts) Forecast {
	forecast := Forecast{Missing: missing(f)}
	if !forecast.Known() {
		return forecast
	}
	pods := f.cast()
	now, err := newWorld(f.Now, f, pods.now)
	if err != nil {
		forecast.Missing = append(forecast.Missing, Unknown{whatRuns, err.Error()})
	}
	then, err := newWorld(f.Then, f, pods.then)
	if err != nil {
		forecast.Missing = append(forecast.Missing, Unknown{whatIsToRun, err.Error()})
	}
	if !forecast.Known() {
		return forecast
	}
	doubt := otherThanShown(f)
	for what, w := range map[string]world{whatRuns: now, whatIsToRun: then} {
		if w.room.lacks != "" {
			doubt = append(doubt, Unknown{what, "the kubelet would end at its start: " + w.room.lacks})
		}
	}
	if then.room.lacks != "" { // then never gets to a pod, and its fallback starts with what runs now
		f.Then, then, pods.then = f.Now, now, pods.now
	}
	forecast.compare(f, kubeletOrder(pods.now), now.replay(pods.now), then.replay(pods.then), then.pressure.evicts(&now.pressure))
	forecast.Cgroups = overfull(f)
	forecast.Unmeasured = unmeasuredLosses(now, then, pods.now)
	forecast.Doubts = sortUnknown(slices.Concat(doubt, pods.open, doubts(f, now, then, pods.now)))
	return forecast
}

// What is unknown may be a whole configuration.
const (
	whatRuns    = "the configuration that runs"
	whatIsToRun = "the configuration that is to run"
)

func missing(f Facts) (list []Unknown) {
	for _, c := range []struct {
		what string
		*Configuration
	}{{whatRuns, f.Now}, {whatIsToRun, f.Then}} {
		if c.Configuration == nil {
			list = append(list, Unknown{c.what, "the kubelet has not told it"})
		} else if c.MaxPods == nil || c.CPUManagerPolicy == "" {
			list = append(list, Unknown{c.what, "it is without the kubelet's defaults"})
		}
	}
	if f.Node == nil {
		list = append(list, Unknown{"the Node", "it is not known"})
	}
	if f.Pods == nil {
		list = append(list, Unknown{"the node's pods", "they are not known"})
	}
	return list
}

// compare separates what the change causes from what any restart causes. evicted is the reason for pods that are
// admitted and may be evicted then.
func (f *Forecast) compare(facts Facts, order []*candidate, now, then replay, evicted verdict) {
	byAdmission, evictable := 0, false
	more := min(then.least-now.least, then.leastGone-now.leastGone) // by the change
	for _, c := range order {
		if !c.runs {
			continue
		}
		if !c.static {
			f.Running++
		}
		before, after := now.verdicts[c], then.verdicts[c]
		if v := restart(facts, c); !after.refused() || v.certain && !after.certain {
			after = v
		}
		evictable = evictable || evicted.refused() && !c.critical
		changed := !before.refused() || !before.certain && (after.certain || after.ordered && (more > 0 || !before.ordered))
		switch {
		case !after.refused() && evicted.refused() && !c.critical:
			f.Losses = append(f.Losses, evicted.loss(c))
		case !after.refused():
		case !changed:
			f.Anyway = append(f.Anyway, after.loss(c))
		case c.static:
			f.Static = append(f.Static, after.loss(c))
		default:
			f.Losses = append(f.Losses, after.loss(c))
			byAdmission++
			if after.certain {
				f.Least++
			}
		}
	}
	// It may be certain how many go, though not which.
	f.Least = max(f.Least, min(more, byAdmission))
	f.LeastOfAll = max(certain(f.Losses)+certain(f.Anyway), min(then.least, then.leastGone))
	if !evictable || f.Harm() > 0 {
		return // what goes for certain may free enough memory
	}
	f.LeastOfAll = max(f.LeastOfAll, 1)
	if len(f.Anyway)+len(f.Static) == 0 {
		f.Least = max(f.Least, 1)
	}
}

func (v verdict) loss(c *candidate) Loss {
	owner := metav1.GetControllerOfNoCopy(c.pod)
	return Loss{Namespace: c.pod.Namespace, Name: c.pod.Name, UID: string(c.pod.UID), Reason: v.Reason, Certain: v.certain, Why: v.why, Detail: v.detail,
		DaemonSet: owner != nil && owner.Kind == "DaemonSet", Static: c.static,
		Restarted: startsAnew(v.Reason) && c.pod.Spec.RestartPolicy != corev1.RestartPolicyNever}
}

// sortUnknown gives them an order that does not change.
func sortUnknown(list []Unknown) []Unknown {
	slices.SortFunc(list, func(a, b Unknown) int { return cmp.Or(cmp.Compare(a.What, b.What), cmp.Compare(a.Why, b.Why)) })
	return list
}
