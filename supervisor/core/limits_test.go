package core

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/kubeletconfig"
)

// limited plays the cgroup of a node's system, which the kubelet, its supervisor and all fallbacks are in. A kubelet that enforces a reservation
// sets the limit, and what is started below it dies.
type limited struct {
	*drive
	reserves map[string]string // by content ("" = local): what its kubelet makes of the limit; absent = it leaves it alone
	value    string            // of the limit
	gone     bool              // with its cgroup
	broken   bool              // writing fails
}

var systemMemory = Limit{File: "system.slice/memory.max"}

const tooLittle = "28311552"

func newLimited(t *testing.T) *limited {
	l := &limited{drive: newDrive(t), reserves: map[string]string{"tight": tooLittle}, value: "max"}
	l.starts = func(do Start) (Event, bool) {
		if do.Waits || do.Unlimited {
			return nil, false
		}
		seen := []LimitSeen{{Limit: systemMemory, Value: l.value, Gone: l.gone}}
		if sets := l.reserves[contentOf(do.Version)]; sets != "" {
			seen[0].Sets = []string{sets}
		}
		if PlanLimits(l.s.Limits, seen, l.bootID).Idle(l.s.Limits) {
			return nil, false
		}
		return Started{Limits: seen}, true
	}
	l.writes = func(do WriteBack) LimitsWrittenBack {
		if l.broken {
			return LimitsWrittenBack{Err: errors.New("read-only file system")}
		}
		l.value = do.Limits[0].Before
		return LimitsWrittenBack{}
	}
	l.begins = func(do Start) {
		content := contentOf(do.Version)
		if sets := l.reserves[content]; sets != "" {
			if !l.recorded(sets) && l.saveErr == nil {
				t.Errorf("%q sets %s, on the disk is %+v", content, sets, l.disk.Limits)
			}
			l.value = sets
		}
		delete(l.deadly, content)
		if l.value == tooLittle {
			l.deadly[content] = 600 * time.Millisecond // killed for want of memory
		}
	}
	return l
}

// recorded tells whether the disk has what was there before the limit was set to a value.
func (l *limited) recorded(value string) bool {
	return slices.ContainsFunc(l.disk.Limits, func(k KeptLimit) bool {
		return k.Limit == systemMemory && k.BootID == l.bootID && slices.Contains(k.Wrote, value)
	})
}

func (l *limited) expectLimit(want string, recorded int) {
	l.t.Helper()
	if l.value != want || len(l.s.Limits) != recorded || !reflect.DeepEqual(l.s.Limits, l.disk.Limits) {
		l.t.Errorf("the limit is %s, want %s; recorded %+v, on the disk %+v", l.value, want, l.s.Limits, l.disk.Limits)
	}
}

