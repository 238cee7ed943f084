package rollout

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/api/v1alpha1"
	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// FieldManager is what the API server knows the controller by. Nobody else may have written a cordon that it lifts.
const FieldManager = "kubelet-supervisor-controller"

const (
	// drainLook is how often to look at a drain.
	drainLook = 10 * time.Second
	// passesWithin is how long a node may take to find out that its pods are gone: it looks every 5 minutes, give or take a tenth.
	passesWithin = 6 * time.Minute
	overLimit    = 256
)

// Drain is the drain of a node by a pool, for a revision. As an annotation, in JSON, beside a cordon it says whose cordon that is. Once the drain has
// come to nothing it says why, and that there is to be no other one for the revision. Its zero value is none.
type Drain struct {
	Pool string `json:"pool"`
	Hash string `json:"hash"`
	// Over says why it has come to nothing; empty where it is under way.
	Over string `json:"over,omitempty"`
}

func (d Drain) String() string {
	if d.Pool == "" {
		return ""
	}
	return annotationOf(d)
}

// ParseDrain reads an annotation. What it cannot read is none: such a cordon is in a person's hands.
func ParseDrain(text string) Drain {
	var d Drain
	if text == "" || json.Unmarshal([]byte(text), &d) != nil || d.Pool == "" || d.Hash == "" {
		return Drain{}
	}
	return d
}

// Draining is a node whose pods are to be evicted.
type Draining struct {
	Node  string
	UID   types.UID
	Drain Drain
}

// Drained is what was found at a drain.
type Drained struct {
	Drain Drain
	// Refuses: there is a pod that no drain may take, so that none was taken. Empty: there is nothing left to evict.
	Refuses, Empty bool
	// Words say which pods stand in the way, and why.
	Words string
}

// readDrain tells our cordon from that of anybody else. The annotation alone does not: somebody may have uncordoned the node, and cordoned it
// again, while nobody looked.
func (n *Node) readDrain(from *corev1.Node) {
	n.Drain = ParseDrain(from.Annotations[DrainAnnotation])
	if n.Cordoned && n.Drain.Pool != "" && n.Drain.Over == "" && !slices.ContainsFunc(Cordoners(from), func(by string) bool { return by != FieldManager }) {
		n.Cordoned, n.Draining = false, true
	}
}

// Cordoners are those who have cordoned a node and stand by it, as far as the API server knows.
func Cordoners(n *corev1.Node) (managers []string) {
	for i := range n.ManagedFields {
		if fields := n.ManagedFields[i].FieldsV1; fields != nil && bytes.Contains(fields.GetRawBytes(), []byte(`"f:unschedulable"`)) {
			managers = append(managers, n.ManagedFields[i].Manager)
		}
	}
	return managers
}

// lookAtDrain counts for how long a drain is under way. Another process begins anew: the drain ends later then, never earlier.
func (s *Seen) lookAtDrain(n *Node, found Drained, elapsed time.Duration) {
	if !n.Draining {
		s.Drain, s.Drained, s.Emptied = Drain{}, 0, 0
		return
	}
	if s.Drain != n.Drain {
		s.Drain, s.Drained, s.Emptied = n.Drain, 0, 0
		return
	}
	s.Drained += elapsed
	if found.Drain == n.Drain && found.Empty {
		s.Emptied += elapsed
	} else {
		s.Emptied = 0
	}
}

// endDrains lifts our cordons that are of no use any more, whoever owns the node by now, and whether or not the pool is still there.
func (d *decision) endDrains() {
	if !d.w.Synced {
		return
	}
	for i, n := range d.nodes {
		if n.Drain.Pool == "" || n.Drain.Over != "" || d.w.Denied[n.UID] != "" {
			continue
		}
		if ends, over := d.drainEnds(i); ends {
			w := Write{Node: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Pool: n.Drain.Pool, Why: WhyUndrain, Lifts: n.Draining}
			if over != "" {
				w.Drain = n.Drain
				w.Drain.Over = bounded.Text(bounded.Line(over), overLimit)
			}
			d.undrains = append(d.undrains, w)
		}
	}
}

func (d *decision) undrained(n *Node) bool {
	return slices.ContainsFunc(d.undrains, func(w Write) bool { return w.UID == n.UID })
}

// drainEnds says whether a node's drain ends now and, where there is to be no other one for the revision, why.
func (d *decision) drainEnds(i int) (ends bool, over string) {
	n, m := d.nodes[i], d.members[i]
	switch {
	case !n.Draining:
		return true, "somebody has uncordoned the node"
	case n.Updating: // who updates it has found it cordoned, and relies on that
		return false, ""
	}
	p := d.named[n.Drain.Pool]
	switch {
	case p == nil || m == nil || d.pools[d.owner[i]] != p:
		return true, ""
	case p.maxUnavailable() == 0 || d.frozen(n) || !p.rules.drains || p.Spec.Rollout.Paused || n.Retry.Pool != p.Name || n.Retry.Hash != n.Drain.Hash:
		return true, ""
	case p.hasStopped(n.Retry) || n.Active == n.Source && n.Observed == n.Source:
		return true, ""
	case !p.target.there: // not known, which is not the same as gone
		return m.drainInVain(d.w.Drains[n.UID], p)
	case p.target.retry.Hash != n.Drain.Hash || p.target.stopped != nil:
		return true, ""
	}
	switch m.class {
	case Waiting:
		return m.drainInVain(d.w.Drains[n.UID], p)
	case Applying:
		return m.seen.Runs, ""
	}
	return true, ""
}

