package rollout

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
)

// decision is one call of [Decide] under way.
type decision struct {
	w         *World
	nodes     []*Node // by name
	owner     []int   // of each node, an index of pools
	held      []bool  // of each node: its label says so
	seen      []Seen  // of each node
	pools     []*pool // by name
	named     map[string]*pool
	selectors selectors
	turned    map[types.UID][]*TurnedAway // of each node, those of a moment ago
	defaults  rules
	plan      Plan
	// controlPlanesAway are unavailable, in whichever pool.
	controlPlanesAway int
	budgets           []*gate
	members           []*member // of each node, nil where no pool owns it
	undrains          []Write
}

// pool is a pool in one decision.
type pool struct {
	*Pool
	own    []int // its members
	marked []int // the nodes whose mark names it, members or not

	conflicts                   int
	conflictNode, conflictPools string

	target   target
	proofs   map[string]map[proof]bool        // by the hashes of revisions: the cohorts in which they were completed
	failures map[proof]v1alpha1.CohortFailure // the cohorts in which the target has failed since somebody last asked for it
	stable   *Revision                        // nil: none is, or it is not there
	invalid  string                           // why the spec cannot be met
	missing  string                           // a layer that is not there
	unknown  string                           // a layer that is not known yet, or a cache
	ignored  string                           // fields of a layer that no kubelet knows
	unmade   bool                             // the API server does not take the revision that is asked for, so that it cannot become the target
	refused  string                           // why the API server does not take what somebody needs to go ahead
	missed   string                           // the same of what somebody needs who joins, or is taken back
	denied   string                           // a Node whose PATCH the API server does not take, and why
	tampered string                           // what is not what its name says
	status   v1alpha1.KubeletPoolStatus

	members    []member
	cohorts    []cohort
	count      counts
	clock      Clock
	opened     time.Time // when the wave was opened that the members are classified for
	classified bool      // once: the time since the last decision has been counted
	answered   int       // how many of the wave's nodes had been assigned the target before this decision
	goal       int
	straight   bool   // nobody is in waves: there is one, without soak, of all who can have the target
	doubt      string // why new assignments wait
	wavers     string // why those wait, on the way back, whose cohort has not completed the target
	recoils    string // why nobody goes where it was completed before: nodes that had proven it do not take it any more
	wasSoaking bool
	passed     []int32
	begun      bool // the rollout of this target begins now
	done       bool // and was completed now
	moved      int  // how many were moved now, and were available before
	starved    bool // somebody could be moved but for maxUnavailable
	gate       *gate
	barred     said // why somebody could not be moved, who had room otherwise
	writes     []Write
}

// Decide says what to do. It is pure, and over all pools at once.
func Decide(w World) Plan {
	d := decision{w: &w, defaults: defaultRules()}
	d.plan = emptyPlan(len(w.Nodes))
	d.order()
	d.belong()
	d.remember()
	for _, p := range d.pools {
		d.render(p)
		d.openWave(p)
	}
	for _, p := range d.pools {
		d.classify(p)
		if d.judge(p); p.done {
			d.classify(p) // what was old is late now
		}
		d.countControlPlanes(p)
	}
	for i, n := range d.nodes {
		d.plan.Seen[n.UID] = d.seen[i]
	}
	d.makeGates()
	if d.w.Synced {
		d.reportBudgets()
	}
	d.endDrains()
	for _, p := range d.pools {
		d.choose(p)
	}
	d.evict()
	d.send()
	if !d.w.Synced {
		d.plan.Clocks = d.w.Clocks // what is not known is not reported
		return d.plan
	}
	for _, p := range d.pools {
		d.report(p)
	}
	d.plan.Look = d.look()
	return d.plan
}

func emptyPlan(nodes int) Plan {
	return Plan{Status: map[string]v1alpha1.KubeletPoolStatus{}, Budgets: map[string]v1alpha1.KubeletRolloutBudgetStatus{}, Seen: make(map[types.UID]Seen, nodes), Clocks: map[string]Clock{}}
}

// order makes the result independent of the order in which nodes and pools come.
func (d *decision) order() {
	d.nodes = make([]*Node, len(d.w.Nodes))
	for i := range d.w.Nodes {
		d.nodes[i] = &d.w.Nodes[i]
	}
	byName := func(a, b *Node) int {
		if order := strings.Compare(a.Name, b.Name); order != 0 {
			return order
		}
		return strings.Compare(string(a.UID), string(b.UID))
	}
	if !slices.IsSortedFunc(d.nodes, byName) {
		slices.SortFunc(d.nodes, byName)
	}
	d.owner, d.held, d.seen = make([]int, 0, len(d.nodes)), make([]bool, 0, len(d.nodes)), make([]Seen, 0, len(d.nodes))
	d.named = make(map[string]*pool, len(d.w.Pools))
	for i := range d.w.Pools {
		p := &pool{Pool: &d.w.Pools[i]}
		d.pools, d.named[p.Name] = append(d.pools, p), p
	}
	slices.SortFunc(d.pools, func(a, b *pool) int { return strings.Compare(a.Name, b.Name) })
	d.indexSelectors()
	d.turned = youngTurned(d.w.Turned)
}

// look is when to decide again although nothing has happened: when the next time that somebody waits for is up.
func (d *decision) look() time.Duration {
	next := time.Duration(0)
	at := func(due time.Duration) {
		if due > 0 && (next == 0 || due < next) {
			next = due
		}
	}
	for _, p := range d.pools {
		if p.clock.Wave > 0 && p.clock.counts(p) {
			at(persist - p.clock.Elapsed%persist)
			at(p.rules.deadline - p.clock.Idle)
		}
		if p.clock.Soaking {
			at(p.wave().soak - p.clock.Soaked)
		}
		for i := range p.members {
			m := &p.members[i]
			if m.seen.Runs {
				at(p.rules.settle - m.seen.Running)
			}
			if m.seen.Phase == Applying {
				at(p.rules.deadline - m.seen.Unanswered)
			}
			if m.labelsMoved {
				at(labelsStill - m.seen.AsksFor)
			}
			if m.seen.Upgraded {
				at(p.rules.unreadyAfter - m.seen.Upheld)
			}
			if m.seen.Ill {
				at(p.rules.unreadyAfter - m.seen.IllFor)
			}
			if m.node.Draining {
				at(drainLook)
			}
			if m.class == Joining {
				at(youth - d.w.Now.Sub(m.node.Created))
			}
		}
	}
	for _, t := range d.w.Turned {
		at(turnedFor - t.Age)
	}
	for _, g := range d.gates() {
		if !g.change.IsZero() {
			at(g.change.Sub(d.w.Now))
		}
	}
	return next
}
