package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// gate is what a pool or a budget allows beyond waves and the pool's own maxUnavailable. What passes through it is counted, so that the next
// one finds less room.
type gate struct {
	budget *Budget // nil: the gate is a pool's own
	open   bool
	change time.Time // when it may open or close; zero is never
	// held are the domains in which nodes change, are on trial or rolled back, and how many of them; atRisk those of a revision that is not
	// completed. A new node holds none with what was completed.
	topology     topology
	held, atRisk map[string]int
	nodes        int // that a budget takes
	// unavailable and unproven are how many there are, of at most so many; a limit of -1 is none.
	unavailable, maxUnavailable int
	changing                    int // of those that are unavailable, the ones that change
	unproven, maxUnproven       int
}

// makeGates looks at all nodes once for each gate that needs it.
func (d *decision) makeGates() {
	members := make([]*member, len(d.nodes))
	d.members = members
	for _, p := range d.pools {
		for k, i := range p.own {
			members[i] = &p.members[k]
			p.members[k].unproven = d.unproven(i)
		}
		p.gate = newGate(p.rules.topology)
		p.gate.open, p.gate.change = p.rules.windows.look(d.w.Now)
		if p.rules.topology.key != "" {
			for _, i := range p.own { // who was taken out of the pool holds nothing there
				d.holdDomain(p.gate, i)
			}
		}
	}
	for i := range d.w.Budgets {
		d.budgets = append(d.budgets, d.gateOf(&d.w.Budgets[i], members))
	}
	slices.SortFunc(d.budgets, func(a, b *gate) int { return strings.Compare(a.budget.Name, b.budget.Name) })
}

func newGate(t topology) *gate {
	return &gate{topology: t, held: map[string]int{}, atRisk: map[string]int{}, maxUnavailable: -1, maxUnproven: -1}
}

func (d *decision) gateOf(b *Budget, members []*member) *gate {
	g := newGate(b.topology)
	g.budget = b
	g.open, g.change = b.windows.look(d.w.Now)
	count := 0
	for i, n := range d.nodes {
		if !b.selector.Matches(labels.Set(n.Labels)) {
			continue
		}
		d.holdDomain(g, i)
		if d.unproven(i) {
			g.unproven++
		}
		unavailable, young := !n.Ready || n.Cordoned || n.Draining || changing(n, &d.seen[i]), !n.Ready && isYoung(n, d.w.Now)
		if m := members[i]; m != nil {
			unavailable, young = m.unavailable, m.young
		}
		if young {
			continue
		}
		if count++; unavailable {
			g.unavailable++
		}
		if m := members[i]; unavailable && changing(n, &d.seen[i]) && (m == nil || !m.isDead) {
			g.changing++
		}
	}
	g.nodes = count
	g.maxUnavailable, g.maxUnproven = limitOf(b.maxUnavailable, count), limitOf(b.maxUnproven, count)
	return g
}

// limitOf is the amount of n, at least 1 unless it is 0; -1 where there is no limit.
func limitOf(a *amount, n int) int {
	switch {
	case a == nil:
		return -1
	case a.value == 0:
		return 0
	}
	return max(1, a.of(n))
}

// unproven: the node has a revision that is not completed, and that it has not proven.
func (d *decision) unproven(i int) bool {
	if d.nodes[i].hasProven() { // it may have been started again a moment ago
		return false
	}
	switch d.seen[i].Phase {
	case Applying, Waiting, OnTrial, Failed, Blocked:
		p := d.named[d.nodes[i].Retry.Pool]
		return p == nil || !p.trusts(d.nodes[i].Retry.Hash, d.nodes[i].assignedIn())
	}
	return false
}

// holdDomain notes the domain of a node that changes, is about to, is on trial or was rolled back.
func (d *decision) holdDomain(g *gate, i int) {
	n, s := d.nodes[i], &d.seen[i]
	if g.topology.key == "" || s.Phase != Applying && s.Phase != OnTrial && !n.Draining && (n.Mark.Pool == "" || n.Reason != nodev1.ReasonRolledBack) {
		return
	}
	switch owner := d.owner[i]; {
	case n.Draining:
	case owner == nobody: // released
		return
	case !n.Ready && s.AwayFor >= d.pools[owner].rules.deadline: // long dead
		return
	}
	domain := n.Labels[g.topology.key]
	switch {
	case n.Draining || d.unproven(i):
		g.held[domain]++
		g.atRisk[domain]++
	case !isYoung(n, d.w.Now) && !joined(n, s, d.w.Now):
		g.held[domain]++
	}
}

