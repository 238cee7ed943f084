package core

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// Whatever happens, in whatever order, the rules hold: one action at a time, never two kubelets, decide changes nothing it was
// given, and once everything heals what runs is what is assigned and the Node shows no stale error (rules 1, 2 and 12).
func TestRandomLives(t *testing.T) {
	for seed := range lives(t, 100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			d := newDrive(t, func(s *Settings) {
				s.EditSpread, s.Disruption = time.Duration(random.IntN(2))*time.Minute, []string{"", Hold, Allow}[random.IntN(3)]
				s.Parking = random.IntN(2) == 0
				s.FollowLocal = random.IntN(3) == 0
			}).boot()
			for range 60 {
				d.live(random)
				d.checkRules()
			}
			d.heal()
			d.pass(2 * time.Hour)
			if want := version("healed", "1", "one"); !d.s.runs(want) || !d.s.Child.Healthy {
				t.Errorf("after everything healed: %s, runs %s, did %q", d.shown(), nameOf(d.s.Child.Version), d.did)
			}
			if r, due := Report(d.s); !due || r.Status != "True" || r.Config.Error != "" {
				t.Errorf("after everything healed: %s", d.shown())
			}
		})
	}
}

// lives is how many random lives are lived: LIVES from the environment where it is set, for the long test.
func lives(t *testing.T, usual uint64) uint64 {
	text := os.Getenv("LIVES")
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("LIVES: %v", err)
	}
	return n
}

var contents = []string{"one", "two", "three"}

// live lets one random thing happen.
func (d *drive) live(random *rand.Rand) {
	content := contents[random.IntN(len(contents))]
	switch random.IntN(32) {
	case 0, 1, 2:
		d.assign(content, fmt.Sprint("cm", random.IntN(2)), fmt.Sprint(random.IntN(100)))
	case 3:
		d.hear(Cleared{NodeUID: "node-uid"})
	case 4:
		d.hear(SyncFailed{Text: "x", Problem: Problem{Error: "failed to sync: x", Words: "x"}})
	case 5:
		d.deadly[content] = time.Duration(random.IntN(30_000)) * time.Millisecond
	case 6:
		d.deadly[""] = time.Duration(random.IntN(30_000)) * time.Millisecond
	case 7:
		clear(d.deadly)
	case 8:
		d.hangs[content] = random.IntN(2) == 0
	case 9:
		d.saveErr = []error{nil, errDisk}[random.IntN(2)]
	case 10:
		d.online, d.lease[content] = random.IntN(2) == 0, random.IntN(2) == 0
	case 11:
		d.refuse(content, true)
	case 12:
		d.hear(StopAsked{})
		d.boot()
	case 13:
		d.boot() // the supervisor and the kubelet were killed
	case 14:
		d.hear(Hung{Words: "no watchdog ping"})
	case 15:
		d.effect[content] = []string{"", "same"}[random.IntN(2)]
	case 16:
		d.kills[[]string{"one", "two", "three", "local"}[random.IntN(4)]] = random.IntN(2)
	case 17:
		d.portHeld[[]string{"one", "two", "three", ""}[random.IntN(4)]] = random.IntN(2) == 0
	case 18:
		d.meanwhile(random, Park{})
	case 19:
		d.meanwhile(random, Stop{})
	case 20:
		d.parks[content] = []ParkEnded{{Waits: true}, {}, {Proved: Proved{Proof: Proof{Content: content, Kubelet: testKubelet, Outcome: kubeletconfig.Refused}}}}[random.IntN(3)]
	case 21:
		d.ownFile([]string{"local", "edited"}[random.IntN(2)])
	case 22:
		d.layers("lay"+content, fmt.Sprint(random.IntN(3)))
		d.deadly["lay"+content+"/"+d.own] = time.Duration(random.IntN(300)) * time.Second
	case 25:
		d.bad[[]string{"one", "two", "three", ""}[random.IntN(4)]] = []string{"", "DiskPressure", "Ready"}[random.IntN(3)]
	case 24:
		d.short[content] = random.IntN(2) == 0
	case 23, 31:
		d.say(random)
	case 26:
		d.silent = []string{"", away}[random.IntN(2)]
	case 27:
		d.unsure = []string{"", "the kubelet is a script"}[random.IntN(2)]
		d.obstacles[[]string{content, "local"}[random.IntN(2)]] = [][]Obstacle{nil, {swapIsOn}, {hasExpired, runtimeIsOff}}[random.IntN(3)]
		d.hear(ObstaclesSeen{d.obstacles[content]})
	case 28:
		d.pods = fmt.Sprint("pod-", random.IntN(3), "-")
	case 29:
		d.mute[[]string{"one", "two", "three", "local"}[random.IntN(4)]] = random.IntN(8)
	case 30:
		if random.IntN(2) == 0 {
			d.reload()
		} else {
			d.hear(NodeGone{})
		}
	}
	d.pass(time.Duration(random.IntN(100_000)) * time.Millisecond)
}

// say has a person write a value: the approval that is asked for, with or without +any, an older one, nonsense, or none.
func (d *drive) say(random *rand.Rand) {
	value := ""
	if h := d.s.HoldStatus(); h != nil {
		value = h.Approval
		d.said = append(d.said, value)
	}
	switch random.IntN(5) {
	case 0:
		value = ""
	case 1:
		if len(d.said) > 0 {
			value = d.said[random.IntN(len(d.said))]
		}
	case 2:
		value += "+any"
	}
	d.hear(Consented{Value: value})
}

