package controller

import (
	"unique"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// same gives equal texts the same memory. Nodes say what other nodes say: thousands of copies would have to be kept, and fetched for each
// comparison of a decision.
func same(text string) string { return unique.Make(text).Value() }

func sameMap(of map[string]string) map[string]string {
	if of == nil {
		return nil
	}
	kept := make(map[string]string, len(of))
	for key, value := range of {
		kept[same(key)] = same(value)
	}
	return kept
}

// sameWords does so with what was made anew when a Node was read.
func sameWords(n rollout.Node) rollout.Node {
	n.Minor, n.Arch = same(n.Minor), same(n.Arch)
	n.Assigned, n.Active, n.Good = same(n.Assigned), same(n.Active), same(n.Good)
	n.Observed, n.Reason, n.Failure, n.Holds = same(n.Observed), same(n.Reason), same(n.Failure), same(n.Holds)
	n.Mark.Pool, n.Mark.Assignment = same(n.Mark.Pool), same(n.Mark.Assignment)
	n.Drain.Pool, n.Drain.Hash, n.Drain.Over = same(n.Drain.Pool), same(n.Drain.Hash), same(n.Drain.Over)
	n.RetryHeard.Pool, n.RetryHeard.Hash = same(n.RetryHeard.Pool), same(n.RetryHeard.Hash)
	return n
}
