// Package controller is the shell around package rollout: it shows it the world, and carries out what it says.
//
// There is one queue key and one worker. Each turn reads all pools, layers and nodes from caches, lets [rollout.Decide] decide over all of
// them at once, and then does what the plan says, in this order, each step of which may be the last:
//
//	keep    revisions and variants that are missing are made; they are immutable
//	status  one compare-and-swap for each pool whose status changes
//	send    at most eight PATCHes of Nodes, each with uid and resourceVersion
//	collect what nothing names any more is deleted, and a day after its pool what no Node names
//
// Beside the turns there is one thing that takes longer than a turn: the evictions of a drain. Each turn says from which nodes pods are to be
// evicted, and a goroutine for each of these does it until a turn no longer says so.
//
// It promises:
//
//   - What writes is fenced: it is sent only while the Lease outlasts the request, by this machine's monotonic clock, and a new leader waits
//     that long before it begins. So two processes that both believe they lead do not meet.
//   - What was sent counts. The answer to a PATCH is laid over the cache until the cache has caught up with its resourceVersion; where the
//     answer was lost, the API server is asked before anything else is decided.
//   - A write has succeeded where what was stored is what was sent. Else it is a refusal with words, of that object alone, with a pause that doubles.
//   - Nothing is written on the strength of absence. A new leader, and one whose watches have failed, compares its caches with a live list
//     first. A layer or a node that is absent from a cache is asked for by name.
//   - A pool's status is written once a second at most. What a write rests on, such as its revision, wave and stop, is in the status before.
package controller
