package rollout

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// View is a pool as it is seen at one moment. There was no earlier turn, so it is not known how long a node has
// run its configuration: it counts as settled, and no answer is overdue.
type View struct {
	// Fault says why the spec cannot be carried out, Missing which layer does not exist.
	Fault, Missing string
	// Known means that the target's content is known; without it the members' classes say nothing about the target.
	// Completed means that all existing kinds of nodes have completed the target once, so that going there takes one
	// wave.
	Known, Completed bool
	// Target and Stable are revisions; nil means the nodes' own configuration, or none.
	Target, Stable *Revision
	Name           v1alpha1.RevisionName // of the target
	Members        []Member
	Waves          []ViewedWave
	MaxUnavailable int
	Conflicts      int // nodes that several pools of the same priority select
	// Closed means that no window is open now. Opens is when the next one opens; zero means never.
	Closed bool
	Opens  time.Time
	// Topology is the label whose domains limit an unproven target to MaxDomains at a time; "" means no limit.
	Topology   string
	MaxDomains int
}

// Member is a node of a pool in a [View].
type Member struct {
	Node  *Node
	Class Class
	// Minor, Layers and the node's architecture identify the kind of nodes that proves a revision for itself.
	Minor, Layers string
	// OnTarget means that it has the target, assigned in this attempt. Unavailable means that it takes a slot of
	// maxUnavailable.
	OnTarget, Unavailable bool
}

// ViewedWave is a wave, and how many members it may reach.
type ViewedWave struct {
	Name, Nodes string
	Goal        int
	Soak        time.Duration
}

// Look returns the view of a pool for the target in its status, which the controller works on.
func Look(w World, name string) View {
	return viewed(w, name, func(_ *World, _ *fleet, p *aim) {
		p.record = record{pool: p.Name, status: p.Status}
		if p.Status.Target != nil {
			p.stay()
		}
		if s := p.Status.Stable; s != nil && !s.Local {
			p.stable = p.kept(s.Hash)
		}
	})
}

// Try returns the view of a pool for the target that its spec asks for, which the controller would begin with.
func Try(w World, name string) View {
	return viewed(w, name, func(w *World, f *fleet, p *aim) {
		p.record = readRecord(p.Pool)
		p.findStable(w, f)
		p.render(w)
	})
}

func viewed(w World, name string, find func(*World, *fleet, *aim)) View {
	w.Synced, w.Seen, w.Pools = true, nil, slices.Clone(w.Pools)
	for i := range w.Pools {
		w.Pools[i].rules.settle = 0
	}
	defaults := defaultRules()
	defaults.settle = 0
	f := belong(&w, defaults)
	i, is := f.pool(name)
	if !is {
		return View{}
	}
	p := aim{Pool: f.pools[i], membership: f.owned[i]}
	find(&w, &f, &p)
	c := crewOf(&w, &f, &p, w.Elapsed)
	v := View{Fault: p.invalid, Missing: cmp.Or(p.missing, p.unknown), Known: p.target.there, Completed: p.target.completed && c.straight, Target: p.target.revision,
		Stable: p.stable, Name: p.target.name, MaxUnavailable: p.rules.slots(c.count.members), Conflicts: p.conflicts, Members: c.view(&p), Waves: c.viewWaves(&p.rules)}
	v.Topology, v.MaxDomains = p.rules.topology.key, p.rules.topology.max
	open, change := p.rules.windows.look(w.Now)
	if v.Closed = !open; v.Closed {
		v.Opens = change
	}
	return v
}

func (c *crew) view(p *aim) (members []Member) {
	for m := range c.each {
		k := &c.cohorts[m.cohort]
		members = append(members, Member{Node: m.node, Class: m.class, Minor: k.minor, Layers: k.layers, OnTarget: p.judges(m.node), Unavailable: m.unavailable})
	}
	return members
}

func (c *crew) viewWaves(r *rules) (waves []ViewedWave) {
	for i := range r.waves {
		wave := &r.waves[i]
		seen := ViewedWave{Name: wave.name, Nodes: wave.nodes.String(), Goal: c.goalOf(r, int32(i+1)), Soak: wave.soak}
		waves = append(waves, seen)
	}
	if c.straight {
		waves = waves[len(waves)-1:]
	}
	return waves
}

// Owners returns the names of the pools that a node belongs to: one, none, or at a tie all that claim it.
func Owners(pools []Pool, n *Node) []string {
	selectors := indexSelectors(poolsByName(pools))
	switch owner, tie := selectors.ownerOf(n); {
	case owner == unowned:
		return nil
	case tie:
		return selectors.claimants(n, selectors.pools[owner].Spec.Priority)
	default:
		return []string{selectors.pools[owner].Name}
	}
}

// SourceFor returns what a node with these labels is assigned from a revision.
func (r *Revision) SourceFor(set map[string]string) string {
	v, _ := newVariants(r).variantFor(set)
	return v.source
}
