package core

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// statesPage has the diagram of the states that a configuration goes through.
const statesPage = "../../docs/why/states.md"

var verdictNames = map[VerdictKind]string{
	VerdictUnknown: "Unknown", VerdictGood: "Good", VerdictHeld: "Held", VerdictUnreadable: "Unreadable", VerdictUnrenderable: "Unrenderable",
	VerdictRefused: "Refused", VerdictRejected: "Rejected", VerdictSuspected: "Suspected",
}

// The diagram has the arrows that random lives go along, and no others.
func TestStates(t *testing.T) {
	page, err := os.ReadFile(statesPage)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{} // with the events
	for seed := range uint64(15) {
		walk(t, seed, seen)
	}
	drawn := map[string]bool{}
	for _, arrow := range regexp.MustCompile(`(?m)^ *(\w+ --> \w+): (.*)$`).FindAllStringSubmatch(string(page), -1) {
		drawn[arrow[1]] = true
		if isRare := strings.HasSuffix(arrow[2], "(rare)"); !isRare && seen[arrow[1]] == "" {
			t.Errorf("%s is drawn and was not seen", arrow[1])
		}
	}
	for _, arrow := range slices.Sorted(maps.Keys(seen)) {
		if !drawn[arrow] {
			t.Errorf("%s is seen and not drawn:%s", arrow, seen[arrow])
		}
	}
}

// walk lives one random life, with files that cannot be made and checkpoints that cannot be read, and notes the arrows.
func walk(t *testing.T, seed uint64, seen map[string]string) {
	random := rand.New(rand.NewPCG(seed, 3))
	d := newDrive(t, func(s *Settings) {
		s.EditSpread, s.Disruption = time.Duration(random.IntN(2))*time.Minute, []string{"", Hold, Allow}[random.IntN(3)]
		s.Parking, s.FollowLocal = random.IntN(2) == 0, random.IntN(3) == 0
	})
	d.watch = func(before, after *State, e Event) {
		if a, b := before.goal(), after.goal(); a != nil && sameGoal(a, b) {
			if arrow := arrowOf(before, after); arrow != "" {
				seen[arrow] += fmt.Sprintf(" %T", e)
			}
		}
	}
	d.boot()
	for range 60 {
		switch random.IntN(8) {
		case 0: // for a moment there is no room for files
			d.startErr = map[string]error{contents[random.IntN(len(contents))]: errDisk}
			d.live(random)
			d.startErr = nil
		case 1:
			d.hear(Retry{})
		case 3:
			d.pass(15 * time.Minute)
		case 2:
			if d.disk.Assigned != nil && d.disk.Assigned.Content != "" {
				lost := *d.disk.Assigned
				lost.Content = ""
				whole := Assigned{Version: *d.disk.Assigned, Text: d.disk.Text, NodeUID: d.disk.NodeUID}
				d.disk.Assigned = &lost
				d.boot().hear(whole)
			}
		}
		d.live(random)
	}
}

// arrowOf is the arrow between the verdicts on the newest configuration that was asked for; empty = there is none. In Fit nothing speaks
// against it.
func arrowOf(before, after *State) string {
	was, is := kindOf(before), kindOf(after)
	from, to := verdictNames[was], verdictNames[is]
	switch wasFit, isFit := was < VerdictUnreadable, is < VerdictUnreadable; {
	case wasFit && !isFit:
		from = "Fit"
	case isFit && !wasFit:
		to = "Fit"
	}
	if from == to {
		return ""
	}
	return from + " --> " + to
}

func kindOf(s *State) VerdictKind {
	if newestVerdict(s).Kind == VerdictHeld {
		return VerdictHeld
	}
	return verdict(s, s.goal()).Kind
}
