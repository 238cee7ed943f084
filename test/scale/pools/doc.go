// Package pools measures kubelet-supervisor-controller, the program as it is shipped, beside a real API server with many Nodes: what it takes
// of memory and processors, how long a decision takes, and what it writes when nothing changes.
//
// What is real: API server and etcd, the manifests, the controllers, two of them, with the rights of their ServiceAccount. What is not: the
// nodes. They are objects with all that a Node has, and with the words that a supervisor leaves there; one goroutine answers for all of
// them. There are no pods.
//
// MeasureRollout measures revisions of a pool on their way, with the API server killed in the middle of one. There some of the nodes have a
// real supervisor and a fake kubelet, and the others are puppets, each with an identity of its own and the supervisor's own publisher.
//
// Soak lets a pool live through acts at random, and holds all that the API server has noted against the rules (package history).
//
// It promises that every figure is seen from outside: in the process table, in the API server's audit log, in the pool's status as the API
// server has it; but for the time of a decision, which the controller's own metrics tell.
package pools
