package core

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// A kubelet that enforces a reservation writes limits on a cgroup that is not its own, at its start, and no kubelet removes them: a
// fallback would be killed by the limit of what failed. So what was there before is recorded before such a kubelet is started, and written
// back before a kubelet is started that does not set the same limit: recorded, then written, then started. Written back is only what is
// still the kubelet's (rule 24), in the boot in which it was recorded: another value was set by another program, and a host that has booted
// has no limits of before.

// Limit names one limit of the host: a control file of a cgroup, below the mount of cgroups, or a property of a unit of systemd.
type Limit struct {
	File     string `json:"file,omitempty"`
	Unit     string `json:"unit,omitempty"`
	Property string `json:"property,omitempty"`
}

func (l Limit) String() string {
	if l.Unit != "" {
		return l.Property + " of unit " + l.Unit
	}
	return l.File
}

// KeptLimit is a limit that kubelets have set, and what it was before the first of them did.
type KeptLimit struct {
	Limit
	Before string   `json:"before"`
	Wrote  []string `json:"wrote"` // what it is where a kubelet has set it
	BootID string   `json:"bootID"`
}

// IsKubelets reports whether a value is one that a kubelet has set, and not the one of before.
func (k KeptLimit) IsKubelets(value string) bool {
	return value != k.Before && slices.Contains(k.Wrote, value)
}

// LimitSeen is a limit as it is just before a start.
type LimitSeen struct {
	Limit
	Value string
	Gone  bool     // with its cgroup
	Sets  []string // what the kubelet that will be started makes of it, as the kernel may show it; nil = it leaves it alone
}

// LimitPlan is what must be done about limits before a start.
type LimitPlan struct {
	Kept    []KeptLimit // the record from now on; a limit that is written back is in it until that is done
	Back    []KeptLimit // what is written back
	Sets    []Limit     // of those, what the kubelet that is started sets again
	Foreign []LimitSeen // what another program has changed, and is left as it is
}

// PlanLimits compares what is recorded in this boot with what is there. What was not seen stays as it is recorded.
func PlanLimits(recorded []KeptLimit, seen []LimitSeen, bootID string) (plan LimitPlan) {
	plan.Kept = slices.Clone(recorded)
	for _, l := range seen {
		i := slices.IndexFunc(plan.Kept, func(k KeptLimit) bool { return k.Limit == l.Limit })
		switch {
		case i >= 0:
			plan.compare(i, l)
		case len(l.Sets) > 0 && !l.Gone && len(plan.Kept) < storedLimits:
			plan.Kept = append(plan.Kept, KeptLimit{Limit: l.Limit, Before: l.Value, Wrote: l.Sets, BootID: bootID})
		}
	}
	return plan
}

// compare holds one limit against its record.
func (p *LimitPlan) compare(i int, l LimitSeen) {
	k := p.Kept[i]
	kubelets := k.IsKubelets(l.Value)
	goesBack := kubelets && !l.Gone && !slices.Contains(l.Sets, l.Value)
	if goesBack {
		p.Back = append(p.Back, k)
	}
	if !l.Gone && !kubelets && l.Value != k.Before {
		p.Foreign = append(p.Foreign, l)
		k.Before, k.Wrote = l.Value, nil // it is what is there before this start
	}
	switch {
	case len(l.Sets) > 0 && !l.Gone:
		p.Sets = append(p.Sets, l.Limit)
		k.Wrote = union(k.Wrote, l.Sets)
		p.Kept[i] = k
	case !goesBack:
		p.Kept = slices.Delete(p.Kept, i, i+1)
	}
}

// storedLimits bounds the record (rule 15): two cgroups with every size of huge pages have some thirty.
const storedLimits = 100

func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, value := range b {
		if !slices.Contains(all, value) {
			all = append(all, value)
		}
	}
	return all[max(0, len(all)-storedEntries):]
}

// Idle reports whether the record is right as it is, and nothing has to be written back.
func (p LimitPlan) Idle(recorded []KeptLimit) bool {
	return len(p.Back) == 0 && len(p.Foreign) == 0 && slices.EqualFunc(p.Kept, recorded, func(a, b KeptLimit) bool {
		return a.Limit == b.Limit && a.Before == b.Before && a.BootID == b.BootID && slices.Equal(a.Wrote, b.Wrote)
	})
}

func (LimitsWrittenBack) event() {}
func (WriteBack) action()        {}

// LimitCare is the care for limits before a start. Its zero value is that they were not looked at yet.
type LimitCare struct {
	Of   *Version    // what will be started; nil = local
	Back []KeptLimit // what has to be written back for it
	Sets []Limit     // of those, what it sets again
	Done bool        // they were cared for: the start does not look at them again
}

// learnLimits records what the start of want is going to change, and what has to be written back before.
func learnLimits(s *State, seen []LimitSeen, want *Version) {
	plan := PlanLimits(s.Limits, seen, s.BootID)
	s.Limits = plan.Kept
	s.LimitCare = LimitCare{Of: want, Back: plan.Back, Sets: plan.Sets, Done: len(plan.Back) == 0}
	for _, l := range plan.Foreign {
		s.event(corev1.EventTypeWarning, "KubeletLimitsChanged",
			fmt.Sprintf("%s is %s, which no kubelet has set: it is left as it is", l.Limit, bounded64(l.Value)))
	}
}

// learnWrittenBack ends the care for limits before a start. A limit that cannot be written back does not keep the kubelet from being
// started, and is tried again before the next start.
func learnWrittenBack(s *State, e LimitsWrittenBack) {
	if _, is := s.Doing.(WriteBack); !is {
		return
	}
	back, sets := s.LimitCare.Back, s.LimitCare.Sets
	s.Doing, s.LimitCare.Back, s.LimitCare.Done = nil, nil, true
	if e.Err != nil {
		s.Exit, s.ExitCode = "a limit that a kubelet has set cannot be written back: "+e.Err.Error(), noExitCode
		return
	}
	var named []string
	for _, k := range back {
		named = append(named, k.Limit.String()+" "+bounded64(k.Before))
	}
	s.Limits = without(s.Limits, func(k KeptLimit) bool {
		return slices.ContainsFunc(back, func(b KeptLimit) bool { return b.Limit == k.Limit }) && !slices.Contains(sets, k.Limit)
	})
	s.event(corev1.EventTypeNormal, "KubeletLimitsWrittenBack", "limits that a kubelet has set are as before: "+strings.Join(named, ", "))
}

// bounded64 shortens the content of a file of the host.
func bounded64(value string) string { return fmt.Sprintf("%.64s", value) }

// isCrowded reports whether no process can be started in addition to what runs, and what runs has set limits of the host.
func isCrowded(s *State) bool { return s.NoRoom && s.setLimits(s.Child.Version) }

// countNoRoom counts a start that found no room for a process like an exit: it may be the limit that the configuration has set on our own
// cgroup, and its fallback is started without that.
func countNoRoom(s *State, start Start, e Started) {
	gone, exit := Child{Version: start.Version, Kubelet: start.Kubelet, Started: s.Now}, ChildExited{Code: noExitCode, Words: e.Err.Error()}
	s.Exit, s.ExitCode = exit.Words, noExitCode
	s.NextStart, s.NextOf = s.Now+e.Delay, start.Version
	if s.Trial.Open {
		failStart(s, gone, 0, exit)
		return
	}
	countExit(s, gone, 0, exit)
}
