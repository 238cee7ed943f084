package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

// member is a node that a pool owns, compared with the pool's target.
type member struct {
	node  *Node
	seen  *Seen
	class Class
	held  bool // its label holds it out of pools
	// want is its variant of the target, and keep that of the stable revision; "" if there is none.
	want, keep         string
	wantMask, keepMask uint32
	cohort             int
	// begun means that it has the target, in any attempt. superseded means that it has another revision that was given
	// up, or the target of an earlier attempt that failed.
	begun, superseded bool
	// notBegun means that it has an assignment which it has not begun with.
	notBegun bool
	// isNew means that nothing is assigned to it yet, and that it has no pods. young means that it is new, not Ready
	// yet, or still on its way with its first assignment; it counts in no numerator and no denominator. unavailable
	// means that it takes a slot of maxUnavailable. isLater means that it was created after the open wave was opened.
	isNew, young, unavailable, isLater bool
	// isDead means that it was not Ready when the target was assigned, and is not Ready: it fills no wave, and another
	// node is the canary.
	isDead bool
	// trusted means that its cohort has completed the target.
	trusted bool
	// unproven means that it has not proven what it has, which was not completed either.
	unproven bool
	// labelsMoved means that its labels ask for another variant than a moment ago.
	labelsMoved bool
	// inWaves means that the waves decide when it gets the target. A member is not in them if its cohort has completed
	// the target, or if it has had the same variant of another revision.
	inWaves bool
	// denied means that the API server refuses our PATCH of it.
	denied bool
	// lacks says why the API server refuses the variant that it should have.
	lacks string
}

// cohort is a kind of nodes: what one of them proves counts for the others.
type cohort struct {
	minor, arch, layers string
	source              string // its variant of the target
	nodes, proven       int
	dead                int  // were not Ready when the target was assigned, and are not: they may come back together
	atRisk, idle        int  // idle: of those at risk, the ones that wait for their pods without our approval
	inWaves             bool // a member of it is in the waves
}

// counts has the number of members of each class, and the numbers that the rules need.
type counts struct {
	of, dead                        map[Class]int
	members, updatable, away        int
	touched                         int // have something else than the target, and can get the target now or later
	blocked                         int // that count for the waves
	have                            int // have the target, in waves or not
	inWaves, placed, proved         int // in waves: all members, those with the target, and those that have proven it
	trustedFailed, backward         int // not in waves: members that have failed, and members that still go back
	unavailable, denied, superseded int
	idle                            int
	ill                             int // in progress, and ill for longer than the pool allows
	stuck                           int // in progress, without delaying a wave
	moving                          int // neither dead nor new: have the target, and have not given a final answer
	late                            int // that can be moved
}

// crew has the members of a pool, and their counts. classify returns it.
type crew struct {
	members  []member
	cohorts  []cohort
	count    counts
	straight bool // no member is in waves, so there is one wave without soak, of all members that can get the target
}

// each yields pointers to the members, so that callers can change them.
func (c *crew) each(yield func(*member) bool) {
	for i := range c.members {
		if !yield(&c.members[i]) {
			return
		}
	}
}

// classify returns the class of each member of each pool, and counts them.
func classify(w *World, f *fleet, aims []aim) []crew {
	crews := make([]crew, len(aims))
	for i := range aims {
		crews[i] = crewOf(w, f, &aims[i], w.Elapsed)
	}
	return crews
}

// crewOf classifies the members of a pool for the open wave. elapsed is the time since their labels were last
// read.
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

// bothVariants returns the variants of the target and of the stable revision, which may be the same.
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

// asks returns what the labels of a member ask for.
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

// classOf tries the classes in their order. Failed is first, so that no verdict is lost when remediation labels,
// cordons or deletes the node.
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

// judges reports whether the node has the target, assigned in this attempt.
func (p *aim) judges(n *Node) bool {
	return p.target.there && n.Mark.Pool == p.Name && n.Retry == p.target.retry
}

// manual reports whether a user has made the node's assignment, or whether the pool does not adopt nodes
// automatically.
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
	runsOwn := n.Active == "" || n.Active == nodev1.Local // one that was created again may run what it had before
	ownLocal := m.want == nodev1.Local && n.Source == "" && runsOwn && (n.Mark.Pool == "" || records)
	m.begun = records && n.Source == m.want || ownLocal
	if p.judges(n) && records && n.Source != m.want && (m.seen.Phase == Applying || m.seen.Phase == OnTrial || m.seen.Phase == Blocked) {
		m.begun = true // relabelled during the change: it goes on until it has answered, and a Blocked one may begin at any time
	}
	switch {
	case m.begun && !p.judges(n):
		m.superseded = m.seen.Phase == Failed || m.seen.Phase == Blocked && n.Retry.Hash == t.retry.Hash
	case !m.begun && records && n.Mark.Pool == p.Name && n.Retry.Pool == p.Name:
		m.superseded = n.Retry != t.retry && p.gaveUp(n)
	}
}

// progress returns how far a member with the target is.
func (m *member) progress() Class {
	if m.seen.Phase == "" { // nothing is assigned, and nothing should be
		switch reason := m.node.Reason; {
		case reason == "":
			return Proven
		case m.node.Observed != "", reason == nodev1.ReasonApplying:
			return Applying
		case blocked(reason):
			return Blocked
		}
		return Proven // it runs its own configuration, whatever it had before
	}
	return m.seen.Phase
}

// isUnavailable reports whether a node that is not new takes a slot of maxUnavailable, in any pool.
func isUnavailable(n *Node, s *Seen) bool {
	return !n.Ready || n.Cordoned || n.Draining || changing(n, s)
}

// changing reports whether the kubelet of a node may be restarted at any time, was just restarted, or does not run
// what it should.
func changing(n *Node, s *Seen) bool {
	switch s.Phase {
	case Applying, Waiting, Blocked:
		return true
	}
	return n.Mark.Pool != "" && n.Reason == nodev1.ReasonRolledBack
}
