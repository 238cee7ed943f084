package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// gate is a limit of a pool or a budget, apart from waves and the pool's own maxUnavailable. What passes it is
// counted, so that less room is left for the next.
type gate struct {
	budget *Budget // nil for a pool's own gate
	open   bool
	change time.Time // when it may open or close; zero means never
	// held has the number of nodes that change, are on trial or were rolled back, for each domain; atRisk only those
	// with a revision that is not completed. A new node with a completed revision does not count.
	topology     topology
	held, atRisk map[string]int
	usage
	before usage // before anything passed
	// limits of unavailable and unproven nodes; -1 means no limit
	maxUnavailable, maxUnproven int
	changing                    int // unavailable nodes that change
}

// usage is how much of a budget is used, for a number of nodes.
type usage struct{ nodes, unavailable, unproven int }

// sharedLimits has the limits that all pools share.
type sharedLimits struct {
	budgets           []*gate // by name
	controlPlanesAway int     // that are unavailable, in any pool
}

// census has all nodes as gates count them.
type census struct {
	*fleet
	now      time.Time
	members  []*member // of each node; nil if no pool owns it
	unproven []bool    // of each node: it has an unproven revision that is not completed
}

// newCensus counts all nodes once.
func newCensus(f *fleet, pools []turn, now time.Time) census {
	c := census{fleet: f, now: now, members: make([]*member, len(f.nodes)), unproven: make([]bool, len(f.nodes))}
	for i, n := range f.nodes {
		c.unproven[i] = isUnproven(n, &f.seen[i], func(hash string, at proof) bool {
			of, is := f.pool(n.Retry.Pool)
			return is && pools[of].trusts(hash, at)
		})
	}
	for at := range pools {
		p := &pools[at]
		for k, i := range p.own {
			c.members[i], p.members[k].unproven = &p.members[k], c.unproven[i]
		}
	}
	return c
}

// isUnproven reports whether a node has a revision that it has not proven, and that its cohort has not completed.
func isUnproven(n *Node, s *Seen, trusts func(hash string, at proof) bool) bool {
	if n.hasProven() { // it may have been restarted a moment ago
		return false
	}
	switch s.Phase {
	case Applying, Waiting, OnTrial, Failed, Blocked:
		return !trusts(n.Retry.Hash, n.assignedIn())
	}
	return false
}

// limits returns the gates of all pools and budgets.
func (c *census) limits(budgets []Budget, pools []turn) sharedLimits {
	l := sharedLimits{}
	for at := range pools {
		p := &pools[at]
		p.gate = newGate(p.rules.topology)
		p.gate.open, p.gate.change = p.rules.windows.look(c.now)
		for k, i := range p.own {
			c.holdDomain(p.gate, i) // a node that was removed from the pool holds nothing there
			if m := &p.members[k]; m.unavailable && m.node.ControlPlane {
				l.controlPlanesAway++
			}
		}
	}
	for i := range budgets {
		l.budgets = append(l.budgets, c.gateOf(&budgets[i]))
	}
	slices.SortFunc(l.budgets, func(a, b *gate) int { return strings.Compare(a.budget.Name, b.budget.Name) })
	return l
}

func newGate(t topology) *gate {
	return &gate{topology: t, held: map[string]int{}, atRisk: map[string]int{}, maxUnavailable: -1, maxUnproven: -1}
}

func (c *census) gateOf(b *Budget) *gate {
	g := newGate(b.topology)
	g.budget = b
	g.open, g.change = b.windows.look(c.now)
	count := 0
	for i, n := range c.nodes {
		if !b.selector.Matches(labels.Set(n.Labels)) {
			continue
		}
		c.holdDomain(g, i)
		if c.unproven[i] {
			g.unproven++
		}
		unavailable, young := isUnavailable(n, &c.seen[i]), !n.Ready && isYoung(n, c.now)
		if m := c.members[i]; m != nil {
			unavailable, young = m.unavailable, m.young
		}
		if young {
			continue
		}
		if count++; unavailable {
			g.unavailable++
		}
		if m := c.members[i]; unavailable && changing(n, &c.seen[i]) && (m == nil || !m.isDead) {
			g.changing++
		}
	}
	g.nodes = count
	g.maxUnavailable, g.maxUnproven = limitOf(b.maxUnavailable, count), limitOf(b.maxUnproven, count)
	g.before = g.usage
	return g
}