// What a configuration has limited is as before when it goes, whatever takes its place, and before that is started.
func TestLimitsGoWithWhatSetThem(t *testing.T) {
	const enough = "1073741824"
	begin := func(t *testing.T) *limited {
		l := newLimited(t)
		l.reserves["roomy"], l.reserves["wide"] = enough, "2147483648"
		l.boot().pass(time.Minute)
		return l
	}
	t.Run("rolled back, because everything in the cgroup is killed", func(t *testing.T) {
		l := begin(t)
		l.fresh().assign("tight").pass(10 * time.Second).expect("assigned=tight@1 active=- lkg=- False RolledBack run config")
		l.expectEvents("KubeletConfigChanged", "KubeletConfigRolledBack", "KubeletLimitsWrittenBack")
		l.expectLimit("max", 0)
		l.pass(time.Minute).expect("assigned=tight@1 active=- lkg=- False Rejected run config")
	})
	t.Run("rolled back to one that limits less", func(t *testing.T) {
		l := begin(t)
		l.good("roomy").fresh().assign("tight").pass(time.Minute).expect("assigned=tight@1 active=roomy@1 lkg=roomy@1 False Rejected run config")
		l.expectLimit(enough, 1)
		l.hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute).expect(nothing)
		l.expectLimit("max", 0)
	})
	t.Run("reset after its trial", func(t *testing.T) {
		l := begin(t)
		l.good("roomy").fresh().hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute).expect(nothing)
		l.expectDone("stop", "start local", "write back", "start local")
		l.expectLimit("max", 0)
	})
	t.Run("followed by one that sets none, and by one that sets another", func(t *testing.T) {
		l := begin(t)
		l.good("roomy").assign("good").pass(time.Minute)
		l.expectLimit("max", 0)
		l.assign("roomy").pass(time.Minute)
		l.expectLimit(enough, 1)
		l.fresh().assign("wide").pass(time.Minute).expectDone("prove wide", "stop", "start wide", "write back", "start wide")
		l.expectLimit("2147483648", 1)
		l.hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute)
		l.expectLimit("max", 0)
	})
	t.Run("started again with the same limit, nothing is looked at twice", func(t *testing.T) {
		l := begin(t)
		l.good("roomy").fresh().hear(ChildExited{Code: 1, Words: "boom"}).pass(time.Minute).expectDone("start roomy")
		l.expectLimit(enough, 1)
	})
	t.Run("another cluster", func(t *testing.T) {
		l := begin(t)
		l.cluster = []string{"key-1"}
		l.hear(ClusterSeen{Keys: l.cluster}).good("roomy").hear(ClusterSeen{Keys: []string{"key-2"}}).pass(time.Minute)
		l.expectLimit("max", 0)
	})
	t.Run("another is to be started by the time when they were looked at", func(t *testing.T) {
		l := begin(t)
		l.decide(assigned("tight", "1", "tight"))
		l.until("the record", func(do Action) bool { save, is := do.(Save); return is && len(save.Durable.Limits) > 0 })
		l.fresh().decide(Cleared{NodeUID: "node-uid"})
		l.hear(l.answer(l.s.Doing)).pass(time.Minute).expect(nothing).expectDone("prove local", "start local", "start local")
		l.expectLimit("max", 0)
	})
	t.Run("local sets it itself", func(t *testing.T) {
		l := newLimited(t)
		l.reserves[""] = enough
		l.boot().pass(time.Minute).assign("tight").pass(time.Minute).expect("assigned=tight@1 active=- lkg=- False Rejected run config")
		l.expectLimit(enough, 1)
	})
}

// Only what is still the kubelet's is written back.
func TestALimitThatSomebodyElseHasSet(t *testing.T) {
	begin := func(t *testing.T) *limited {
		l := newLimited(t)
		l.reserves["roomy"], l.reserves["wide"] = "1073741824", "2147483648"
		l.boot().pass(time.Minute).good("roomy").fresh()
		return l
	}
	t.Run("it stays, and that is told", func(t *testing.T) {
		l := begin(t)
		l.value = "500"
		l.hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute).expectEvents("KubeletConfigChanged", "KubeletLimitsChanged")
		l.expectLimit("500", 0)
		if want := "system.slice/memory.max is 500, which no kubelet has set: it is left as it is"; l.told[1].Message != want {
			t.Errorf("told %q", l.told[1].Message)
		}
	})
	t.Run("it is what was there before the next that sets it", func(t *testing.T) {
		l := begin(t)
		l.value = "500"
		l.assign("wide").pass(time.Minute)
		l.expectLimit("2147483648", 1)
		l.hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute)
		l.expectLimit("500", 0)
	})
	t.Run("it is what the kubelet before has set", func(t *testing.T) {
		l := begin(t)
		l.value = "500"
		l.assign("wide").pass(time.Minute)
		l.value = "1073741824"
		l.hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute)
		l.expectLimit("1073741824", 0)
	})
	t.Run("it is as before already", func(t *testing.T) {
		l := begin(t)
		l.value = "max"
		l.hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute).expectDone("stop", "start local", "start local").expectEvents("KubeletConfigChanged")
		l.expectLimit("max", 0)
	})
	t.Run("it was there before, and a kubelet has set the same", func(t *testing.T) {
		l := newLimited(t)
		l.reserves["roomy"], l.value = "1073741824", "1073741824"
		l.boot().pass(time.Minute).good("roomy").fresh().hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute).expectEvents("KubeletConfigChanged")
		l.expectLimit("1073741824", 0)
	})
	t.Run("its cgroup is gone", func(t *testing.T) {
		l := begin(t)
		l.gone = true
		l.hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute).expectEvents("KubeletConfigChanged")
		l.expectLimit("1073741824", 0)
	})
}

