//go:build linux

package scale

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// Options of Measure, MeasureStorm and MakeMachines.
type Options struct {
	Nodes       int
	Processes   bool          // every supervisor is a process of the shipped program; else all are in one process
	Binary      string        // the shipped program, for processes
	Binaries    []string      // one for each node instead, for processes of several versions
	FakeKubelet string        // what test/fakekubelet builds
	Host        string        // what test/scale/scalehost builds, for nodes that are none
	Namespace   string        // of the ConfigMaps that may be assigned, for nodes that are none; "" is that of Measure
	Steady      time.Duration // how long nothing happens, for each figure of such a time
	Spread      time.Duration // --edit-spread where there is one
	Metrics     int           // for processes: the first one's port for metrics, on loopback, and one more for each; 0: there are none
	Trial       time.Duration // --trial-period; from 100 s on the Lease is asked for as often as with the default
	Outage      time.Duration // how long the API server is away
	Edits       time.Duration // MeasureStorm: how long there are edits
	Quiet       time.Duration // MeasureStorm: without a request; longer than a supervisor waits before it tries again
	Log         io.Writer     // one line per step
}

func (o Options) check() error {
	if o.Nodes < 1 || o.Nodes > maxNodes {
		return fmt.Errorf("%d nodes: give 1 to %d", o.Nodes, maxNodes)
	}
	files := []string{o.FakeKubelet}
	switch {
	case !o.Processes:
		files = append(files, o.Host)
	case o.Binaries == nil:
		files = append(files, o.Binary)
	case len(o.Binaries) != o.Nodes:
		return fmt.Errorf("%d programs for %d nodes", len(o.Binaries), o.Nodes)
	default:
		files = append(files, o.Binaries...)
	}
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("looking for what is measured: %w", err)
		}
	}
	return nil
}

// binary is the program of a node.
func (o Options) binary(n node) string {
	if o.Binaries != nil {
		return o.Binaries[n.Port-firstPort]
	}
	return o.Binary
}

// metrics is where a node's supervisor tells them. One that is started again has the same address.
func (o Options) metrics(n node) string {
	return fmt.Sprintf("127.0.0.1:%d", o.Metrics+n.Port-firstPort)
}

func (o Options) namespace() string {
	if o.Namespace == "" {
		return configNamespace
	}
	return o.Namespace
}

// Figures are what was measured.
type Figures struct {
	Nodes     int
	Processes bool

	Alone    Load // nobody but the measurement's own watch
	Steady   Load // all supervisors, nothing assigned
	Leases   Load // the same, with the Leases renewed
	OnTrial  Load // the same, with every node on trial
	Assigned Wave // one ConfigMap, to all at once
	Edited   Wave // the ConfigMap that all share, without --edit-spread
	Spread   Wave // the same, with it
	Outage   Wave // the same, with the API server away in the middle; from its return on
	Node     Footprint
	Starts   int // of kubelets, of all nodes, that were not asked for
}

// A Load is what the API server had to do in a time in which nothing was changed.
type Load struct {
	Took      time.Duration
	APIServer time.Duration // processor time
	Etcd      time.Duration
	Memory    float64 // MiB of RSS of the API server at its end
	Requests  cluster.Requests
}

// A Wave is a change that reached all nodes.
type Wave struct {
	Load
	Reached []time.Duration // when each node said so, since the begin; sorted
	Busy    float64         // share of this machine's processors that was in use, 0 to 1
}

// A Footprint is what one node's supervisor takes, the mean of all.
type Footprint struct {
	Resident  float64 // MiB; of supervisors in one process, that process's divided by them
	Anonymous float64 // MiB
	Files     float64
}
