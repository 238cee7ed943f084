package rollout

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
)

// nature is what a configuration does to the nodes that run it.
type nature string

const (
	good    nature = "good"
	refused nature = "refused" // by pre-flight
	dying   nature = "dying"   // exits: rolled back, then rejected
	unready nature = "unready" // runs, and loses the node
	slow    nature = "slow"    // takes long to begin
)

const trialPeriod = time.Minute

// machine is a node with its supervisor: it follows the Node contract, in virtual time.
type machine struct {
	Node
	random *rand.Rand
	// habits
	liar, heldForPods, deaf, environment bool
	// heard is the assignment and retry that its supervisor has heard of, next what it does then, and when.
	heardSource string
	heardRetry  Retry
	next        func(*machine)
	at          time.Duration
	running     string // what the kubelet runs
	good        string // last known good
	rebooted    time.Duration
	lost        time.Duration // since when an unready configuration has lost it
	natureOf    func(source string) nature
	wasDead     bool // not Ready when it was assigned what it has
	touched     bool // a person has had a hand in it
	dirty       bool // changed since the API server last gave it a resourceVersion
	begun       map[Retry]string
	pods        pods
}

func newMachine(random *rand.Rand, name string, uid int, now time.Time, natureOf func(string) nature) *machine {
	m := &machine{random: random, natureOf: natureOf, running: nodev1.Local, good: nodev1.Local, begun: map[Retry]string{}}
	m.Node = Node{Name: name, UID: uidOf(uid), Labels: map[string]string{"pool": "a"}, Created: now.Add(-time.Hour), Ready: true,
		Minor: []string{"v1.36", "v1.36", "v1.36", "v1.33"}[random.IntN(4)], Arch: []string{"amd64", "amd64", "amd64", "arm64"}[random.IntN(4)],
		Supervised: true, Layered: true, Active: nodev1.Local, Good: nodev1.Local, Reason: nodev1.ReasonLocal, BootID: "boot-0"}
	if random.IntN(5) == 0 {
		m.Labels["gpu"] = "true"
	}
	if zone := []string{"a", "b", "c", ""}[random.IntN(4)]; zone != "" {
		m.Labels["zone"] = zone
	}
	m.ControlPlane = random.IntN(10) == 0
	m.Supervised = random.IntN(30) != 0
	m.Layered = random.IntN(30) != 0
	m.liar, m.heldForPods = random.IntN(40) == 0, random.IntN(8) == 0
	m.deaf, m.environment = random.IntN(60) == 0, random.IntN(50) == 0
	m.pods.stubborn, m.pods.bare = random.IntN(3) == 0, random.IntN(6) == 0
	m.dirty = true
	return m
}

// advance lets the machine do what is due.
func (m *machine) advance(now time.Duration) {
	if m.rebooted > 0 && now >= m.rebooted {
		m.rebooted, m.Ready, m.dirty = 0, m.lost == 0, true
		m.BootID = "boot-" + strconv.FormatInt(int64(now), 36)
	}
	if m.lost > 0 && now >= m.lost && m.Ready {
		m.Ready, m.dirty = false, true
	}
	if m.Supervised && !m.deaf && (m.heardSource != m.Source || m.heardRetry != m.Retry) {
		m.hear(now)
	}
	if m.next != nil && m.consented() {
		m.at = min(m.at, now)
	}
	m.lookAtPods(now)
	for range 8 {
		if m.next == nil || now < m.at {
			return
		}
		do := m.next
		m.next = nil
		do(m)
		m.dirty = true
	}
}

func (m *machine) then(at time.Duration, do func(*machine)) { m.at, m.next = at, do }

// hear takes up another assignment, or the same once more.
func (m *machine) hear(now time.Duration) {
	again := m.heardSource == m.Source
	m.heardSource, m.heardRetry = m.Source, m.Retry
	delay := time.Duration(m.random.IntN(3000)) * time.Millisecond
	source := m.Source
	if source == "" || source == nodev1.Local {
		m.then(now+delay, func(m *machine) { m.runs(now+delay, source) })
		return
	}
	if !strings.HasPrefix(source, Namespace+"/") {
		m.then(now+delay, func(m *machine) { m.says(nodev1.ReasonInvalidAssignment) })
		return
	}
	if m.natureOf(source) == slow {
		delay += time.Duration(m.random.IntN(600)) * time.Second
	}
	if again && m.running == source {
		m.then(now+delay, func(m *machine) {
			if m.good != source {
				m.onTrial(now+delay, source)
				return
			}
			m.says(nodev1.ReasonActive)
			m.Active, m.Good = source, source
		})
		return
	}
	m.then(now+delay, func(m *machine) { m.begin(now+delay, source) })
}