// drainInVain: a pod is in the way that no drain may take, or pods are for too long, or the node waits although none is.
func (m *member) drainInVain(found Drained, p *pool) (ends bool, over string) {
	if found.Drain != m.node.Drain {
		found = Drained{}
	}
	switch {
	case found.Refuses:
		return true, found.Words
	case found.Empty && m.seen.Emptied < passesWithin:
		return false, ""
	case found.Empty:
		return true, "all pods are gone that a drain may take, and it still waits: " + cmp.Or(m.node.Holds, "it does not say for what")
	case m.seen.Drained < p.rules.drainTimeout:
		return false, ""
	case found == Drained{}: // it rested all the time, and may be tried again
		return true, ""
	}
	return true, fmt.Sprintf("timed out after %v: %s", p.rules.drainTimeout, found.Words)
}

// drain cordons nodes that wait for their pods, so that the shell may evict these. Such a node holds a slot of maxUnavailable already, but it
// served until now: so no more may be unavailable than may be. And soon it will have begun, so it has to have room in the wave.
func (d *decision) drain(p *pool) {
	if !p.rules.drains || p.target.stopped != nil || p.maxUnavailable() == 0 || p.target.stable && p.count.of[Failed] > 0 {
		return
	}
	for _, m := range p.candidates(func(m *member) bool { return p.mayDrain(m) }) {
		switch {
		case len(p.writes) >= rate:
			return
		case d.written(p, m.node), !p.mayBegin(m):
			continue
		case p.count.unavailable > p.maxUnavailable(), m.node.ControlPlane && d.controlPlanesAway > 1:
			p.starved = true
			continue
		case !d.passes(p, m, WhyDrain):
			continue
		}
		p.begins(m)
		w := d.write(p, m, WhyDrain)
		w.Drain = Drain{Pool: p.Name, Hash: p.target.retry.Hash}
		p.writes = append(p.writes, w)
	}
}

// mayDrain: it waits for its pods, and was not drained for this revision before.
func (p *pool) mayDrain(m *member) bool {
	n := m.node
	if m.class != Waiting || n.Draining || !n.Ready || n.Active == n.Source || p.hasStopped(n.Retry) {
		return false
	}
	hash := p.target.retry.Hash
	return n.Retry.Pool == p.Name && n.Retry.Hash == hash && (n.Drain.Pool != p.Name || n.Drain.Hash != hash)
}

// hasStopped: what the node has was stopped in its attempt. The target may be the same revision in a later one.
func (p *pool) hasStopped(r Retry) bool {
	return slices.ContainsFunc(p.status.Stops, func(stop v1alpha1.Stop) bool {
		return stop.Hash == r.Hash && r.Attempt <= stop.Attempt
	})
}

// evict says whose pods are to be evicted now. A drain that rests keeps its cordon, and its time goes on: in doubt, while more nodes are
// unavailable than may be, and while the node is not Ready. A window that closes is no reason: what has begun is brought to its end.
func (d *decision) evict() {
	if !d.w.Synced {
		return
	}
	for i, n := range d.nodes {
		m := d.members[i]
		if !n.Draining || m == nil || m.class != Waiting {
			continue
		}
		p := d.pools[d.owner[i]]
		rests := p.holds() || !p.target.there || d.w.Mute[p.Name] || p.count.unavailable > p.maxUnavailable() || !n.Ready || d.written(p, n)
		if !rests {
			d.plan.Drains = append(d.plan.Drains, Draining{n.Name, n.UID, n.Drain})
		}
	}
}

// frozen: a budget allows nothing to be done to the node.
func (d *decision) frozen(n *Node) bool {
	return slices.ContainsFunc(d.budgets, func(g *gate) bool {
		return g.takes(n) && (g.budget.fault != "" || g.budget.frozen || g.maxUnavailable == 0)
	})
}

// drainWords say what became of drains, for people.
func (p *pool) drainWords() string {
	under, over, words := 0, 0, ""
	for i := range p.members {
		m := &p.members[i]
		switch n := m.node; {
		case m.class != Waiting || n.Drain.Pool != p.Name || n.Drain.Hash != p.target.retry.Hash:
		case n.Draining:
			under++
		case n.Drain.Over != "":
			if over++; words == "" {
				words = n.Name + ": " + n.Drain.Over
			}
		}
	}
	text := ""
	if under > 0 {
		text = fmt.Sprintf("; %d of them are being drained", under)
	}
	if over > 0 {
		text += fmt.Sprintf("; %d were drained in vain, such as %s", over, words)
	}
	return text
}
