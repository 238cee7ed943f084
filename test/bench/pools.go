//go:build linux

package main

import (
	"context"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/scale/pools"
)

const sectionPools = "pools"

// measurePools measures the controller of pools with so many nodes.
func measurePools(ctx context.Context, o options) (*Result, error) {
	figures, err := pools.Measure(ctx, pools.Options{Nodes: o.Nodes, Controller: o.Controller, Steady: o.Steady, News: o.Changes, Stops: 32, Log: o.Log})
	if err != nil {
		return nil, err
	}
	result := newResult(o, "kube-apiserver 1.36.3 and etcd")
	result.pools(figures)
	return result, result.finish()
}

func (r *Result) pools(f *pools.Figures) {
	one := func(name, unit string, value float64) *Row {
		row := r.row(sectionPools, name, unit)
		row.add(value)
		return row
	}
	one("nodes", "", float64(f.Nodes))
	most := 150.0
	if f.Nodes <= 100 {
		most = 60
	}
	one("RSS of the leader", "MiB", f.Leader.Resident).within(most, "60 MiB at 100, 150 MiB at 5,000")
	one("… at most since its start", "MiB", f.Most)
	one("… of it anonymous", "MiB", f.Leader.Anonymous)
	one("RSS of the one that stands by", "MiB", f.Standby.Resident)
	one("a decision", "ms", milliseconds(f.Decide.Mean)).within(20, "20 ms")
	one("… processor time, with the news and all of the turn", "ms", milliseconds(f.Decide.Processor))
	one("steady: writes, but for renewals of the Lease", "", float64(f.Steady.Writes)).within(0, "0")
	one("steady: renewals of the Lease", "/s", float64(f.Steady.Renewals)/f.Steady.Took.Seconds())
	one("steady: processor time of the leader", "ms/s", rate(f.Steady.Processor, f.Steady.Took))
	one("steady: heartbeats of nodes", "/s", float64(f.Steady.Heartbeats)/f.Steady.Took.Seconds())
	one("the pool's status", "KiB", float64(f.Status)/1024).within(64, "64 KiB")
	one("… stops that it names", "", float64(f.Stops))
	one("… failures that it names", "", float64(f.Failures))
	r.Asked = append(r.Asked, "steady: "+f.Steady.Requests.String())
}