// The supervisor dies between any two steps of a change to a configuration with limits, and of the way back.
func TestACrashWhileLimitsAreWrittenBack(t *testing.T) {
	for _, way := range []struct {
		name  string
		start func(*limited)
		want  string
	}{
		{"rolled back", func(l *limited) { l.decide(assigned("tight", "1", "tight")) }, "assigned=tight@1 active=- lkg=- False Rejected run config"},
		{"reset", func(l *limited) {
			l.reserves["roomy"] = "1073741824"
			l.good("roomy").fresh().decide(Cleared{NodeUID: "node-uid"})
		}, nothing},
	} {
		for steps := range 60 {
			for _, carriedOut := range []bool{false, true} { // killed before the action, or after it and before its answer
				l := newLimited(t)
				l.boot().pass(time.Minute)
				way.start(l)
				for range steps {
					if answer := l.answer(l.step.Do); answer != nil {
						l.decide(answer)
						continue
					}
					at, is := l.next(l.now + time.Second)
					l.now = at
					l.decide(is)
				}
				if carriedOut {
					l.answer(l.step.Do)
				}
				l.boot().pass(2 * time.Minute)
				if way.name == "reset" {
					l.hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute).expect(nothing)
				} else {
					l.assign("tight").pass(2 * time.Minute).expect(way.want)
				}
				if l.expectLimit("max", 0); t.Failed() {
					t.Fatalf("%s, killed after %d steps (%t)", way.name, steps, carriedOut)
				}
			}
		}
	}
}

// After a boot there are no limits of before it, and none is made of what was recorded.
func TestLimitsOfAnotherBoot(t *testing.T) {
	for _, boot := range []string{"boot-2", ""} {
		l := newLimited(t)
		l.reserves["roomy"] = "1073741824"
		if boot == "" { // never known
			l.bootID = ""
		}
		l.boot().pass(time.Minute).good("roomy")
		l.bootID, l.value = boot, "1073741824" // by whoever limits it at a boot
		l.disk.Assigned, l.disk.LastKnownGood = nil, nil
		l.boot().pass(time.Minute)
		l.expectLimit("1073741824", 0)
	}
}

// What keeps a limit from being written back keeps no kubelet from being started, and is told and tried again.
func TestALimitThatStays(t *testing.T) {
	l := newLimited(t)
	l.boot().pass(time.Minute)
	l.broken = true
	l.fresh().assign("tight").pass(5 * time.Second)
	l.expectMessage("a limit that a kubelet has set cannot be written back: read-only file system")
	if l.value != tooLittle || !l.recorded(tooLittle) {
		t.Errorf("the limit is %s, recorded %+v", l.value, l.disk.Limits)
	}
	l.broken = false
	l.pass(2 * time.Minute)
	l.expectLimit("max", 0)
}

// A disk that cannot be written keeps no limit (rule 3).
func TestLimitsGoWithoutADisk(t *testing.T) {
	l := newLimited(t)
	l.reserves["roomy"] = "1073741824"
	l.boot().pass(time.Minute).good("roomy")
	l.saveErr = errDisk
	l.deadly["roomy"] = 0
	l.hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute)
	if l.value != "max" || l.s.Child.Version != nil {
		t.Errorf("the limit is %s, runs %s", l.value, nameOf(l.s.Child.Version))
	}
}