// consented: somebody lets it make the change that it holds for its pods.
func (m *machine) consented() bool {
	given, _ := m.Asks.GivenBy(m.Consent)
	return given
}

// says publishes a reason, about what is assigned.
func (m *machine) says(reason string) {
	if m.Asks = ""; reason == nodev1.ReasonWouldDisrupt {
		m.Asks = nodev1.Approval(fmt.Sprintf("%012x", len(m.heardSource)+1000*int(m.heardSource[len(m.heardSource)-9])))
	}
	m.Reason, m.Observed, m.RetryHeard = reason, m.heardSource, m.heardRetry
	m.Failure = "words of " + m.Name
	if verdict(reason) {
		m.Active, m.Good = m.running, m.good
	}
}

func (m *machine) begin(now time.Duration, source string) {
	switch {
	case m.liar:
		m.says(nodev1.ReasonActive)
		m.Active, m.Good = []string{source, nodev1.Local}[m.random.IntN(2)], source
	case m.natureOf(source) == refused:
		m.says(nodev1.ReasonRefused)
	case m.heldForPods && !m.consented() && !m.pods.gone && m.random.IntN(3) > 0:
		m.says(nodev1.ReasonWouldDisrupt)
		wait := time.Duration(m.random.IntN(1200)) * time.Second
		m.then(now+wait, func(m *machine) { m.begin(now+wait, source) })
	case m.environment && m.random.IntN(2) == 0:
		m.says(nodev1.ReasonEnvironmentFailing)
		m.then(now+90*time.Second, func(m *machine) { m.begin(now+90*time.Second, source) })
	default:
		m.says(nodev1.ReasonApplying)
		m.ChangeBegan = simEpoch.Add(now)
		start := now + time.Duration(m.random.IntN(5000))*time.Millisecond
		m.then(start, func(m *machine) { m.onTrial(start, source) })
	}
}

func (m *machine) onTrial(now time.Duration, source string) {
	m.begun[m.heardRetry] = source
	switch m.natureOf(source) {
	case dying:
		m.says(nodev1.ReasonRolledBack)
		m.then(now+10*time.Second, func(m *machine) { m.says(nodev1.ReasonRejected) })
		return
	case unready:
		m.lost = now + 20*time.Second
	default:
		m.recover(now)
	}
	m.running = source
	m.says(nodev1.ReasonInTrial)
	m.Active, m.Good = source, m.good
	m.promote(now+trialPeriod, source)
}

// promote ends the trial, once the node is Ready: a kubelet that does not renew its Lease earns nothing.
func (m *machine) promote(at time.Duration, source string) {
	m.then(at, func(m *machine) {
		if m.lost > 0 {
			m.promote(at+30*time.Second, source)
			return
		}
		m.good = source
		m.says(nodev1.ReasonActive)
		m.Active, m.Good = source, source
	})
}

// recover: what loses the node no longer runs.
func (m *machine) recover(now time.Duration) {
	if m.lost > 0 && now >= m.lost && m.rebooted == 0 {
		m.Ready = true
	}
	m.lost = 0
}

// runs goes back to the node's own configuration.
func (m *machine) runs(now time.Duration, source string) {
	m.recover(now)
	m.running, m.good = nodev1.Local, nodev1.Local
	m.ChangeBegan = simEpoch.Add(now)
	m.says(nodev1.ReasonLocal)
	m.Observed, m.Active, m.Good = source, nodev1.Local, nodev1.Local
}

func (m *machine) reboot(now time.Duration) {
	m.Ready, m.dirty = false, true
	m.rebooted = now + time.Duration(20+m.random.IntN(200))*time.Second
}

// uidOf is a uid whose order is that of the numbers.
func uidOf(n int) types.UID { return types.UID(fmt.Sprintf("uid-%05d", n)) }
