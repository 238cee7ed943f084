package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

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

// nodesMain measures one fleet: `bench nodes -nodes=N`.
func nodesMain(ctx context.Context, arguments []string) error {
	own, err := os.Executable()
	if err != nil {
		return err
	}
	o := scale.Options{Host: []string{own}, Log: os.Stderr}
	var results, commit string
	flags := flag.NewFlagSet("bench nodes", flag.ExitOnError)
	flags.StringVar(&results, "json", "", "write the results into this file, for bench scale and bench compare")
	flags.StringVar(&commit, "commit", "unknown", "what was built")
	flags.StringVar(&o.Binary, "binary", besideOwn("kubelet-supervisor"), "the supervisor")
	flags.StringVar(&o.FakeKubelet, "fake-kubelet", besideOwn("fakekubelet"), "what test/fakekubelet builds")
	flags.IntVar(&o.Nodes, "nodes", 10, "how many")
	flags.DurationVar(&o.Steady, "steady", 20*time.Second, "how long nothing happens while idle cost is measured")
	flags.DurationVar(&o.Spread, "spread", time.Minute, "--edit-spread where there is one")
	flags.DurationVar(&o.Trial, "trial", 100*time.Second, "--trial-period; less asks for the Leases more often than the default does")
	flags.DurationVar(&o.Outage, "outage", 15*time.Second, "how long the API server is away")
	_ = flags.Parse(arguments) // exits on errors
	o.Processes = o.Nodes <= processesUpTo
	result := &Result{Commit: commit, Date: time.Now().UTC().Truncate(time.Second), Machine: machineLines(), Rounds: 1, Steady: o.Steady.String(), Window: o.Spread.String()}
	figures, err := scale.Measure(ctx, o)
	if err != nil {
		return err
	}
	result.nodes(figures)
	if err := result.finish(); err != nil {
		return err
	}
	fmt.Print(result.Table(sectionNodes))
	if results == "" {
		return nil
	}
	return result.save(results)
}

// hostMain is what this program is when it hosts the supervisors of a fleet.
func hostMain(ctx context.Context) error { return scale.Host(ctx, os.Stdin, os.Stdout) }

// nodes makes the rows. What is for each node or each change is so by division: there are no samples of it.
func (r *Result) nodes(f *scale.Figures) {
	nodes := float64(f.Nodes)
	one := func(name, unit string, value float64) *Row {
		row := r.row(sectionNodes, name, unit)
		row.add(value)
		return row
	}
	one("nodes", "", nodes).yardstick()
	one("supervisors that are processes of their own", "", map[bool]float64{true: nodes}[f.Processes]).yardstick()
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
		one(wave.name+": requests that failed", "", failures(wave.of.Requests))
		one(wave.name+": requests in the busiest second", "", float64(wave.of.Requests.Peak))
		// What the Leases, and nothing at all, take in the same time is not the change's.
		one(wave.name+": processor time of the API server", "ms/node", beyond(wave.of.APIServer, f.Leases.APIServer, wave.of.Took, f.Leases.Took)/nodes)
		one(wave.name+": processor time of etcd", "ms/node", beyond(wave.of.Etcd, f.Leases.Etcd, wave.of.Took, f.Leases.Took)/nodes)
		one(wave.name+": share of this machine in use", "%", 100*wave.of.Busy).yardstick()
		r.Asked = append(r.Asked, wave.name+": "+wave.of.Requests.String()+failed(wave.of.Requests))
	}
	one("RSS of a supervisor", "MiB", f.Node.Resident)
	one("anonymous memory of a supervisor", "MiB", f.Node.Anonymous)
	one("file descriptors of a supervisor", "", f.Node.Files)
	if f.Node.Goroutines > 0 {
		one("goroutines of a supervisor", "", f.Node.Goroutines)
	}
	one("kubelet starts too many", "", float64(f.Starts)).within(0, "0")
}

func failures(r scale.Requests) (count float64) {
	for _, n := range r.Failed {
		count += float64(n)
	}
	return count
}

// failed names the answers that were no success, by their code.
func failed(r scale.Requests) string {
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

// beyond is what was taken in a time, in ms, less what was taken in another at the same rate; never less than nothing.
func beyond(took, idle, in, idleIn time.Duration) float64 {
	return max(0, milliseconds(took)-rate(idle, idleIn)*in.Seconds())
}

// share gives the sample below which so much of them are, as 0.95.
func share(row *Row, of float64) float64 {
	sorted := slices.Sorted(slices.Values(row.Samples))
	return sorted[min(len(sorted)-1, int(of*float64(len(sorted))))]
}
