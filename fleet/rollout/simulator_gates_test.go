package rollout

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// hourly is open in the first minutes of each hour, so that a step of the clock by an hour is none.
var hourly = []v1alpha1.Window{windowOf("0 * * * *", hourlyFor, "")}

const hourlyFor = 20 * time.Minute

// restrain gives a rollout a topology, windows and consent, or takes them.
func (s *sim) restrain(r *v1alpha1.Rollout) {
	r.Topology, r.Windows, r.Disruption = nil, nil, v1alpha1.DisruptionHold
	if s.random.IntN(4) == 0 {
		r.Topology = &v1alpha1.Topology{Key: "zone", MaxDomains: int32(1 + s.random.IntN(2))}
	}
	if s.random.IntN(6) == 0 {
		r.Windows = hourly
	}
	if s.random.IntN(3) == 0 {
		r.Disruption = v1alpha1.DisruptionAllow
	}
	s.drains(r)
}

// budget makes a KubeletRolloutBudget, or removes it.
func (s *sim) budget() {
	name := []string{"x", "y"}[s.random.IntN(2)]
	if _, is := s.api.budgets[name]; is && s.random.IntN(2) == 0 {
		delete(s.api.budgets, name)
		return
	}
	var b v1alpha1.KubeletRolloutBudgetSpec
	switch s.random.IntN(6) {
	case 0:
		b.Frozen = true
	case 1:
		b.MaxUnavailable = amountOf([]string{"0", "2", "20%"}[s.random.IntN(3)])
	case 2:
		b.MaxUnproven = amountOf([]string{"1", "3"}[s.random.IntN(2)])
	case 3:
		b.Topology = &v1alpha1.Topology{Key: "zone", MaxDomains: 1}
	case 4:
		b.Windows = hourly
	case 5:
		b.Windows = []v1alpha1.Window{windowOf("nonsense", time.Hour, "")}
	}
	if s.random.IntN(2) == 0 {
		b.Selector.MatchLabels = map[string]string{"zone": "a"}
	}
	s.api.budgets[name] = b
}

// usesZone, by the letter: it changes, is on trial, or was rolled back.
func (v *view) usesZone(n *Node) bool {
	seen := v.plan.Seen[n.UID]
	if p := v.owners[n.UID]; p == nil && !n.Draining || p != nil && !n.Ready && seen.AwayFor >= p.rules.deadline {
		return false // released, or long dead
	}
	switch {
	case n.Draining, n.Mark.Pool != "" && n.Reason == nodev1.ReasonRolledBack:
		return true
	case !owned(n) || seen.Phase == Blocked:
		return false
	case n.Observed != n.Source:
		return true
	case n.Reason == nodev1.ReasonWouldDisrupt, blocked(n.Reason), verdict(n.Reason) && n.RetryHeard == n.Retry:
		return false
	}
	settled := n.Active == n.Source && (n.Good == n.Source && n.Reason == nodev1.ReasonActive || n.Source == nodev1.Local && n.Reason == nodev1.ReasonLocal)
	return !settled || seen.Running < 15*time.Second
}

// checkZones: nobody is moved into a zone too many. What is not completed goes only where it is under way, or where there is room for one more
// zone; of new nodes that were given what is completed no zone speaks.
func (s *sim) checkZones(v *view, whose string, t *v1alpha1.Topology, about func(*Node) bool, ours func(*Write) bool) {
	if t == nil {
		return
	}
	used, atRisk := map[string]bool{}, map[string]bool{}
	for i := range v.w.Nodes {
		n := &v.w.Nodes[i]
		if !about(n) || !v.usesZone(n) {
			continue
		}
		risky := n.Draining || v.unproven(n)
		if zone := n.Labels[t.Key]; risky || !v.joined(n) {
			used[zone], atRisk[zone] = true, atRisk[zone] || risky
		}
	}
	for i := range v.plan.Writes {
		w := &v.plan.Writes[i]
		n := v.node(w)
		if !ours(w) || n == nil || !about(n) {
			continue
		}
		zone := n.Labels[t.Key]
		if w.Why == WhyRollback { // which waits for no zone, and comes first
			used[zone] = true
		}
		if !advances(w) {
			continue
		}
		open := used[zone]
		if w.Why != WhyLate {
			open, atRisk[zone] = atRisk[zone], true
		}
		if used[zone] = true; !open && len(used) > int(t.MaxDomains) {
			s.breaks(15, "%s is moved in zone %q, and %s has %d zones in use, of at most %d", n.Name, zone, whose, len(used), t.MaxDomains)
		}
	}
}

