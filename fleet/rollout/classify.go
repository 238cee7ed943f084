package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// member is a node that a pool owns, against the pool's target.
type member struct {
	node  *Node
	seen  *Seen
	class Class
	held  bool // its label says so
	// want is its variant of the target, and keep that of the stable revision; empty where there is none.
	want, keep         string
	wantMask, keepMask uint32
	cohort             int
	// begun: it has the target, of whichever attempt. superseded: what it has is another revision that was given up, or the target of an
	// attempt before this, failed.
	begun, superseded bool
	// notBegun: what it has was assigned, and it has not begun with it.
	notBegun bool
	// isNew: nothing is assigned to it yet, and no pods are there. young: it is new, not Ready yet, or on its way with what it was given
	// then, and in no numerator and no denominator. unavailable: it takes a slot of maxUnavailable. isLater: it was made after the open wave was opened.
	isNew, young, unavailable, isLater bool
	// isDead: it was not Ready when it was assigned the target, and is not: it fills no wave, and another node is the canary.
	isDead bool
	// trusted: its cohort has completed the target.
	trusted bool
	// unproven: what it has is not completed, and it has not proven it.
	unproven bool
	// labelsMoved: its labels ask for another variant than a moment ago.
	labelsMoved bool
	// inWaves: whether it gets the target is for the waves to say. Those are not in them whose cohort has completed it, nor those who have had the same
	// of another revision.
	inWaves bool
	// denied: the API server refuses our PATCH of it.
	denied bool
	// lacks says why the API server does not take the variant that it should have.
	lacks string
}

// cohort is a kind of nodes: what one of them proves, the others may believe.
type cohort struct {
	minor, arch, layers string
	source              string // its variant of the target
	nodes, proven       int
	dead                int  // were not Ready when they were assigned the target, and are not: they may come back together
	atRisk, idle        int  // idle: of those at risk, the ones that wait for their pods and have no word of ours
	inWaves             bool // a member of it is in the waves
}

// counts are the members by class, and what the rules ask of them.
type counts struct {
	of, dead                        map[Class]int
	members, updatable, away        int
	touched                         int // have something else than the target, and can have that now or later
	blocked                         int // that count for the waves
	have                            int // the target, in waves or not
	inWaves, placed, proved         int // in waves: all, those who have the target, and those of them who have proven it
	trustedFailed, backward         int // not in waves: those who have failed, and those who are still to go back
	unavailable, denied, superseded int
	idle                            int
	ill                             int // on the way, and ill for longer than the pool allows
	stuck                           int // of those that move, the ones that hold up no wave
	moving                          int // neither dead nor new: they have the target, and have not answered for good
	late                            int // that can be moved
}

// crew is the members of a pool and what they come to. It is what [classify] finds out.
type crew struct {
	members  []member
	cohorts  []cohort
	count    counts
	straight bool // no member is in waves: there is one, without soak, of all that can have the target
}

// each yields the members, so that they can be changed.
func (c *crew) each(yield func(*member) bool) {
	for i := range c.members {
		if !yield(&c.members[i]) {
			return
		}
	}
}

// classify says of each member of each pool which class it is in, and counts them.
func classify(w *World, f *fleet, aims []aim) []crew {
	crews := make([]crew, len(aims))
	for i := range aims {
		crews[i] = crewOf(w, f, &aims[i], w.Elapsed)
	}
	return crews
}

// crewOf classifies the members of a pool for the wave that is open. Some time has elapsed since what their labels ask for was last looked at.
func crewOf(w *World, f *fleet, p *aim, elapsed time.Duration) crew {
	c := crew{members: make([]member, 0, len(p.own))}
	wanted, kept := p.bothVariants()
	for _, i := range p.own {
		m := member{node: f.nodes[i], seen: &f.seen[i], held: f.held[i], keep: nodev1.Local, want: nodev1.Local}
		layers := nodev1.Local
		if wanted != nil {
			v, mask := wanted.variantFor(labels.Set(m.node.Labels))
			m.want, m.wantMask, layers = v.source, mask, v.layers
		}
		switch s := p.status.Stable; {
		case kept != nil && kept == wanted:
			m.keep, m.keepMask = m.want, m.wantMask
		case kept != nil:
			v, mask := kept.variantFor(labels.Set(m.node.Labels))
			m.keep, m.keepMask = v.source, mask
		case s != nil && !s.Local:
			m.keep = ""
		}
		if p.target.there {
			m.seen.noteLabels(p.asks(&m), elapsed)
			if m.labelsMoved = m.node.hasMovedLabels(m.seen); m.labelsMoved && m.node.recorded(p.Name, p.target.retry.Hash) {
				m.want, layers = m.node.Source, variantOf(m.node.Source)
			}
			m.trusted = p.trusts(p.target.retry.Hash, m.node.cohortWith(m.want))
		}
		m.class = p.classOf(&m, w)
		m.cohort = c.cohortOf(&m, layers)
		c.members = append(c.members, m)
	}
	c.tally(p, w.Denied)
	return c
}

// bothVariants are those of the target and of the stable revision, which may be the same.
func (p *aim) bothVariants() (wanted, kept *variants) {
	if p.target.revision != nil {
		wanted = newVariants(p.target.revision)
	}
	switch {
	case p.stable == nil:
	case wanted != nil && p.stable.Hash == p.target.revision.Hash:
		kept = wanted
	default:
		kept = newVariants(p.stable)
	}
	return wanted, kept
}

