package main

import (
	"context"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const (
	sectionUpstream = "the removed feature"

	// The last kubelet that has the feature, and the last API server that keeps its fields and can be built.
	removedKubelet   = "1.23.17"
	removedAPIServer = "1.24.17"
)

// measureUpstream measures the removed feature and ours beside it, on a cluster that still has the feature.
func measureUpstream(ctx context.Context, o options) (*Result, error) {
	return onCluster(ctx, o, cluster.Options{APIServer: removedAPIServer, Kubelet: removedKubelet},
		"kubelet "+removedKubelet+", kube-apiserver "+removedAPIServer+", etcd and containerd", (*bench).upstream)
}

// upstream measures one subject after another, the bare kubelet before and after them.
func (b *bench) upstream(ctx context.Context) error {
	b.bareRestart = b.result.row(sectionUpstream, "bare restart: "+untilHealthy, "ms")
	b.bareUnhealthy = b.result.row(sectionUpstream, "bare restart: "+notHealthy, "ms")
	b.bareStop = &Row{} // not shown
	subjects := b.subjects(ctx)
	b.upstreamRows(subjects)
	sections := []section{{"the bare kubelet", b.bare}}
	for _, s := range subjects {
		sections = append(sections, section{s.name, func(ctx context.Context) error { return b.changesOf(ctx, s) }})
	}
	return b.watched(ctx, func() error { return b.inTurn(ctx, append(sections, section{"the bare kubelet again", b.bare})...) })
}

// upstreamFigures names the figures of all kinds of changes.
func upstreamFigures() (names []string) {
	for _, kind := range []string{"good configuration", "in-place edit", "equal content", "removal", "refused payload", deadlyName} {
		first := untilSaid
		if kind == deadlyName {
			first = untilBack
		}
		for _, figure := range []string{first, notHealthy, starts} {
			names = append(names, kind+": "+figure)
		}
	}
	return names
}