// joined: it was given what it has in its first minutes, and nothing has passed there yet.
func (v *view) joined(n *Node) bool {
	age := v.w.Now.Sub(n.Created).Abs()
	return age < youth || n.Good == nodev1.Local && age < 3*youth && age-v.plan.Seen[n.UID].Assigned < youth
}

func (v *view) node(w *Write) *Node {
	for i := range v.w.Nodes {
		if v.w.Nodes[i].UID == w.UID {
			return &v.w.Nodes[i]
		}
	}
	return nil
}

// shut, by the letter: hourly is the only window here that anybody can read.
func (v *view) shut(windows []v1alpha1.Window) bool {
	return len(windows) > 0 && (windows[0].Schedule != hourly[0].Schedule || time.Duration(v.w.Now.Minute())*time.Minute >= hourlyFor)
}

func (s *sim) checkGates(v *view, p *Pool) {
	s.checkZones(v, "pool "+p.Name, p.Spec.Rollout.Topology, func(n *Node) bool { return v.owners[n.UID] == p }, func(w *Write) bool { return w.Pool == p.Name })
	for i := range v.plan.Writes {
		if w := &v.plan.Writes[i]; w.Pool == p.Name && advances(w) && v.shut(p.Spec.Rollout.Windows) {
			s.breaks(19, "%s is moved outside of the window", w.Node)
		}
	}
}

// checkBudgets: every budget that selects a node allows what is done to it.
func (s *sim) checkBudgets(v *view) {
	for name, b := range s.api.budgets {
		selector, err := metav1.LabelSelectorAsSelector(&b.Selector)
		if err != nil {
			panic(err)
		}
		about := func(n *Node) bool { return selector.Matches(labels.Set(n.Labels)) }
		s.checkZones(v, "budget "+name, b.Topology, about, func(*Write) bool { return true })
		s.checkBudget(v, name, &b, about)
	}
}

func (s *sim) checkBudget(v *view, name string, b *v1alpha1.KubeletRolloutBudgetSpec, about func(*Node) bool) {
	nodes, away, changing, unproven, more, back, risks := 0, 0, 0, 0, 0, 0, 0
	for i := range v.w.Nodes {
		n := &v.w.Nodes[i]
		if !about(n) {
			continue
		}
		if !v.young(n) {
			nodes++
		}
		if v.away(n) && !v.young(n) {
			away++
			if v.changes(n) && !v.dead(n) {
				changing++
			}
		}
		if v.unproven(n) {
			unproven++
		}
	}
	for i := range v.plan.Writes {
		w := &v.plan.Writes[i]
		n := v.node(w)
		if n == nil || !about(n) || !moves(w) {
			continue
		}
		if b.Frozen || advances(w) && v.shut(b.Windows) || b.Windows != nil && b.Windows[0].Schedule == "nonsense" {
			s.breaks(21, "%s is moved, which budget %s does not allow", n.Name, name)
		}
		if !v.away(n) {
			if more++; v.goesBack(w) {
				back++
			}
		}
		if w.Why == WhyAdvance && !v.unproven(n) {
			risks++
		}
	}
	if from := b.MaxUnavailable; from != nil && more > 0 {
		a, _ := readAmount(from, amount{})
		alone := back == 1 && more == 1 && changing == 0 && a.value > 0 // one may always go back
		if away+more > max(min(1, a.value), a.of(nodes)) && !alone {
			s.breaks(21, "%d are unavailable in budget %s, and %d more would be, of at most %s", away, name, more, from)
		}
	}
	if from := b.MaxUnproven; from != nil && risks > 0 && unproven+risks > from.IntValue() {
		s.breaks(21, "%d are unproven in budget %s, and %d more would be, of at most %s", unproven, name, risks, from)
	}
}

// unproven, by the letter: its cohort has not completed what it has, and it does not run it as its last known good.
func (v *view) unproven(n *Node) bool {
	if n.Mark.Pool == "" || n.Retry.Pool == "" || !owned(n) && !verdict(n.Reason) || n.Source == nodev1.Local {
		return false
	}
	for i := range v.w.Pools {
		if p := &v.w.Pools[i]; p.Name == n.Retry.Pool {
			if provenFor(v.status(p), n, &Write{Source: n.Source, Retry: n.Retry}) {
				return false
			}
		}
	}
	return n.Observed != n.Source || n.Active != n.Source || n.Good != n.Source || n.Reason != nodev1.ReasonActive
}
