package v1

import (
	"testing"
	"time"
)

func someChange() Change {
	return Change{From: Local, To: "ns/a/kubelet", ResourceVersion: "7", Began: noon, Ended: noon.Add(time.Second), Outcome: ReasonInTrial,
		Phases: []ChangePhase{{"download", "40ms"}, {"wait", "1h0m0.4s"}, {"start", "1.28s"}}}
}

func TestTitleOfAChange(t *testing.T) {
	for want, change := range map[string]func(*Change){
		"local -> ns/a/kubelet: InTrial":                                             func(*Change) {},
		"local -> ns/a/kubelet: under way":                                           func(c *Change) { c.Ended, c.Outcome = time.Time{}, "" },
		"local -> ns/a/kubelet: WouldDisrupt":                                        func(c *Change) { c.Ended, c.Outcome = time.Time{}, "WouldDisrupt" },
		"local -> ns/a/kubelet: InTrial, begun by a supervisor that has ended since": func(c *Change) { c.Resumed = true },
	} {
		c := someChange()
		if change(&c); c.Title() != want {
			t.Errorf("%s, want %s", c.Title(), want)
		}
	}
}

func TestLineOfAChange(t *testing.T) {
	nonsense := Change{Phases: []ChangePhase{{"stop", "-1s"}, {"start", "soon"}}, Phase: "report"}
	for want, c := range map[string]Change{"download 40ms | wait 1h0m0s | start 1.3s": someChange(), "stop ? | start ? | report ...": nonsense, "": {}} {
		if line := c.Line(); line != want {
			t.Errorf("drawn %s, want %s", line, want)
		}
	}
}
