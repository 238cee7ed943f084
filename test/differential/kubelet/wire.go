package main

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
)

// A Case is a node's life, and the restarts that may follow. test/differential has the same types, with the words.
type Case struct {
	Machine, Later Machine
	Now, Then      json.RawMessage
	Node           v1.Node
	Pods           []v1.Pod
	Deleted        []string
	Stale          bool
	Orders         [][]string
}

type Machine struct {
	CPUs     []CPU
	Nodes    []Node
	Storage  int64
	Free     Free
	Capacity Free
}

type CPU struct{ ID, Core, Socket, Node, Cache int }

type Node struct {
	ID        int
	Memory    int64
	HugePages map[string]int64
}

type Free struct{ Memory, NodeFS, NodeInodes, ImageFS, ImageInodes, PIDs, PodsMemory int64 }

// A Result is what the kubelet made of a case.
type Result struct {
	Refused     string
	Now, Then   json.RawMessage
	Node        v1.Node
	Running     []string
	CPUState    string
	MemoryState string
	Restarts    []Restart
}

// A Restart is one of each configuration and order.
type Restart struct {
	Then  bool
	Order int
	Ended string
	Lost  map[string]string
}
