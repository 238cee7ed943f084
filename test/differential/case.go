// Package differential holds the forecast against the kubelet's own admission, on machines, configurations and pods that chance makes up.
//
// The kubelet's code is in a program of its own (the folder kubelet), because the product's module never needs k8s.io/kubernetes. A case goes
// to it as one line of JSON. It lets the pods come to a node, restarts its kubelet with either configuration, and tells which pods that costs.
// What [forecast.Of] says of the same node has to name each of these, and must not call a loss certain that did not come.
package differential

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
)

// A Case is a node's life, and the restarts that may follow.
type Case struct {
	Machine Machine         // on which the kubelet that runs has started
	Later   Machine         // as it is at the restart
	Now     json.RawMessage // a KubeletConfiguration
	Then    json.RawMessage
	Node    corev1.Node  // name, labels, taints and version
	Pods    []corev1.Pod // that come to it, in this order
	Deleted []string     // … and are gone before the restart
	Stale   bool         // the managers have not forgotten these yet
	Orders  [][]string   // in which pods of one second come at a restart
}

// A Machine is what a kubelet finds at its start.
type Machine struct {
	CPUs     []CPU
	Nodes    []Node
	Storage  int64
	Free     Free
	Capacity Free
}

// A CPU is one that is online.
type CPU struct{ ID, Core, Socket, Node, Cache int }

// A Node is memory that is near to some CPUs.
type Node struct {
	ID        int
	Memory    int64
	HugePages map[string]int64
}

// Free is what the eviction manager looks at.
type Free struct{ Memory, NodeFS, NodeInodes, ImageFS, ImageInodes, PIDs, PodsMemory int64 }

// A Result is what the kubelet made of a case.
type Result struct {
	Refused     string // why no kubelet starts with it; "": it does
	Now, Then   json.RawMessage
	Node        corev1.Node
	Running     []string
	CPUState    string
	MemoryState string
	Restarts    []Restart
}

// A Restart is one of a configuration, and of an order of the pods.
type Restart struct {
	Then  bool
	Order int
	Ended string            // why the kubelet ended at its start; "": it did not
	Lost  map[string]string // the kubelet's word
}
