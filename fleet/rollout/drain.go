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

	"github.com/kubelet-supervisor/kubelet-supervisor/internal/bounded"
)

// FieldManager is what the API server knows the controller by. It lifts a cordon only if no other client has written it.
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

// readDrain tells our cordon from that of others. The annotation alone does not, because a person may have uncordoned the node and cordoned it
// again unseen.
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

// lookAtDrain counts for how long a drain is under way. Another process begins again: the drain ends later then, never earlier.
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

// endDrains lifts our cordons that are of no use any more, whichever pool owns the node by now, and whether or not the pool is still there.
func endDrains(w *World, all *census, pools []turn, l *sharedLimits) (lifted []Write) {
	if !w.Synced {
		return nil
	}
	for i, n := range all.nodes {
		if n.Drain.Pool == "" || n.Drain.Over != "" || w.Denied[n.UID] != "" {
			continue
		}
		ends, over := true, ""
		switch p, m := all.drainer(n, pools), all.members[i]; {
		case !n.Draining:
			over = "somebody has uncordoned the node"
		case n.Updating: // who updates it has found it cordoned, and relies on that
			ends = false
		case p != nil && m != nil && p.Pool == all.pools[all.owner[i]] && !l.frozen(n):
			ends, over = p.drainEnds(m, w.Drains[n.UID])
		}
		if ends {
			lifted = append(lifted, endOfDrain(n, over))
		}
	}
	return lifted
}

// drainer is the pool that a node's drain names; nil: it is not there.
func (c *census) drainer(n *Node, pools []turn) *turn {
	if i, is := c.pool(n.Drain.Pool); is {
		return &pools[i]
	}
	return nil
}

func endOfDrain(n *Node, over string) Write {
	w := Write{Node: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Pool: n.Drain.Pool, Why: WhyUndrain, Lifts: n.Draining}
	if over != "" {
		w.Drain = n.Drain
		w.Drain.Over = bounded.Text(bounded.Line(over), overLimit)
	}
	return w
}

// drainEnds says whether a member's drain ends now and, where there is to be no other one for the revision, why.
func (p *course) drainEnds(m *member, found Drained) (ends bool, over string) {
	n := m.node
	switch {
	case p.slots() == 0 || !p.rules.drains || p.Spec.Rollout.Paused || n.Retry.Pool != p.Name || n.Retry.Hash != n.Drain.Hash:
		return true, ""
	case p.hasStopped(n.Retry) || n.Active == n.Source && n.Observed == n.Source:
		return true, ""
	case !p.target.there: // not known, which is not the same as gone
		return m.drainInVain(found, &p.rules)
	case p.target.retry.Hash != n.Drain.Hash || p.target.stopped != nil:
		return true, ""
	}
	switch m.class {
	case Waiting:
		return m.drainInVain(found, &p.rules)
	case Applying:
		return m.seen.Runs, ""
	}
	return true, ""
}

// drainInVain ends a drain because a pod is in the way that no drain may take, pods are in the way for too long, or the node waits although none is.
func (m *member) drainInVain(found Drained, r *rules) (ends bool, over string) {
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
	case m.seen.Drained < r.drainTimeout:
		return false, ""
	case found == Drained{}: // it rested all the time, and may be tried again
		return true, ""
	}
	return true, fmt.Sprintf("timed out after %v: %s", r.drainTimeout, found.Words)
}

// drain cordons nodes that wait for their pods, so that the shell may evict these. Such a node holds a slot of maxUnavailable already, but it
// served until now: so no more may be unavailable than may be. And soon it will have begun, so it has to have room in the wave.
func (p *turn) drain(l *sharedLimits) {
	if !p.rules.drains || p.target.stopped != nil || p.slots() == 0 || p.target.stable && p.count.of[Failed] > 0 {
		return
	}
	for _, m := range p.candidates(&p.aim, p.gate, p.mayDrain) {
		switch {
		case len(p.writes) >= rate:
			return
		case p.written(m.node), !p.mayBegin(m):
			continue
		case p.count.unavailable > p.slots(), m.node.ControlPlane && l.controlPlanesAway > 1:
			p.starved = true
			continue
		case !p.passes(l, m, WhyDrain):
			continue
		}
		p.letBegin(m)
		p.write(m, WhyDrain).Drain = Drain{Pool: p.Name, Hash: p.target.retry.Hash}
	}
}

// mayDrain reports whether a member waits for its pods, and was not drained for this revision before.
func (p *aim) mayDrain(m *member) bool {
	n := m.node
	if m.class != Waiting || n.Draining || !n.Ready || n.Active == n.Source || p.hasStopped(n.Retry) {
		return false
	}
	hash := p.target.retry.Hash
	return n.Retry.Pool == p.Name && n.Retry.Hash == hash && (n.Drain.Pool != p.Name || n.Drain.Hash != hash)
}

// evict says whose pods are to be evicted now. A drain that rests keeps its cordon, and its time goes on: in doubt, while more nodes are
// unavailable than may be, and while the node is not Ready. A window that closes is no reason: what has begun is brought to its end.
func evict(w *World, all *census, pools []turn) (drains []Draining) {
	for i, n := range all.nodes {
		m := all.members[i]
		if !n.Draining || m == nil || m.class != Waiting {
			continue
		}
		p := &pools[all.owner[i]]
		rests := p.holds() || !p.target.there || w.Mute[p.Name] || p.count.unavailable > p.slots() || !n.Ready || p.written(n)
		if !rests {
			drains = append(drains, Draining{n.Name, n.UID, n.Drain})
		}
	}
	return drains
}

// frozen reports whether a budget allows nothing to be done to the node.
func (l *sharedLimits) frozen(n *Node) bool {
	return slices.ContainsFunc(l.budgets, func(g *gate) bool {
		return g.takes(n) && (g.budget.fault != "" || g.budget.frozen || g.maxUnavailable == 0)
	})
}

// drainWords say what became of drains, for people.
func (c *crew) drainWords(p *aim) string {
	under, over, words := 0, 0, ""
	for m := range c.each {
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
