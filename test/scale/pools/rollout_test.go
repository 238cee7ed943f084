//go:build linux

package pools

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// after is a moment of a test.
func after(seconds int) time.Time { return time.Unix(1000+int64(seconds), 0) }

func toNode(name string, seconds, code int) request {
	return request{name: name, received: after(seconds), answered: after(seconds), code: code}
}

// What must not be is seen: a wave that is too early, a Node that is written twice, too many at once.
func TestAStageIsHeldToItsLimits(t *testing.T) {
	told := map[string]telling{"a": {after(1), after(5)}, "b": {after(11), after(15)}, "c": {after(11), after(15)}, "d": {after(21), after(25)}}
	fine := []request{toNode("a", 0, 200), toNode("b", 10, 409), toNode("b", 10, 200), toNode("c", 10, 200), toNode("d", 20, 504), toNode("d", 20, 200)}
	l := limits{waves: []int{1, 3, 4}, unavailable: 2, settle: 2 * time.Second}
	for name, c := range map[string]struct {
		patches []request
		limits  limits
		wrong   string
	}{
		"all is well":     {fine, l, ""},
		"twice":           {append(fine[:len(fine):len(fine)], toNode("a", 22, 200)), l, "twice [a]"},
		"too early":       {append(fine[:4:4], toNode("d", 14, 200)), limits{l.waves, 4, l.settle}, "exceeded [wave 3 began 1s before"},
		"too many":        {fine, limits{l.waves, 1, l.settle}, "over [c was assigned to while 2 were unavailable]"},
		"not settled yet": {fine, limits{l.waves, 2, 10 * time.Second}, "over [c was assigned to while 3 were unavailable d was"},
	} {
		r, s := &rolling{killed: after(20)}, &Stage{}
		sent := r.assigned(s, c.patches, told)
		s.checkWaves(sent, told, c.limits.waves)
		s.checkUnavailable(sent, told, c.limits)
		var seen string
		for what, words := range map[string][]string{"twice": s.Twice, "exceeded": s.Exceeded, "over": s.OverLimit} {
			if len(words) > 0 {
				seen += fmt.Sprintf("%s %v", what, words)
			}
		}
		if !strings.HasPrefix(seen, c.wrong) || c.wrong == "" && seen != "" {
			t.Errorf("%s: seen was %q", name, seen)
		}
	}
	r, s := &rolling{killed: after(20)}, &Stage{}
	if sent := r.assigned(s, fine[:4], told); len(sent) != 4 || s.Unnoted != 1 || sent[3].name != "d" || s.Conflicts != 1 {
		t.Errorf("the one over which the API server was killed is not among %v: %+v", sent, s)
	}
}

// Of a refused revision only the first PATCH of each Node assigns it.
func TestWhatComesAfterAVerdict(t *testing.T) {
	f := refusalOf([]request{toNode("a", 1, 200), toNode("b", 2, 409), toNode("b", 3, 200), toNode("c", 6, 200), toNode("d", 7, 500), toNode("a", 9, 200)}, after(4))
	if f != (Refusal{Assigned: 3, After: 1, Last: 2 * time.Second}) {
		t.Errorf("seen was %+v", f)
	}
}