// limitOf returns the amount of n, at least 1 unless it is 0; -1 if there is no limit.
func limitOf(a *amount, n int) int {
	switch {
	case a == nil:
		return -1
	case a.value == 0:
		return 0
	}
	return max(1, a.of(n))
}

// holdDomain counts the domain of a node that changes, is about to change, is on trial or was rolled back.
func (c *census) holdDomain(g *gate, i int) {
	n, s := c.nodes[i], &c.seen[i]
	if g.topology.key == "" || s.Phase != Applying && s.Phase != OnTrial && !n.Draining && (n.Mark.Pool == "" || n.Reason != nodev1.ReasonRolledBack) {
		return
	}
	switch owner := c.owner[i]; {
	case n.Draining:
	case owner == unowned: // released
		return
	case !n.Ready && s.AwayFor >= c.pools[owner].rules.deadline: // not Ready for long
		return
	}
	domain := n.Labels[g.topology.key]
	switch {
	case n.Draining || c.unproven[i]:
		g.held[domain]++
		g.atRisk[domain]++
	case !isYoung(n, c.now) && !joined(n, s, c.now):
		g.held[domain]++
	}
}

// admits reports whether the domain is already in use for the same reason, or there is room for one more.
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
func (c *choice) gates() []*gate {
	all := slices.Clone(c.budgets)
	for i := range c.pools {
		all = append(all, c.pools[i].gate)
	}
	return all
}

// gatesOf returns the gates that a member has to pass.
func (l *sharedLimits) gatesOf(own *gate, n *Node) []*gate {
	all := make([]*gate, 1, 1+len(l.budgets))
	all[0] = own
	for _, g := range l.budgets {
		if g.takes(n) {
			all = append(all, g)
		}
	}
	return all
}

// takes reports whether the budget applies to the node.
func (g *gate) takes(n *Node) bool { return g.budget.selector.Matches(labels.Set(n.Labels)) }

// passes counts a member in all gates if all admit it. Otherwise it records the reason, and returns false.
func (p *turn) passes(l *sharedLimits, m *member, why Why) bool {
	gates := l.gatesOf(p.gate, m.node)
	for _, g := range gates {
		if blocked := g.blocks(m, why, p.isRollback(why)); blocked.reason != "" {
			if p.blocked.reason == "" {
				p.blocked = blocked
			}
			return false
		}
	}
	for _, g := range gates {
		g.pass(m, why)
	}
	return true
}

func (g *gate) blocks(m *member, why Why, back bool) said {
	switch {
	case g.budget != nil && g.budget.fault != "":
		return g.says(ReasonBudgetExhausted, "cannot be read, and so it allows nothing: "+g.budget.fault)
	case g.budget != nil && g.budget.frozen:
		return g.says(ReasonBudgetExhausted, "is frozen")
	case why.Forward() && !g.open:
		return g.says(ReasonWindowClosed, g.opening())
	case why.Forward() && !g.admits(m.node, why):
		return g.says(ReasonWaitsForZone, fmt.Sprintf("has nodes under way in %d of at most %d domains of %s", len(g.held), g.topology.max, g.topology.key))
	case g.maxUnavailable == 0, g.maxUnavailable > 0 && !m.unavailable && g.unavailable >= g.maxUnavailable && !(back && g.changing == 0):
		return g.says(ReasonBudgetExhausted, fmt.Sprintf("has %d of at most %d nodes unavailable", g.unavailable, g.maxUnavailable))
	case (why == WhyDrain || why == WhyConsent) && g.maxUnavailable > 0 && g.unavailable > g.maxUnavailable:
		return g.says(ReasonBudgetExhausted, fmt.Sprintf("has %d of at most %d nodes unavailable", g.unavailable, g.maxUnavailable))
	case m.tries(why) && g.maxUnproven >= 0 && g.unproven >= g.maxUnproven:
		return g.says(ReasonBudgetExhausted, fmt.Sprintf("has %d of at most %d nodes with a revision that is not proven", g.unproven, g.maxUnproven))
	}
	return said{}
}

// tries reports whether this move gives one more node what its cohort has not proven.
func (m *member) tries(why Why) bool {
	return why.moves() && !m.trusted && !m.unproven
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
