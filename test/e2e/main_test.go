//go:build e2e

// Package e2e tests kubelet-supervisor on the real parts: the binary that is shipped, the parent of a real kubelet, on a real
// API server.
//
// A test asks for a node (sharedNode or nodeOf: a cluster of one node, at first without a Node object and with no
// kubelet), starts the supervisor in it (startSupervisor), assigns configurations and waits (awaitNode, await) for what the Node
// and the kubelet then say. Nothing sleeps: every wait polls, has a generous deadline for noisy machines, and tells what it saw
// last when it fails. ConfigMaps have names of their own per test (putConfigMap), folders too; the Node object, its annotations
// and the nodes' right to read ConfigMaps start anew with each test. So tests need no order, but run one at a time: t.Parallel
// has no place here, for the node has one kubelet.
//
// What a supervisor and its kubelet said last is printed when a test fails. At its end each test asks the supervisor to stop,
// and fails unless it exits with 0 and leaves no kubelet.
//
// The binary is built once, or given by KUBELET_SUPERVISOR_TEST_BINARY. It needs root, and KUBELET_SUPERVISOR_PARTS.
package e2e

import (
	"fmt"
	"os"
	"testing"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// scratch holds what the tests build; it is removed at the end.
var scratch string

func TestMain(m *testing.M) {
	if address := os.Getenv(holdVariable); address != "" {
		os.Exit(hold(address))
	}
	os.Exit(func() int {
		var err error
		if scratch, err = os.MkdirTemp("", "kubelet-supervisor-e2e-"); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(scratch)
		return cluster.Main(m)
	}())
}