// meanwhile makes a change, and has something else happen while an action of a kind is under way for it.
func (d *drive) meanwhile(random *rand.Rand, at Action) {
	content := contents[random.IntN(len(contents))]
	if random.IntN(2) == 0 {
		d.kills[content] = 1
		d.say(random)
	}
	d.decide(assigned("cm3", fmt.Sprint(random.IntN(100)), content))
	for range 20 {
		if d.s.Doing == nil {
			return
		}
		if reflect.TypeOf(d.s.Doing) == reflect.TypeOf(at) {
			break
		}
		d.decide(d.answer(d.s.Doing))
	}
	d.decide([]Event{Cleared{NodeUID: "node-uid"}, assigned("cm4", "1", contents[random.IntN(len(contents))]), Hung{Words: "no watchdog ping"},
		ChildExited{Code: 1, Words: "it crashes"}, LocalChanged{Kubelet: testKubelet, Local: "local"}, Retry{}, Unhealthy{Words: "x"}, Consented{}, NodeGone{}}[random.IntN(9)])
	if d.s.Doing != nil { // else it was given up
		d.hear(d.answer(d.s.Doing))
	}
}

func (d *drive) heal() {
	clear(d.deadly)
	clear(d.short)
	clear(d.hangs)
	clear(d.portHeld)
	clear(d.lease)
	clear(d.refused)
	clear(d.kills)
	clear(d.obstacles)
	d.hear(ObstaclesSeen{})
	clear(d.parks)
	clear(d.bad)
	clear(d.mute)
	d.silent, d.unsure = "", ""
	d.saveErr, d.startErr, d.online = nil, nil, true
	d.pass(time.Minute)
	d.assign("one", "healed", "1").hear(Retry{})
}

// checkRules looks at what the last step left.
func (d *drive) checkRules() {
	d.t.Helper()
	s := d.s
	if s.Doing != nil {
		if _, exit := s.Doing.(Exit); !exit {
			d.t.Fatalf("at rest with %T under way", s.Doing)
		}
	}
	if s.Parked != nil || s.Trial.Parked {
		d.t.Fatalf("at rest a kubelet waits: %+v, %+v", s.Parked, s.Trial)
	}
	if heldAfterAdoption(&s) {
		d.t.Fatalf("what is held has moved the assignment: %s", d.shown())
	}
	if s.Trial.Tries < 0 || int(s.Trial.Tries) > s.TrialFailures {
		d.t.Fatalf("%d tries", s.Trial.Tries)
	}
	if d.saveErr == nil && s.Assigned != nil && (d.disk.Assigned == nil || d.disk.Assigned.Source != s.Assigned.Source) && s.SaveError == "" {
		d.t.Fatalf("assigned %s, on disk %s", Describe(s.Assigned), Describe(d.disk.Assigned))
	}
	d.checkChange()
	if r, due := Report(s); due && r.Status == "True" && !(s.Child.Alive && s.Child.Healthy) {
		d.t.Fatalf("True without a healthy kubelet: %s", d.shown())
	}
}

// checkChange: a change is open only as long as what it is to is asked for and does not run, and its phases are no times below zero.
func (d *drive) checkChange() {
	d.t.Helper()
	s, c := d.s, d.s.LastChange
	if c.IsOpen() && (s.settledOn(c.To) || !sameGoal(c.To, s.goal())) || !c.Ended.IsZero() && c.Outcome == "" {
		d.t.Fatalf("the change is told wrongly: %s; %s", d.change(), d.shown())
	}
	for _, took := range []Span{c.Took.Download, c.Took.Wait, c.Took.Preflight, c.Took.Stop, c.Took.Start, c.Took.Report} {
		if took < 0 {
			d.t.Fatalf("a phase took %s: %s", took, d.change())
		}
	}
}

// settledOn: v runs, is healthy, and nothing else is asked for.
func (s *State) settledOn(v *Version) bool {
	return s.Pending == nil && s.Reset == nil && s.Child.Healthy && s.runs(v) && Same(v, s.Assigned)
}

// The core is pure: the same state and event give the same result, and the state is left as it was.
func TestDecideIsPure(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	d := newDrive(t).boot()
	for range 200 {
		d.live(random)
		at, event := Moment{Now: d.now}, []Event{Ticked{}, ChildExited{Code: 1, Words: "x"}, assigned("p", "1", "pure"), Cleared{NodeUID: "node-uid"}, Retry{}}[random.IntN(5)]
		before := fmt.Sprintf("%+v %+v", d.s, d.s.durable())
		first, firstStep := Decide(d.s, at, event)
		if after := fmt.Sprintf("%+v %+v", d.s, d.s.durable()); after != before {
			t.Fatalf("decide changed its argument on %T:\n%s\n%s", event, before, after)
		}
		second, secondStep := Decide(d.s, at, event)
		if !reflect.DeepEqual(first, second) || !reflect.DeepEqual(firstStep, secondStep) {
			t.Fatalf("decide is not a function of %T", event)
		}
	}
}
