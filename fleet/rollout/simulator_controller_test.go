package rollout

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubelet-supervisor/kubelet-supervisor/api/pool/v1alpha1"
)

const (
	leaseTime   = 15 * time.Second
	requestTime = 5 * time.Second
)

// controller is one process of the shell around the core, as small as can be: a cache that lags, what it has sent, and a lease.
type controller struct {
	s       *sim
	id      int
	synced  bool
	cache   map[types.UID]Node
	sent    map[types.UID]sent
	memory  memory
	denied  map[types.UID]string
	found   map[types.UID]Drained
	refused refusals
	mute    map[string]time.Duration // pools whose status was refused, and until when it is not tried again
	last    time.Duration
	leads   bool
	renews  time.Duration // when it has last renewed its lease
	acts    time.Duration // not before
	stuck   []Write       // what it was about to send when it was frozen
	pools   map[string]readPool
	decide  func(World) Plan
	// mistakes of a shell
	forgetsSent, ignoresLease bool
}

// sent is a write that the cache has not caught up with; version is empty where the answer was lost.
type sent struct {
	write   Write
	version string
}

type memory struct {
	seen   map[types.UID]Seen
	gone   []Gone
	clocks map[string]Clock
}

type readPool struct {
	generation int64
	revisions  int
	pool       Pool
}

func (s *sim) newController() *controller {
	s.processes++
	return &controller{s: s, id: s.processes, decide: s.decide, cache: map[types.UID]Node{}, sent: map[types.UID]sent{}, denied: map[types.UID]string{}, found: map[types.UID]Drained{}, mute: map[string]time.Duration{},
		pools: map[string]readPool{}, forgetsSent: s.forgetsSent, ignoresLease: s.ignoresLease, last: s.now}
}

// lead takes the lease once nobody holds it, waits until nothing of the old leader's can arrive any more, and lists live.
func (c *controller) lead() {
	if len(c.stuck) > 0 {
		return // it is frozen
	}
	if c.s.holder != c.id && !c.ignoresLease {
		// Somebody else has had it: a process ends then, and begins anew.
		c.leads, c.synced, c.memory, c.last = false, false, memory{}, c.s.now
	}
	if c.s.now < c.s.leaseUntil && c.s.holder != c.id {
		return
	}
	if !c.leads {
		c.leads, c.acts = true, c.s.now+requestTime
		if c.s.holder == 0 || c.ignoresLease {
			c.acts = c.s.now
		}
	}
	c.s.holder, c.s.leaseUntil, c.renews = c.id, c.s.now+leaseTime, c.s.now
}

func (c *controller) list() {
	clear(c.cache)
	for uid, m := range c.s.api.machines {
		c.cache[uid] = m.Node
	}
	clear(c.sent)
	c.synced = true
}

// hear brings a part of what has changed into the cache: late, out of order, and some of it twice.
func (c *controller) hear(all bool) (news bool) {
	for _, uid := range c.s.api.names {
		if m := c.s.api.machines[uid]; c.cache[uid].ResourceVersion != m.ResourceVersion && (all || c.s.random.IntN(4) > 0) {
			c.cache[uid], news = m.Node, true
		}
	}
	for uid := range c.cache {
		if _, is := c.s.api.machines[uid]; !is && all {
			delete(c.cache, uid)
			delete(c.sent, uid)
			news = true
		}
	}
	return news
}

// world is what the process knows: its cache, with what it has sent laid over it.
func (c *controller) world() World {
	s := c.s
	w := World{Now: s.wall(), Elapsed: s.now - c.last, Synced: c.synced, Layers: s.api.layers, Turned: s.turned, Seen: c.memory.seen, Gone: c.memory.gone,
		Clocks: c.memory.clocks, Denied: c.denied, Drains: maps.Clone(c.found), Mute: map[string]bool{}}
	for name, until := range c.mute {
		w.Mute[name] = s.now < until
	}
	for _, name := range []string{"a", "b"} {
		if object := s.api.pools[name]; object != nil {
			w.Pools = append(w.Pools, c.read(object))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.api.budgets)) {
		w.Budgets = append(w.Budgets, ReadBudget(&v1alpha1.KubeletRolloutBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: s.api.budgets[name]}, time.LoadLocation))
	}
	w.Nodes = make([]Node, 0, len(c.cache))
	for _, uid := range slices.Sorted(maps.Keys(c.cache)) {
		n := c.cache[uid]
		if over, is := c.sent[uid]; is && !c.forgetsSent {
			if over.version != "" && older(over.version, n.ResourceVersion) {
				delete(c.sent, uid)
			} else {
				version := n.ResourceVersion
				if n = n.With(over.write); over.version != "" {
					version = over.version
				}
				n.ResourceVersion = version
			}
		}
		w.Nodes = append(w.Nodes, n)
	}
	return w
}

