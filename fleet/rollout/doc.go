// Package rollout is the pure core of the fleet controller: which node gets which configuration, when, and when to stop.
//
// One function is all of it. [Decide] takes a [World], everything that is known of pools, layers and nodes, over all pools at once, and
// returns a [Plan]: the objects to make, the status to write, the Nodes to patch, and when to look again. It works in six movements. Each is a
// function that takes what those before it have found out, and returns a value of its own:
//
//	belong    fleet   which pool owns which node, and what is remembered of each (belong, selectors, seen)
//	render    aim     what a pool wants: layers become a revision; its record and its open wave (render, record, trust, wave)
//	classify  crew    the members, which class each is in, and what they come to (classify, class, joining, labels, tally)
//	judge     course  whether to hold (doubt, which ends automatically), to stop (a verdict, which is latched), or whether a wave has passed
//	choose    choice  which nodes to assign and drain now, and which drains end, within the wave and maxUnavailable (room, gate, drain, send)
//	report    Plan    status, conditions, events (conditions, look)
//
// An aim, a crew and the steps of a pool know only themselves and their arguments. A course has the first two, and a turn has all of them.
//
// The words are these. A revision is base and layers, named by the hash of its content. A variant is what a node with a given set of layers
// gets of it: an immutable ConfigMap, named by its content too. The target is the revision that a pool is on its way to, the stable one is
// the last that was completed. A node at risk has been assigned a target that is not completed and has not proven it. The mark, an
// annotation, records the exact assignment that a pool wrote: where the Node says otherwise, a person spoke, and the node is left alone.
//
// A cohort is a kind of nodes: a minor version of the kubelet, an architecture, and a variant. What was completed is proven in the cohorts that
// completed it, and nowhere else (trust).
//
// It promises:
//
//   - It is pure: it reads no clock and changes nothing outside its result (purity_test.go and a linter rule see to that). The wall clock in
//     World.Now is the API server's, and is used for windows, the age of a Node and timestamps only; everything else is elapsed time.
//   - Nothing is counted up and down. All numbers are derived again from the Nodes, so that no slot can leak.
//   - Nothing is written on the strength of absence: what is not known holds.
//   - Only our own cordon is lifted. Whether it is ours, and what for, stands on the Node, so that any process goes on with it.
//   - What this process remembers ([Seen], [Gone]) may be lost at any time: verdicts come later then, never earlier.
//
// The shell around it has to hold to this: it makes revisions and variants before it writes the status, and writes the status before it
// patches a Node, each with uid and resourceVersion; what it has sent it lays over its cache ([Node.With]) until the cache has caught up;
// it patches only while its lease outlasts the request; and it hands Seen, Gone and Clocks of a plan on to the next world.
package rollout
