//go:build linux

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/scale"
)

const (
	sectionNodes = "nodes"
	// processesUpTo is how many supervisors are processes of their own; more are in one process, for this machine's memory.
	processesUpTo = 100
)

// The waves, as the rows are named.
const (
	waveAssigned = "one ConfigMap assigned to all"
	waveEdited   = "in-place edit, no spread"
	waveSpread   = "in-place edit, spread"
	waveOutage   = "in-place edit, spread, API server away"
)

// measureNodes measures so many nodes at once.
func measureNodes(ctx context.Context, o options) (*Result, error) {
	// A shorter trial would ask for the Leases more often than the default does.
	of := scale.Options{Host: o.Host, Log: o.Log, Binary: o.Binary, FakeKubelet: o.FakeKubelet,
		Nodes: o.Nodes, Processes: o.Nodes <= processesUpTo, Steady: o.Steady, Spread: time.Minute, Trial: 100 * time.Second, Outage: 15 * time.Second}
	result := newResult(o, newestParts)
	result.Window = of.Spread.String()
	figures, err := scale.Measure(ctx, of)
	if err != nil {
		return nil, err
	}
	result.nodes(figures)
	return result, result.finish()
}

// nodes makes the rows. What is for each node or each change is so by division: there are no samples of it.
func (r *Result) nodes(f *scale.Figures) {
	nodes := float64(f.Nodes)
	one := func(name, unit string, value float64) *Row {
		row := r.row(sectionNodes, name, unit)
		row.add(value)
		return row
	}
	one("nodes", "", nodes)
	one("supervisors that are processes of their own", "", map[bool]float64{true: nodes}[f.Processes])
	for _, load := range []struct {
		name string
		of   scale.Load
	}{{"nobody", f.Alone}, {"supervisors, steady", f.Steady}, {"supervisors and Leases", f.Leases}, {"all on trial, and Leases", f.OnTrial}} {
		one(load.name+": processor time of the API server", "ms/s", rate(load.of.APIServer, load.of.Took))
		one(load.name+": processor time of etcd", "ms/s", rate(load.of.Etcd, load.of.Took))
		one(load.name+": supervisors' requests", "/s", float64(load.of.Requests.Total())/load.of.Took.Seconds())
		one(load.name+": RSS of the API server", "MiB", load.of.Memory)
	}
	for _, wave := range []struct {
		name string
		of   scale.Wave
	}{{waveAssigned, f.Assigned}, {waveEdited, f.Edited}, {waveSpread, f.Spread}, {waveOutage, f.Outage}} {
		row := r.row(sectionNodes, wave.name+": until a node runs it", "s")
		for _, reached := range wave.of.Reached {
			row.add(reached.Round(time.Millisecond).Seconds())
		}
		one(wave.name+": requests", "/node", float64(wave.of.Requests.Total())/nodes)
		one(wave.name+": requests but for looks at Leases", "/node", float64(wave.of.Requests.Total()-wave.of.Requests.Kinds["get leases"])/nodes)
		failures := 0
		for _, n := range wave.of.Requests.Failed {
			failures += n
		}
		one(wave.name+": requests that failed", "", float64(failures))
		one(wave.name+": requests in the busiest second", "", float64(wave.of.Requests.Peak))
		// What the Leases, and nothing at all, take in the same time is not the change's.
		beyond := func(took, idle time.Duration) float64 {
			return max(0, milliseconds(took)-rate(idle, f.Leases.Took)*wave.of.Took.Seconds()) / nodes
		}
		one(wave.name+": processor time of the API server", "ms/node", beyond(wave.of.APIServer, f.Leases.APIServer))
		one(wave.name+": processor time of etcd", "ms/node", beyond(wave.of.Etcd, f.Leases.Etcd))
		one(wave.name+": share of this machine in use", "%", 100*wave.of.Busy)
		r.Asked = append(r.Asked, wave.name+": "+wave.of.Requests.String()+failed(wave.of.Requests))
	}
	one("RSS of a supervisor", "MiB", f.Node.Resident)
	one("anonymous memory of a supervisor", "MiB", f.Node.Anonymous)
	one("file descriptors of a supervisor", "", f.Node.Files)
	one("kubelet starts too many", "", float64(f.Starts)).within(0, "0")
}

// failed names the answers that were no success, by their code.
func failed(r cluster.Requests) string {
	var words []string
	for _, code := range slices.Sorted(maps.Keys(r.Failed)) {
		words = append(words, fmt.Sprintf("%d × %d", r.Failed[code], code))
	}
	if len(words) == 0 {
		return ""
	}
	return "; of these failed: " + strings.Join(words, ", ")
}

// rate is in ms per second.
func rate(took, of time.Duration) float64 { return milliseconds(took) / of.Seconds() }
