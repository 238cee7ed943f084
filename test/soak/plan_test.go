//go:build linux

package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func sequence(seed uint64, rounds int) []string {
	p := newPlan(seed, true)
	var lines []string
	for range rounds {
		steps, mending := p.round()
		for _, s := range append(steps, mending...) {
			lines = append(lines, s.String())
		}
		lines = append(lines, "")
	}
	return lines
}

func TestTheSeedAloneMakesTheSequence(t *testing.T) {
	once, again := sequence(7, 200), sequence(7, 200)
	if !slices.Equal(once, again) {
		t.Error("the same seed made another sequence")
	}
	if slices.Equal(once, sequence(8, 200)) {
		t.Error("another seed made the same sequence")
	}
	if !slices.Equal(once[:len(sequence(7, 20))], sequence(7, 20)) {
		t.Error("a shorter soak is not the beginning of a longer one")
	}
}

// Every action happens, nothing is done that the world does not allow, and every round ends with all mended.
func TestPlannedSteps(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(20) {
		p := newPlan(seed, true)
		p.world.hugePages = true
		for round := range 200 {
			w := p.world.clone()
			w.begin(w.protected)
			steps, mending := p.round()
			for _, s := range append(steps, mending...) {
				seen[s.kind()]++
				if changes := s.put != "" || s.remove != "" || s.label != "" || s.assign != nil || s.retry; changes && !w.reachable() {
					t.Fatalf("seed %d: %s, with the API server out of reach", seed, s)
				}
				if s.harm == mended != w.broken[s.part] {
					t.Fatalf("seed %d: %s, and broken are %v", seed, s, w.broken)
				}
				if protected := round%lifeRounds >= lifeRounds/2; protected && strings.Contains("KILL TERM QUIT", string(s.supervisor)) && s.supervisor != "" {
					t.Fatalf("seed %d: %s in round %d, which is to spare the supervisor", seed, s, round+1)
				}
				if s.pod != "" && (w.podChanged || w.noPod == (s.pod == podDeleted)) {
					t.Fatalf("seed %d: %s, and the pod is not there: %v, changed: %v", seed, s, w.noPod, w.podChanged)
				}
				if first := s.approve == "" || len(steps) > 0 && s.String() == steps[0].String(); !first || s.approve != "" && !w.holds() {
					t.Fatalf("seed %d: %s, and nothing waits for it: %+v", seed, s, w)
				}
				if s.payload.quality == harmful && s.name != "re-create" && w.short {
					t.Fatalf("seed %d: %s, and what runs after an approval is not known", seed, s)
				}
				if s.harm == taken && w.moved {
					t.Fatalf("seed %d: %s, in the middle of a change", seed, s)
				}
				if s.supervisor == "STOP" && w.suspended {
					t.Fatalf("seed %d: %s, which is frozen", seed, s)
				}
				if s.pause < 0 || s.pause > 96*time.Second || s.hold > 90*time.Second {
					t.Fatalf("seed %d: %s", seed, s)
				}
				w.apply(s)
				if w.clock.Abs() > 50*time.Minute {
					t.Fatalf("seed %d: %s, and the clock is %s off", seed, s, w.clock)
				}
			}
			if len(w.broken) > 0 || w.frozen || w.suspended {
				t.Fatalf("seed %d: round %d ends with %v broken, the kubelet frozen: %v, the supervisor: %v", seed, round+1, w.broken, w.frozen, w.suspended)
			}
		}
	}
	for _, a := range append(slices.Clone(actions), clockJump) {
		if !slices.ContainsFunc(kinds(seen), func(kind string) bool { return len(kind) >= len(a.name) && kind[:len(a.name)] == a.name }) {
			t.Errorf("never: %s", a.name)
		}
	}
}

func kinds(seen map[string]int) []string {
	var list []string
	for kind := range seen {
		list = append(list, kind)
	}
	return list
}

func TestWhatStaysForAWhile(t *testing.T) {
	hang := step{part: disk, harm: hung, hold: 10 * time.Second, pause: time.Second}
	freeze := step{supervisor: "STOP", hold: 20 * time.Second, pause: time.Second}
	kill := step{kubelet: "KILL", pause: 2 * time.Second}
	for name, test := range map[string]struct {
		steps []step
		w     world
		last  time.Duration // pause
	}{
		"nothing":             {[]step{kill, kill}, world{}, 2 * time.Second},
		"a disk":              {[]step{kill, hang, kill}, world{broken: map[string]bool{disk: true}}, 9 * time.Second},
		"alone":               {[]step{hang}, world{broken: map[string]bool{disk: true}}, 10 * time.Second},
		"mended meanwhile":    {[]step{hang, kill}, world{}, 2 * time.Second},
		"a supervisor, later": {[]step{hang, freeze, kill}, world{broken: map[string]bool{disk: true}, suspended: true}, 19 * time.Second},
	} {
		steps := slices.Clone(test.steps)
		stay(steps, test.w)
		if got := steps[len(steps)-1].pause; got != test.last {
			t.Errorf("%s: the last pause is %s, want %s", name, got, test.last)
		}
	}
}