// asks is what the labels of a member ask for.
func (p *aim) asks(m *member) Asks {
	now := Asks{pool: p.Name, target: p.target.retry.Hash, want: m.want, keep: m.keep}
	if p.stable != nil {
		now.stable = p.stable.Hash
	}
	return now
}

func (c *crew) cohortOf(m *member, layers string) int {
	for i := range c.cohorts {
		if k := &c.cohorts[i]; k.source == m.want && k.minor == m.node.Minor && k.arch == m.node.Arch {
			return i
		}
	}
	c.cohorts = append(c.cohorts, cohort{minor: m.node.Minor, arch: m.node.Arch, layers: layers, source: m.want})
	return len(c.cohorts) - 1
}

// classOf goes through the classes in their order. Failed is first, so that remediation that labels, cordons or deletes swallows no verdict.
func (p *aim) classOf(m *member, w *World) Class {
	n := m.node
	m.relate(p)
	underway := !p.target.stable && (p.judges(n) || m.begun && !m.trusted)
	m.isNew = p.isNew(n, w.Now)
	m.young = !underway && (m.isNew || isYoung(n, w.Now) && !n.Ready || p.hasJoined(m, w.Now))
	m.isLater = !m.begun && !p.opened.IsZero() && n.Created.After(p.opened)
	m.isDead = m.begun && !n.Ready && !m.seen.WasReady
	m.denied = w.Denied[n.UID] != "" && !m.begun
	m.unavailable = !m.young && isUnavailable(n, m.seen)
	switch {
	case m.seen.Phase == Failed && p.judges(n):
		return Failed
	case n.Leaving:
		return Leaving
	case !n.Supervised || !n.Layered:
		return Unsupervised
	case p.manual(n):
		return Manual
	case m.held:
		return Held
	case m.isNew:
		return Joining
	case n.Cordoned || n.Updating:
		return Skipped
	case m.young && !(m.begun && n.Ready):
		return Joining
	case m.begun && !m.superseded:
		return m.progress()
	case m.denied:
		return Blocked
	case (p.target.stable || m.isLater) && !m.superseded:
		return Late
	}
	return Old
}

// judges reports whether what the node has is the target, assigned in this attempt.
func (p *aim) judges(n *Node) bool {
	return p.target.there && n.Mark.Pool == p.Name && n.Retry == p.target.retry
}

// manual reports whether a person has spoken, or the pool adopts no nodes automatically.
func (p *Pool) manual(n *Node) bool {
	switch {
	case n.Mark.Pool == "":
		return n.Source != "" || p.Spec.Adoption == v1alpha1.AdoptNever
	case n.Mark.Pool != p.Name && p.Spec.Adoption == v1alpha1.AdoptNever:
		return true
	}
	return !n.Mark.Records(n.Source)
}

// relate compares what the node has with the target.
func (m *member) relate(p *aim) {
	n, t := m.node, &p.target
	if !t.there {
		return
	}
	records := n.Mark.Records(n.Source)
	m.notBegun = records && (m.seen.Phase == Applying || m.seen.Phase == Blocked) && n.Observed != n.Source || m.seen.Phase == Waiting
	runsOwn := n.Active == "" || n.Active == nodev1.Local // one that was made anew may run what it had before
	ownLocal := m.want == nodev1.Local && n.Source == "" && runsOwn && (n.Mark.Pool == "" || records)
	m.begun = records && n.Source == m.want || ownLocal
	if p.judges(n) && records && n.Source != m.want && (m.seen.Phase == Applying || m.seen.Phase == OnTrial || m.seen.Phase == Blocked) {
		m.begun = true // relabelled in the middle: it goes on until it has answered, and one that is Blocked may begin at any time
	}
	switch {
	case m.begun && !p.judges(n):
		m.superseded = m.seen.Phase == Failed || m.seen.Phase == Blocked && n.Retry.Hash == t.retry.Hash
	case !m.begun && records && n.Mark.Pool == p.Name && n.Retry.Pool == p.Name:
		m.superseded = n.Retry != t.retry && p.gaveUp(n)
	}
}

// progress is how far a member with the target is.
func (m *member) progress() Class {
	if m.seen.Phase == "" { // nothing is assigned, and nothing is what it should have
		switch reason := m.node.Reason; {
		case reason == "":
			return Proven
		case m.node.Observed != "", reason == nodev1.ReasonApplying:
			return Applying
		case blocked(reason):
			return Blocked
		}
		return Proven // it runs its own, whatever became of what it had
	}
	return m.seen.Phase
}

// isUnavailable reports whether a node that is not new takes a slot of maxUnavailable, whichever pool owns it.
func isUnavailable(n *Node, s *Seen) bool {
	return !n.Ready || n.Cordoned || n.Draining || changing(n, s)
}

// changing reports whether the kubelet of a node may be restarted at any time, was just now, or does not run what it should.
func changing(n *Node, s *Seen) bool {
	switch s.Phase {
	case Applying, Waiting, Blocked:
		return true
	}
	return n.Mark.Pool != "" && n.Reason == nodev1.ReasonRolledBack
}
