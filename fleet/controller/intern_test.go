package controller

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// What two Nodes say alike is kept once.
func TestEqualWordsAreKeptOnce(t *testing.T) {
	read := func() rollout.Node {
		n := full()
		for key, value := range n.Annotations {
			n.Annotations[key] = strings.Clone(value)
		}
		n.Labels["pool"] = strings.Clone(n.Labels["pool"])
		return internNode(rollout.ReadNode(trimmed(n)))
	}
	a, b := read(), read()
	for what, pair := range map[string][2]string{"the source": {a.Source, b.Source}, "the mark": {a.Mark.Assignment, b.Mark.Assignment},
		"the retry": {a.Retry.Hash, b.Retry.Hash}, "what is observed": {a.Observed, b.Observed}, "the retry that was heard": {a.RetryHeard.Hash, b.RetryHeard.Hash}, "the reason": {a.Reason, b.Reason},
		"the failure": {a.Failure, b.Failure}, "what holds it": {a.Holds, b.Holds}, "what is active": {a.Active, b.Active},
		"the version": {a.Minor, b.Minor}, "a label": {a.Labels["pool"], b.Labels["pool"]}} {
		if pair[0] == "" || pair[0] != pair[1] || unsafe.StringData(pair[0]) != unsafe.StringData(pair[1]) {
			t.Errorf("%s is kept twice: %q", what, pair)
		}
	}
}
