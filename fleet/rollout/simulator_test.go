package rollout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// sim is a cluster in virtual time: an API server, nodes, people, and one or two processes that believe they lead.
type sim struct {
	random      *rand.Rand
	now         time.Duration
	step        time.Duration // by which the API server's clock was stepped
	api         *apiServer
	controllers [2]*controller
	processes   int
	holder      int // of the lease
	leaseUntil  time.Duration
	nodes       int // how many were ever made
	kept        int // how many revisions
	writes      int // how many arrived
	turned      []TurnedAway
	refuses     map[string]bool
	quota       time.Duration // until then the API server takes no new revision and no new variant,
	muted       time.Duration // and until then no status of this pool
	mute        string
	limits      map[string]*limits
	reached     map[string]int
	samples     int
	every       int // each how many plans are looked at more closely
	// maxUnavailable is what pools may begin with.
	maxUnavailable []string
	// what is wrong on purpose
	decide                    func(World) Plan
	forgetsSent, ignoresLease bool
	blind                     bool // a conflict is no reason to decide anew
	freezes                   bool // processes are frozen often
	ends                      bool // in the end everybody leaves the cluster alone
}

var simEpoch = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func (s *sim) wall() time.Time { return simEpoch.Add(s.now + s.step) }

func newSim(seed uint64, change func(*sim)) *sim {
	s := &sim{random: rand.New(rand.NewPCG(seed, 7)), api: newAPIServer(), refuses: map[string]bool{}, limits: map[string]*limits{}, reached: map[string]int{},
		every: 64, decide: Decide, maxUnavailable: []string{"1", "10%", "3", "20%", "100%", "5"}}
	if change != nil {
		change(s)
	}
	for range 20 + s.random.IntN(6) {
		s.addMachine(nil)
	}
	s.makePool("a")
	if s.random.IntN(3) == 0 {
		s.makePool("b")
	}
	for i := range s.controllers {
		s.controllers[i] = s.newController()
	}
	return s
}

func (s *sim) addMachine(change func(*machine)) *machine {
	s.nodes++
	m := newMachine(s.random, fmt.Sprintf("n%03d", s.nodes), s.nodes, simEpoch.Add(-time.Hour), s.api.natureOf)
	if change != nil {
		change(m)
	}
	s.api.add(m)
	return m
}

func (s *sim) keepRevision(r Revision) {
	data, err := r.Data()
	if err != nil {
		panic(err)
	}
	kept := ReadRevision(r.Pool, r.ObjectName(), data)
	if kept.Tampered {
		s.breaks(13, "revision %s is read as another one", r.ObjectName())
	}
	others := slices.DeleteFunc(slices.Clone(s.api.revisions[r.Pool]), func(old Revision) bool { return old.Hash == r.Hash })
	s.api.revisions[r.Pool] = append(others, kept)
	s.kept++
}

// pass lets time go by.
func (s *sim) pass(d time.Duration) {
	s.now += d
	for _, uid := range s.api.names {
		m := s.api.machines[uid]
		if m.advance(s.now); m.dirty {
			s.api.stamp(m)
		}
	}
	for i := range s.turned {
		s.turned[i].Age += d
	}
}

// any is a machine.
func (s *sim) any(pick uint32) *machine {
	if len(s.api.names) == 0 {
		return nil
	}
	return s.api.machines[s.api.names[int(pick)%len(s.api.names)]]
}

// action is one event of a schedule. Its randomness is its own, so that a schedule without it is otherwise the same.
type action struct {
	kind uint8
	pick uint32
}

func (a action) String() string { return fmt.Sprintf("{%d,%d}", a.kind, a.pick) }

const actionKinds = 180

func (s *sim) do(a action) {
	s.random = rand.New(rand.NewPCG(uint64(a.pick), uint64(a.kind)))
	c := s.controllers[a.pick%2]
	if s.freezes && a.kind >= 140 {
		a.kind = 44 + a.kind%4
	}
	switch {
	case a.kind < 40 || a.kind >= 64:
		s.pass(time.Duration(s.random.IntN([]int{300, 2000, 60_000, 120_000}[s.random.IntN(4)])) * time.Millisecond)
		c = s.controllers[s.leader()]
		c.lead()
		if c.hear(s.random.IntN(3) == 0) || s.random.IntN(2) == 0 { // without news it is seldom time to look
			c.reconcile(0, 0)
		}
	case a.kind < 44:
		c.lead()
		c.hear(false)
		if c.reconcile(1+s.random.IntN(6), 0) {
			s.restart(c)
		}
	case a.kind < 46:
		c = s.controllers[s.leader()]
		c.hear(false)
		c.reconcile(0, 1+s.random.IntN(6))
	case a.kind < 47:
		c.thaw()
	case a.kind < 48:
		s.restart(c)
	case a.kind < 57:
		if m := s.any(a.pick >> 8); m != nil {
			s.happens(m, a.kind)
			if m.dirty && s.api.machines[m.UID] == m {
				s.api.stamp(m)
			}
		}
	default:
		s.people(a.kind)
	}
}

// leader is the process that holds the lease, or any.
func (s *sim) leader() int {
	for i, c := range s.controllers {
		if c.id == s.holder {
			if len(c.stuck) > 0 {
				return 1 - i
			}
			return i
		}
	}
	return s.random.IntN(2)
}

func (s *sim) restart(c *controller) {
	for i := range s.controllers {
		if s.controllers[i] == c {
			s.controllers[i] = s.newController()
		}
	}
}

// schedule is what happens under a seed.
func schedule(seed uint64, events int) []action {
	random := rand.New(rand.NewPCG(seed, 11))
	actions := make([]action, events)
	for i := range actions {
		actions[i] = action{uint8(random.IntN(actionKinds)), random.Uint32()}
	}
	return actions
}

// live carries a schedule out, and says what broke.
func live(seed uint64, actions []action, change func(*sim)) (s *sim, fault *broken) {
	defer func() {
		if r := recover(); r != nil {
			b, is := r.(broken)
			if !is {
				panic(r)
			}
			fault = &b
		}
	}()
	s = newSim(seed, change)
	for _, a := range actions {
		s.do(a)
	}
	if s.ends {
		s.comesToAnEnd()
	}
	return s, nil
}

// shrink leaves out what it takes not for the same invariant to break.
func shrink(seed uint64, actions []action, change func(*sim), invariant int) []action {
	breaks := func(candidate []action) bool {
		_, fault := live(seed, candidate, change)
		return fault != nil && fault.invariant == invariant
	}
	for size := len(actions) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(actions); {
			if candidate := slices.Concat(actions[:at], actions[at+size:]); breaks(candidate) {
				actions = candidate
			} else {
				at += size
			}
		}
	}
	return actions
}

func describe(actions []action) string {
	words := make([]string, len(actions))
	for i, a := range actions {
		words[i] = a.String()
	}
	return strings.Join(words, " ")
}
