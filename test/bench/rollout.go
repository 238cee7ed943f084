//go:build linux

package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/scale/pools"
)

const (
	sectionRollout = "rollout"
	sectionDecide  = "decide"
)

// measureRollout measures rollouts over so many nodes, and the decision alone for more.
func measureRollout(ctx context.Context, o options) (*Result, error) {
	result := newResult(o, "kube-apiserver 1.36.3 and etcd")
	of := pools.RolloutOptions{Nodes: o.Nodes, Machines: min(o.Machines, o.Nodes/2), Controller: o.Controller, Host: o.Host, FakeKubelet: o.FakeKubelet,
		Trial: 10 * time.Second, Settle: 15 * time.Second, Refusals: o.Rounds, News: o.Changes, Log: o.Log}
	figures, err := pools.MeasureRollout(ctx, of)
	if err != nil {
		return nil, err
	}
	result.rollout(figures)
	if err := result.decisions(ctx, o.Decide); err != nil {
		return nil, err
	}
	return result, result.finish()
}

func (r *Result) rollout(f *pools.Rollout) {
	one := func(name, unit string, value float64) *Row {
		row := r.row(sectionRollout, name, unit)
		row.add(value)
		return row
	}
	one("nodes", "", float64(f.Nodes))
	one("machines", "", float64(f.Machines))
	r.stage("by waves", f.Nodes, f.Nodes/10, &f.Waves)
	r.stage("all at once", f.Nodes, f.Nodes, &f.Together)
	r.stage("the way back", f.Nodes, f.Nodes, &f.Back)
	one("restarts of the controller", "", float64(f.Restarts))
	one("API server killed: until it noted the next assignment", "s", f.Away.Seconds())
	last, after := r.row(sectionRollout, "from the verdict to the last assignment", "ms"), r.row(sectionRollout, "assignments after the verdict", "")
	assigned := r.row(sectionRollout, "nodes that were assigned to by then", "")
	most, mostAfter := 0.0, 0.0
	for _, refusal := range f.Refusals {
		last.addTime(refusal.Last)
		after.add(float64(refusal.After))
		assigned.add(float64(refusal.Assigned))
		most, mostAfter = max(most, milliseconds(refusal.Last)), max(mostAfter, float64(refusal.After))
	}
	one("… the longest time", "ms", most).within(1000, "1 s")
	one("… the most assignments", "", mostAfter).within(8, "8")
	one("RSS of the controller", "MiB", f.Leader.Resident).within(150, "150 MiB at 5,000")
	one("… at most since its start", "MiB", f.Most)
	one("a decision of the controller", "ms", milliseconds(f.Decide.Mean)).within(20, "20 ms at 5,000")
	one("… processor time, with the news and all of the turn", "ms", milliseconds(f.Decide.Processor))
}

// stage makes the rows of one revision.
func (r *Result) stage(name string, nodes, unavailable int, s *pools.Stage) {
	one := func(what, unit string, value float64) *Row {
		row := r.row(sectionRollout, name+": "+what, unit)
		row.add(value)
		return row
	}
	one("until all nodes have proven it", "s", s.Took.Seconds())
	one("assignments", "", float64(s.Assigned))
	one("assignments a second, after the canaries", "/s", float64(max(0, s.Assigned-s.Canaries-1))/max(s.Sending, time.Millisecond).Seconds())
	one("assignments in the busiest second", "", float64(s.Busiest))
	one("PATCHes answered with 409, and decided anew", "", float64(s.Conflicts))
	one("PATCHes that failed otherwise", "", float64(s.Failed))
	one("assignments of whose answer there is no note", "", float64(s.Unnoted))
	one("status writes of nodes", "/node", float64(s.Words)/float64(nodes))
	one("status writes of nodes a second", "/s", float64(s.Words)/s.Took.Seconds())
	one("status writes of nodes in the busiest second", "", float64(s.WordsMost))
	one("status writes of the pool", "", float64(s.Pool))
	one("status writes of the pool a second", "/s", float64(s.Pool)/s.Took.Seconds())
	one("processor time of the controller", "ms/s", rate(s.Processor, s.Took))
	one("share of this machine in use", "%", 100*s.Busy)
	one("nodes unavailable at once, at most", "", float64(s.Unavailable)).within(float64(unavailable), "10 % by waves")
	one("nodes that were lost", "", float64(len(s.Behind))).within(0, "0")
	one("nodes that were assigned to twice", "", float64(len(s.Twice))).within(0, "0")
	one("waves that began too early", "", float64(len(s.Exceeded))).within(0, "0")
	for _, wrong := range [][]string{s.Behind, s.Twice, s.Exceeded, s.OverLimit} {
		if len(wrong) > 0 {
			r.Asked = append(r.Asked, fmt.Sprintf("%s: %q", name, wrong[:min(len(wrong), 5)]))
		}
	}
}

// decideLine is one of the benchmark's: the world, the nodes, the time of day and that of a processor.
var decideLine = regexp.MustCompile(`(?m)^BenchmarkDecide/(\S+?)/(\d+)(?:-\d+)?\s+\d+\s+([0-9.e+]+) ns/op\s+([0-9.e+]+) cpu-ns/op`)

// decisions measures the decision alone, by the benchmark of package rollout in its test program.
func (r *Result) decisions(ctx context.Context, program string) error {
	output, err := exec.CommandContext(ctx, program, "-test.run=^$", "-test.bench=^BenchmarkDecide$/^(halfway|steady)$/^(5000|15000)$", "-test.count=5").CombinedOutput()
	if err != nil {
		return fmt.Errorf("measuring the decision by %s: %w\n%s", program, err, output)
	}
	return r.readDecisions(string(output))
}

func (r *Result) readDecisions(output string) error {
	rows := map[string]*Row{}
	for _, found := range decideLine.FindAllStringSubmatch(output, -1) {
		for i, name := range []string{found[1] + ", " + found[2] + " nodes", found[1] + ", " + found[2] + " nodes: processor time"} {
			value, err := strconv.ParseFloat(found[3+i], 64)
			if err != nil {
				return fmt.Errorf("reading %q: %w", found[0], err)
			}
			row, known := rows[name]
			if !known {
				if row = r.row(sectionDecide, name, "ms"); found[2] == "5000" {
					row.within(20, "20 ms")
				}
				rows[name] = row
			}
			row.add(value / 1e6)
		}
	}
	if len(rows) == 0 {
		return fmt.Errorf("the benchmark of the decision says nothing of it:\n%s", output)
	}
	return nil
}
