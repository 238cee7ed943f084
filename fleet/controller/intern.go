package controller

import (
	"unique"

	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
)

// intern gives equal texts the same memory. Most Nodes have the same labels and values, whose thousands of copies would fill memory, and would be fetched
// for each comparison.
func intern(text string) string { return unique.Make(text).Value() }

func internMap(of map[string]string) map[string]string {
	if of == nil {
		return nil
	}
	kept := make(map[string]string, len(of))
	for key, value := range of {
		kept[intern(key)] = intern(value)
	}
	return kept
}

// internNode does so with the texts that reading a Node has made.
func internNode(n rollout.Node) rollout.Node {
	n.Minor, n.Arch = intern(n.Minor), intern(n.Arch)
	n.Assigned, n.Active, n.Good = intern(n.Assigned), intern(n.Active), intern(n.Good)
	n.Observed, n.Reason, n.Failure, n.Holds = intern(n.Observed), intern(n.Reason), intern(n.Failure), intern(n.Holds)
	n.Mark.Pool, n.Mark.Assignment = intern(n.Mark.Pool), intern(n.Mark.Assignment)
	n.Drain.Pool, n.Drain.Hash, n.Drain.Over = intern(n.Drain.Pool), intern(n.Drain.Hash), intern(n.Drain.Over)
	n.RetryHeard.Pool, n.RetryHeard.Hash = intern(n.RetryHeard.Pool), intern(n.RetryHeard.Hash)
	return n
}