func older(a, b string) bool {
	x, _ := strconv.Atoi(a)
	y, _ := strconv.Atoi(b)
	return x <= y
}

func (c *controller) read(object *v1alpha1.KubeletPool) Pool {
	revisions := c.s.api.revisions[object.Name]
	known := c.pools[object.Name]
	if known.generation != object.Generation || known.revisions != c.s.kept {
		known = readPool{object.Generation, c.s.kept, ReadPool(object, revisions, time.LoadLocation)}
		c.pools[object.Name] = known
	}
	pool := known.pool
	pool.Status = object.Status
	return pool
}

// reconcile decides once and carries the plan out, request by request. At request dies the process is killed; at request freezes it stops,
// and goes on some day with what it was about to send.
func (c *controller) reconcile(dies, freezes int) (killed bool) {
	s := c.s
	if !c.leads || s.now < c.acts || len(c.stuck) > 0 || !c.ignoresLease && s.now > c.renews+leaseTime {
		return false
	}
	if !c.synced && s.random.IntN(2) == 0 {
		c.list()
	}
	c.resolve()
	w := c.world()
	plan := c.plan(&w)
	c.last = s.now
	s.check(c, &w, &plan)
	c.evict(&plan)
	requests := 0
	cut := func() bool { requests++; return requests == dies }
	for _, r := range plan.Revisions {
		if cut() {
			return true
		}
		if w.RefusedRevisions[r.ObjectName()] == "" {
			s.keepRevision(r)
		}
	}
	for _, v := range plan.Variants {
		if cut() {
			return true
		}
		if w.RefusedVariants[v.Name] == "" {
			s.api.keep(v)
		}
	}
	for _, p := range w.Pools {
		status, is := plan.Status[p.Name]
		if !is {
			continue
		}
		if cut() {
			return true
		}
		if c.isMuted(&w, p.Name) {
			w.Mute[p.Name] = true
			if delete(plan.Clocks, p.Name); w.Clocks[p.Name] != (Clock{}) {
				plan.Clocks[p.Name] = w.Clocks[p.Name]
			}
			continue
		}
		object := s.api.pools[p.Name]
		if object == nil || !reflect.DeepEqual(object.Status, p.Status) {
			return false // a conflict: decide anew
		}
		object.Status = status
	}
	c.memory = memory{plan.Seen, plan.Gone, plan.Clocks}
	if !c.synced {
		c.list()
	}
	plan.Writes = slices.DeleteFunc(plan.Writes, func(write Write) bool { return w.Mute[write.Pool] && write.Why != WhyUndrain })
	for i, write := range plan.Writes {
		if requests+1 == freezes {
			c.stuck = plan.Writes[i:]
			return false
		}
		if cut() {
			if s.random.IntN(2) == 0 {
				c.send(write) // it arrived, and nobody heard the answer
			}
			return true
		}
		c.send(write)
	}
	return false
}

// resolve asks for what became of the writes whose answers were lost.
func (c *controller) resolve() {
	for uid, over := range c.sent {
		if over.version == "" {
			if m := c.s.api.machines[uid]; m != nil {
				c.cache[uid] = m.Node
			} else {
				delete(c.cache, uid)
			}
			delete(c.sent, uid)
		}
	}
}

// send patches a Node, as long as the lease outlasts the request.
func (c *controller) send(w Write) {
	s := c.s
	if !c.ignoresLease && c.renews+leaseTime < s.now+requestTime {
		c.leads = false
		return
	}
	if s.refuses[w.Node] {
		c.denied[w.UID] = "admission webhook denied the request"
		return
	}
	s.checkSent(c, w)
	version, conflict := s.api.patch(w)
	if m := s.api.machines[w.UID]; conflict && s.blind && m != nil {
		w.ResourceVersion = m.ResourceVersion
		s.checkSent(c, w)
		version, conflict = s.api.patch(w)
	}
	if conflict {
		if m := s.api.machines[w.UID]; m != nil {
			c.cache[w.UID] = m.Node
		}
		return
	}
	s.arrived(w)
	if s.random.IntN(20) == 0 {
		version = "" // the answer is lost
	}
	c.fold(w.UID)
	c.sent[w.UID] = sent{w, version}
}

// fold keeps what an earlier write was answered with: an answer is the whole Node.
func (c *controller) fold(uid types.UID) {
	over, is := c.sent[uid]
	if n := c.cache[uid]; is && over.version != "" && !older(over.version, n.ResourceVersion) {
		n = n.With(over.write)
		n.ResourceVersion = over.version
		c.cache[uid] = n
	}
}

// thaw goes on where the process was frozen.
func (c *controller) thaw() {
	stuck := c.stuck
	c.stuck = nil
	for _, w := range stuck {
		c.send(w)
	}
}
