// Package controller is the shell around package rollout: it gives [rollout.Decide] what the API server has, and carries out the plan.
//
// There is one queue key and one worker. Each turn reads all pools, layers and nodes from caches, decides over all of them at once, and then does
// what the plan says, in this order. The process may be killed after each step:
//
//	ensure  makes the revisions and variants that are missing; they are immutable
//	status  one compare-and-swap for each pool whose status changes
//	send    at most eight PATCHes of Nodes, each with uid and resourceVersion
//	collect deletes what no pool and no node refers to, of a pool that is deleted after a day
//
// The evictions of a drain take longer than a turn. Each turn says which nodes must be drained, and one goroutine for each of them evicts pods
// until a turn no longer says so.
//
// Each kind of knowledge is a value with methods that know only it: [caches], [nodeView], [poolStatuses], [budgetStatuses], [layerView],
// [ownedObjects], [failedPods], [unbound], [verdicts] and [memory] know what there is; [maker], [collector], [patcher] and [drainer] change it.
// [Controller] alone knows their order.
//
// It promises:
//
//   - A write is fenced: it is sent only while the Lease outlasts the request, by this machine's monotonic clock, and a new leader waits that long
//     before it begins. So two processes that both believe that they lead do not write at the same time.
//   - What was sent counts. The answer to a PATCH is laid over the cache until the cache has caught up with its resourceVersion. Where the answer was
//     lost, the API server is asked before anything else is decided.
//   - A write has succeeded if what was stored is what was sent. Otherwise it is a refusal with a message, of that object alone, with a pause that
//     doubles.
//   - Nothing is written because an object is absent from a cache. A new leader, and one whose watches have failed, compares its caches with a live
//     list first. A layer or a node that is absent from a cache is asked for by name.
//   - A pool's status is written at most once a second. What a write depends on, such as its revision, wave and stop, is in the status before it.
package controller
