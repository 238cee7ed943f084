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

// FieldManager is the controller's field manager. It lifts a cordon only if no other client has written it.
const FieldManager = "kubelet-supervisor-controller"

const (
	// drainLook is how often to look at a drain.
	drainLook = 10 * time.Second
	// passesWithin is how long a node may take to notice that its pods are gone: it looks every 5 minutes, with 10%
	// jitter.
	passesWithin = 6 * time.Minute
	overLimit    = 256
)

// Drain is the drain of a node by a pool, for a revision. It is stored in an annotation, as JSON, and marks the
// node's cordon as the pool's. When the drain has failed, it says why, and prevents another drain for the same
// revision. The zero value means no drain.
type Drain struct {
	Pool string `json:"pool"`
	Hash string `json:"hash"`
	// Over says why the drain has failed; "" while it is in progress.
	Over string `json:"over,omitempty"`
}

func (d Drain) String() string {
	if d.Pool == "" {
		return ""
	}
	return annotationOf(d)
}

// ParseDrain decodes an annotation. It returns the zero value for an invalid one, because such a cordon belongs to
// a user.
func ParseDrain(text string) Drain {
	var d Drain
	if text == "" || json.Unmarshal([]byte(text), &d) != nil || d.Pool == "" || d.Hash == "" {
		return Drain{}
	}
	return d
}

// Draining is a node whose pods must be evicted.
type Draining struct {
	Node  string
	UID   types.UID
	Drain Drain
}

// Drained is what the controller found while it drained a node.
type Drained struct {
	Drain Drain
	// Refuses means that a pod must not be evicted, so none was. Empty means that there is nothing left to evict.
	Refuses, Empty bool
	// Words say which pods are in the way, and why.
	Words string
}

// readDrain distinguishes our cordon from that of others. The annotation alone is not enough, because a user may
// have uncordoned the node and cordoned it again in between.
func (n *Node) readDrain(from *corev1.Node) {
	n.Drain = ParseDrain(from.Annotations[DrainAnnotation])
	if n.Cordoned && n.Drain.Pool != "" && n.Drain.Over == "" && !slices.ContainsFunc(Cordoners(from), func(by string) bool { return by != FieldManager }) {
		n.Cordoned, n.Draining = false, true
	}
}

// Cordoners returns the field managers that have cordoned a node, as far as the API server knows.
func Cordoners(n *corev1.Node) (managers []string) {
	for i := range n.ManagedFields {
		if fields := n.ManagedFields[i].FieldsV1; fields != nil && bytes.Contains(fields.GetRawBytes(), []byte(`"f:unschedulable"`)) {
			managers = append(managers, n.ManagedFields[i].Manager)
		}
	}
	return managers
}

// lookAtDrain counts how long a drain has been in progress. A new process counts from zero, so the drain may end
// later, but not earlier.
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

// endDrains lifts our cordons that no longer serve a drain, whichever pool owns the node now, and even if the pool
// is deleted.
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
			over = "another user or program has uncordoned the node"
		case n.Updating: // the other updater found the node cordoned, and relies on that
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

// drainer returns the pool that a node's drain names; nil if it does not exist.
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

// drainEnds reports whether a member's drain ends now. over says why there will be no other drain for the
// revision, if so.
func (p *course) drainEnds(m *member, found Drained) (ends bool, over string) {
	n := m.node
	switch {
	case p.slots() == 0 || !p.rules.drains || p.Spec.Rollout.Paused || n.Retry.Pool != p.Name || n.Retry.Hash != n.Drain.Hash:
		return true, ""
	case p.hasStopped(n.Retry) || n.Active == n.Source && n.Observed == n.Source:
		return true, ""
	case !p.target.there: // unknown, which is not the same as deleted
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

// drainInVain ends a drain because a pod must not be evicted, because pods have been in the way for too long, or
// because the node waits although no pod is in the way.
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
	case found == Drained{}: // it was paused all the time, and may be tried again
		return true, ""
	}
	return true, fmt.Sprintf("timed out after %v: %s", r.drainTimeout, found.Words)
}

// drain cordons nodes that wait for their pods, so that the controller can evict these. Such a node already holds
// a slot of maxUnavailable, but was available until now, so the number of unavailable nodes must stay within
// maxUnavailable. It will begin soon, so it also needs room in the wave.
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

// evict returns the nodes whose pods must be evicted now. A drain is paused in doubt, while too many nodes are
// unavailable, and while the node is not Ready; it keeps its cordon, and its time goes on. The end of a window
// does not pause it, because a change that has begun is completed.
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

// frozen reports whether a budget allows no change of the node.
func (l *sharedLimits) frozen(n *Node) bool {
	return slices.ContainsFunc(l.budgets, func(g *gate) bool {
		return g.takes(n) && (g.budget.fault != "" || g.budget.frozen || g.maxUnavailable == 0)
	})
}

// drainWords returns the results of drains, for people.
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
		text += fmt.Sprintf("; %d were drained without effect, such as %s", over, words)
	}
	return text
}