// A record has a bound, and what has no room in it goes unrecorded rather than the oldest.
func TestTheRecordOfLimitsIsBounded(t *testing.T) {
	var seen []LimitSeen
	for i := range storedLimits + 5 {
		seen = append(seen, LimitSeen{Limit: Limit{File: string(rune('a'+i%26)) + string(rune('a'+i/26))}, Value: "max", Sets: []string{"1"}})
	}
	plan := PlanLimits(nil, seen, "boot-1")
	if len(plan.Kept) != storedLimits || plan.Kept[0].Limit != seen[0].Limit {
		t.Errorf("%d kept, the first is %+v", len(plan.Kept), plan.Kept[0])
	}
	if again := PlanLimits(plan.Kept, seen, "boot-1"); !again.Idle(plan.Kept) {
		t.Error("what has no room keeps the kubelet from being started")
	}
}

// crowd has no process started that is in a cgroup with too few of them: no kubelet, and no pre-flight.
func (l *limited) crowd() {
	starts := l.starts
	l.starts = func(do Start) (Event, bool) {
		if answer, is := starts(do); is {
			return answer, true
		}
		if l.value == tooLittle {
			return Started{Err: errCrowded, NoRoom: true, Delay: time.Second}, true
		}
		return nil, false
	}
	l.begins = func(do Start) {
		if sets := l.reserves[contentOf(do.Version)]; sets != "" {
			l.value = sets
		}
		full := Proof{Outcome: kubeletconfig.Environment, Words: errCrowded.Error()}
		if delete(l.refused, "local"); l.value == tooLittle {
			l.refused["local"] = full
		}
	}
}

var errCrowded = errors.New("fork/exec: resource temporarily unavailable")

// A start that finds no room for a process is one of the configuration that has limited the cgroup: in a trial a try, and later an exit.
func TestAKubeletThatCannotBeForked(t *testing.T) {
	t.Run("in its trial", func(t *testing.T) {
		l := newLimited(t)
		l.crowd()
		l.boot().pass(time.Minute).assign("tight").pass(5 * time.Second).hear(ChildExited{Code: -1, Words: "killed", Delay: time.Second})
		l.pass(time.Minute).expect("assigned=tight@1 active=- lkg=- False Rejected run config")
		l.expectLimit("max", 0)
	})
	t.Run("after it", func(t *testing.T) {
		l := newLimited(t)
		l.crowd()
		l.boot().pass(time.Minute).good("tight").fresh().hear(ChildExited{Code: -1, Words: "killed", Delay: time.Second})
		l.pass(time.Minute)
		if l.value != "max" || !l.s.Child.Healthy || l.s.Child.Version != nil {
			t.Errorf("the limit is %s, %s", l.value, l.shown())
		}
	})
	t.Run("where no kubelet has limited anything it is the environment", func(t *testing.T) {
		l := newLimited(t)
		l.crowd()
		l.value = tooLittle
		l.boot().assign("good").pass(time.Minute)
		if l.s.Trial.Tries > 1 || len(l.s.Rejected) > 0 {
			t.Errorf("%d tries, rejected %+v", l.s.Trial.Tries, l.s.Rejected)
		}
	})
	t.Run("where the host has no room, and the pre-flight had, it is the environment as well", func(t *testing.T) {
		l := newLimited(t)
		l.boot().pass(time.Minute).good("good").fresh()
		l.starts = func(Start) (Event, bool) { return Started{Err: errCrowded, NoRoom: true, Delay: time.Second}, true }
		l.assign("better").pass(time.Hour)
		if l.s.Trial.Tries > 1 || len(l.s.Rejected)+len(l.s.Suspects) > 0 {
			t.Errorf("%d tries, rejected %+v, suspects %+v", l.s.Trial.Tries, l.s.Rejected, l.s.Suspects)
		}
	})
	t.Run("a removal needs no pre-flight that cannot be made", func(t *testing.T) {
		l := newLimited(t)
		l.crowd()
		l.boot().pass(time.Minute).good("tight").fresh()
		l.s.Proofs = without(l.s.Proofs, func(p Proof) bool { return p.Content == "local" })
		l.hear(Cleared{NodeUID: "node-uid"}).pass(time.Minute).expect(nothing)
		l.expectLimit("max", 0)
	})
}
