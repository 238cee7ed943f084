//go:build machine

package machine

import (
	"testing"
)

// A clock that is set during a trial decides nothing: renewals of the Lease are told from each other, and not compared with any clock
// (rule 7). Half an hour back makes each look older than the kubelet; an hour forward makes what was said before look lost.
func TestAClockThatIsSetInATrial(t *testing.T) {
	n := runningNode(t)
	n.restartWith("--trial-period=100s") // longer than a Lease may be without a renewal
	for i, seconds := range []int{-1800, 3600} {
		pods := 53 + i
		assignment := n.configMap(t, "clock", withPods(pods))
		n.assign(t, assignment)
		n.says(t, assignment, "InTrial")
		s := n.runs(pods)
		t.Logf("the clock goes by %d s: %s", seconds, n.must("date && date -s @$(($(date +%%s)+(%d)))", seconds))
		n.says(t, assignment, "Active")
		if now := n.runs(pods); now.Child.PID != s.Child.PID {
			t.Errorf("it is another kubelet than before: %s", now.text)
		}
	}
}
