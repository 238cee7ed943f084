//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// onlyMetadata is what the supervisor's own watch asks for.
const onlyMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// A watchCost is what one watch of the Node delivers: the bytes of the answer's body, without TLS and HTTP.
type watchCost struct{ events, bytes float64 }

// watchCosts watches the Node twice, whole and as metadata, until stop is called.
func (b *bench) watchCosts(ctx context.Context) (stop func() (whole, metadata watchCost, err error), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var reading sync.WaitGroup
	var costs [2]watchCost
	var failed [2]error
	for i, accept := range []string{"application/json", onlyMetadata} {
		stream, err := b.node.client.Get().Resource("nodes").Param("watch", "true").Param("fieldSelector", "metadata.name="+cluster.NodeName).
			SetHeader("Accept", accept).Stream(ctx)
		if err != nil {
			cancel()
			reading.Wait()
			return nil, fmt.Errorf("watching the Node: %w", err)
		}
		reading.Go(func() {
			defer stream.Close()
			costs[i], failed[i] = readEvents(ctx, stream)
		})
	}
	return func() (watchCost, watchCost, error) {
		cancel()
		reading.Wait()
		for _, err := range failed {
			if err != nil {
				return costs[0], costs[1], err
			}
		}
		return costs[0], costs[1], nil
	}, nil
}

// readEvents reads until ctx ends; an event is a line, and the first is the Node as it is, which is not counted.
func readEvents(ctx context.Context, stream io.Reader) (cost watchCost, err error) {
	lines := bufio.NewReaderSize(stream, 1<<20)
	for first := true; ; first = false {
		line, err := lines.ReadBytes('\n')
		switch {
		case ctx.Err() != nil:
			return cost, nil
		case err != nil:
			return cost, fmt.Errorf("a watch of the Node ended: %w", err)
		case !first:
			cost.events++
			cost.bytes += float64(len(line))
		}
	}
}

// watchCostRows compare the two watches with what the kubelet itself causes meanwhile. times is how often what the rows are for was.
func (b *bench) watchCostRows(when, each string, times float64, whole, metadata watchCost, kubelets *Row) {
	b.one(sectionTraffic, "events of a watch of the Node "+when, each, whole.events/times)
	b.one(sectionTraffic, "if whole Nodes were watched, bytes of events "+when, "kB"+each, whole.bytes/1000/times).against(kubelets)
	b.one(sectionTraffic, "metadata is watched, bytes of events "+when, "kB"+each, metadata.bytes/1000/times).against(kubelets)
}
