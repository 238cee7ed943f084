package history

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// Options of Check.
type Options struct {
	Controller string        // the user that the controllers are
	Lag        time.Duration // after which the controller has heard of everything
	KindLabels []string      // that layers for some nodes only go by
}

// Findings are what a history has in it.
type Findings struct {
	Assignments int            `json:"assignments"`
	Words       int            `json:"words"`    // status writes of nodes
	Verdicts    int            `json:"verdicts"` // that stop a revision
	Unavailable int            `json:"unavailable"`
	Unnoted     int            `json:"unnoted"` // assignments to a Node whose state before was not noted, for an API server was killed over it
	Reasons     map[string]int `json:"reasons"` // that nodes gave
	// Last is the longest time from the note of a verdict to the receipt of an assignment of the same revision.
	Last     time.Duration `json:"last"`
	Breaches []Breach      `json:"breaches,omitempty"`
}

// A Breach is a write that a rule does not allow.
type Breach struct {
	Rule  string    `json:"rule"`
	At    time.Time `json:"at"`
	Node  string    `json:"node"`
	Words string    `json:"words"`
}

// state is a Node as it was after a write.
type state struct {
	*rollout.Node
	answered time.Time
	third    time.Time // when somebody else than controller and node wrote to it last
	sent     bool      // the controller has sent it on its way, and it does not say yet that it runs that, or does not want to
}

// checker goes through a history.
type checker struct {
	Options
	Findings
	nodes    map[string]state // the newest of each name
	versions map[string]state // of each resourceVersion
	pools    map[string][]*Write
	verdicts map[rollout.Retry]time.Time
}

// Check holds writes, as Read gives them, against the rules.
func Check(writes []Write, o Options) *Findings {
	c := &checker{Options: o, Findings: Findings{Reasons: map[string]int{}}, nodes: map[string]state{}, versions: map[string]state{},
		pools: map[string][]*Write{}, verdicts: map[rollout.Retry]time.Time{}}
	for i := range writes {
		if w := &writes[i]; w.Pool != nil {
			c.pools[w.Name] = append(c.pools[w.Name], w)
		}
	}
	for _, w := range inOrder(writes) {
		switch {
		case w.Version == 0:
			delete(c.nodes, w.Name)
		default:
			c.step(w)
		}
	}
	return &c.Findings
}

// inOrder are the writes of Nodes. A deletion has no version of its own: it comes after what was answered before it was received.
func inOrder(writes []Write) (nodes []*Write) {
	last := uint64(0)
	at := map[*Write]uint64{}
	for i := range writes {
		w := &writes[i]
		if last = max(last, w.Version); w.Node == nil {
			continue
		}
		if at[w] = w.Version; w.Version == 0 {
			at[w] = last
		}
		nodes = append(nodes, w)
	}
	slices.SortStableFunc(nodes, func(a, b *Write) int { return cmp.Compare(at[a], at[b]) })
	return nodes
}

func (c *checker) step(w *Write) {
	n := w.Node
	before, known := c.nodes[w.Name]
	if !known {
		before.Node = &rollout.Node{}
	}
	if w.User == c.Controller && n.Mark.Pool != "" {
		c.assignment(w)
	}
	now := state{n, w.Answered, before.third, before.sent && before.UID == n.UID && n.Mark.Records(n.Source)}
	switch {
	case w.User == "system:node:"+w.Name:
		c.Words++
		now.sent = now.sent && changing(n)
		if !known || before.Reason != n.Reason || before.Observed != n.Observed {
			c.Reasons[n.Reason]++
		}
		if final(n) {
			if _, is := c.verdicts[n.Retry]; !is && n.Mark.Records(n.Source) {
				c.Verdicts++
				c.verdicts[n.Retry] = w.Answered
			}
		}
	case w.User != c.Controller:
		now.third = w.Answered
	case n.Source != before.Source || n.Retry != before.Retry:
		now.sent = true
	}
	c.nodes[w.Name], c.versions[strconv.FormatUint(w.Version, 10)] = now, now
}

// final: the node has refused what its pool has assigned to it, for good.
func final(n *rollout.Node) bool {
	return n.Mark.Pool != "" && n.Observed == n.Mark.Assignment && n.RetryHeard == n.Retry && n.Retry.Pool != "" && rollout.IsVerdict(n.Reason) && n.Reason != "RolledBack"
}

func (c *checker) breach(rule string, w *Write, format string, words ...any) {
	c.Breaches = append(c.Breaches, Breach{rule, w.Received, w.Name, fmt.Sprintf(format, words...)})
}

// assignment holds one PATCH of the controller's against the rules.
func (c *checker) assignment(w *Write) {
	c.Assignments++
	before, known := c.versions[w.Since]
	if w.UID == "" || w.Since == "" || types.UID(w.UID) != w.Node.UID {
		c.breach("precondition", w, "it asks for uid %q and resourceVersion %q", w.UID, w.Since)
		return
	}
	if !known {
		c.Unnoted++
		return
	}
	if n := w.Node; n.Source == before.Source && n.Retry == before.Retry && n.Mark == before.Mark && slices.Equal(n.Taints, before.Taints) &&
		n.Cordoned == before.Cordoned && n.Consent == before.Consent && n.Drain == before.Drain {
		c.breach("nothing twice", w, "it has %s already", n.Source)
	}
	c.hands(w, before)
	c.gates(w, before)
	c.verdict(w)
}

// hands: whose Nodes are written. All of it the controller has read in the version that its PATCH names.
func (c *checker) hands(w *Write, before state) {
	switch {
	case before.Source != "" && !before.Mark.Records(before.Source), before.Source == "" && before.Mark.Pool != "" && !before.Mark.Records(""):
		c.breach("a person's hands", w, "a person has assigned %q, and the mark says %q", before.Source, before.Mark)
	case before.Labels[rollout.RolloutLabel] == "hold":
		c.breach("hold", w, "its label holds it")
	case before.Labels[rollout.PoolLabel] == "none":
		c.breach("no pool", w, "its label says that it is in no pool")
	case !c.any(w, func(p *Write) bool { return selects(p, before.Node) }):
		c.breach("no pool", w, "%s does not select %v", w.Node.Mark.Pool, before.Labels)
	}
}

// verdict measures for how long a revision is assigned after somebody has refused it.
func (c *checker) verdict(w *Write) {
	told, is := c.verdicts[w.Node.Retry]
	if !is || !w.Received.After(told) {
		return
	}
	took := w.Received.Sub(told)
	if c.Last = max(c.Last, took); took > c.Lag {
		c.breach("a verdict", w, "%s was refused %v before", w.Node.Retry, took)
	}
}
