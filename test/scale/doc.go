// Package scale measures many supervisors beside one real API server, on one machine: how soon all nodes run what they were assigned,
// what it costs the API server, and whether anything is lost.
//
// What is real: the API server and etcd, the supervisors (processes of the shipped program, or, where those are too many for one
// machine, the same package supervisor run many times in one process, scalehost), their state folders, each node's own identity and
// connection. A scalehost of another commit is measured in the same way.
// What is not: the kubelet, which is test/fakekubelet, a process of its own for every node; its Lease and its Node's conditions, which the
// measurement renews as a kubelet does, the conditions more often; and the disk, which is a tmpfs, for real nodes have one disk each.
//
// It promises that every time is one at which a watch of the Nodes delivered what was awaited, that requests are counted from the API
// server's own audit log, that an error names the nodes that are not as they should be, and that nothing is left on the machine.
package scale