// admits: the domain is in use for the same, or there is room for one more.
func (g *gate) admits(n *Node, why Why) bool {
	used, domain := g.atRisk, n.Labels[g.topology.key]
	if why == WhyLate {
		used = g.held
	}
	if g.topology.key == "" || used[domain] > 0 {
		return true
	}
	domains := len(g.held)
	if g.held[domain] == 0 {
		domains++
	}
	return domains <= g.topology.max
}

// gates are all of them.
func (d *decision) gates() []*gate {
	all := slices.Clone(d.budgets)
	for _, p := range d.pools {
		if p.gate != nil {
			all = append(all, p.gate)
		}
	}
	return all
}

// gatesOf are those that a member has to pass.
func (d *decision) gatesOf(p *pool, n *Node) []*gate {
	all := make([]*gate, 1, 1+len(d.budgets))
	all[0] = p.gate
	for _, g := range d.budgets {
		if g.takes(n) {
			all = append(all, g)
		}
	}
	return all
}

// takes: the budget is about the node.
func (g *gate) takes(n *Node) bool { return g.budget.selector.Matches(labels.Set(n.Labels)) }

// passes lets a member through all gates, or none, and says why not.
func (d *decision) passes(p *pool, m *member, why Why) bool {
	gates := d.gatesOf(p, m.node)
	for _, g := range gates {
		if barred := g.bars(p, m, why); barred.reason != "" {
			if p.barred.reason == "" {
				p.barred = barred
			}
			return false
		}
	}
	for _, g := range gates {
		g.pass(m, why)
	}
	return true
}

// forward: a move that waits for windows and zones. The way back does not.
func forward(why Why) bool {
	return why == WhyMove || why == WhyLate || why == WhyConsent || why == WhyDrain
}

func (g *gate) bars(p *pool, m *member, why Why) said {
	switch {
	case g.budget != nil && g.budget.fault != "":
		return g.says(ReasonBudgetExhausted, "cannot be read, and so it allows nothing: "+g.budget.fault)
	case g.budget != nil && g.budget.frozen:
		return g.says(ReasonBudgetExhausted, "is frozen")
	case forward(why) && !g.open:
		return g.says(ReasonWindowClosed, g.opening())
	case forward(why) && !g.admits(m.node, why):
		return g.says(ReasonWaitsForZone, fmt.Sprintf("has nodes under way in %d of at most %d domains of %s", len(g.held), g.topology.max, g.topology.key))
	case g.maxUnavailable == 0, g.maxUnavailable > 0 && !m.unavailable && g.unavailable >= g.maxUnavailable && !(p.isBack(why) && g.changing == 0):
		return g.says(ReasonBudgetExhausted, fmt.Sprintf("has %d of at most %d nodes unavailable", g.unavailable, g.maxUnavailable))
	case (why == WhyDrain || why == WhyConsent) && g.maxUnavailable > 0 && g.unavailable > g.maxUnavailable:
		return g.says(ReasonBudgetExhausted, fmt.Sprintf("has %d of at most %d nodes unavailable", g.unavailable, g.maxUnavailable))
	case m.tries(why) && g.maxUnproven >= 0 && g.unproven >= g.maxUnproven:
		return g.says(ReasonBudgetExhausted, fmt.Sprintf("has %d of at most %d nodes with a revision that is not proven", g.unproven, g.maxUnproven))
	}
	return said{}
}

// tries: with this move one more node has what its cohort has not proven.
func (m *member) tries(why Why) bool {
	return (why == WhyMove || why == WhyLate || why == WhyBack) && !m.trusted && !m.unproven
}

func (g *gate) says(reason, words string) said {
	if g.budget == nil {
		return said{false, reason, "it " + words}
	}
	return said{false, reason, "KubeletRolloutBudget " + g.budget.Name + " " + words}
}

func (g *gate) opening() string {
	if g.change.IsZero() {
		return "has no window that opens"
	}
	return "has no window open before " + g.change.UTC().Format(time.RFC3339)
}

func (g *gate) pass(m *member, why Why) {
	if !m.unavailable {
		g.unavailable++
		g.changing++
	}
	if m.tries(why) {
		g.unproven++
	}
	if g.topology.key != "" {
		g.held[m.node.Labels[g.topology.key]]++
	}
}
