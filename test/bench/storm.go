//go:build linux

package main

import (
	"context"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/scale"
)

const sectionStorm = "storm"

// measureStorm measures what many nodes want at once, of the commit that the host is from.
func measureStorm(ctx context.Context, o options) (*Result, error) {
	// A node that tries again does so within 20 s, where the API server was away for 16 s or less.
	of := scale.Options{Host: o.Host, Log: o.Log, FakeKubelet: o.FakeKubelet, Nodes: o.Nodes, Steady: o.Steady, Spread: time.Minute,
		Trial: 100 * time.Second, Edits: o.Edits, Quiet: 20 * time.Second}
	result := newResult(o, newestParts)
	storm, err := scale.MeasureStorm(ctx, of)
	if err != nil {
		return nil, err
	}
	result.storm(o.Nodes, storm)
	return result, result.finish()
}

func (r *Result) storm(nodes int, s *scale.Storm) {
	one := func(name, unit string, value float64) { r.row(sectionStorm, name, unit).add(value) }
	ask := func(name string, of cluster.Requests) {
		one(name+": requests", "", float64(of.Total()))
		r.Asked = append(r.Asked, name+": "+of.String()+failed(of))
	}
	one("nodes", "", float64(nodes))
	const edits = "edited every 2 s"
	seconds, asked := s.Edits.Took.Seconds(), s.Edits.Requests
	one(edits+": for", "s", seconds)
	one(edits+": edits", "", float64(s.Edited))
	one(edits+": writes of Nodes", "/s", float64(asked.Kinds["patch nodes"]+asked.Kinds["patch nodes/status"]+asked.Kinds["update nodes/status"])/seconds)
	one(edits+": pre-flights", "", float64(s.Preflights))
	one(edits+": kubelet starts", "", float64(s.Starts))
	one(edits+": processor time of the API server", "ms/s", rate(s.Edits.APIServer, s.Edits.Took))
	one(edits+": processor time of etcd", "ms/s", rate(s.Edits.Etcd, s.Edits.Took))
	one("the Leases alone, before: processor time of the API server", "ms/s", rate(s.Leases.APIServer, s.Leases.Took))
	one(edits+": share of this machine in use", "%", 100*s.Busy)
	one(edits+": from the last edit until every node runs it, or nobody waits any longer", "s", s.Settled.Seconds())
	one(edits+": nodes that do not run it then", "", float64(s.Behind))
	if s.Behind > 0 {
		r.Asked = append(r.Asked, edits+": the nodes that do not run it then say "+s.Instead)
	}
	ask(edits, asked)
	const back = "API server killed"
	one(back+": until a supervisor's request is received", "s", s.Return.Away.Seconds())
	ask(back+", the first second", s.Return.First)
	one(back+": requests in the busiest second", "", float64(s.Return.All.Peak))
	ask(back+", until it is quiet", s.Return.All)
	one(back+": from the first request to the last", "s", s.Return.Took.Seconds())
}
