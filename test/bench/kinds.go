//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

const (
	// Budgets as multiples of the bare restart: between two assigned configurations, and from and to local.
	betweenTimes, betweenUnhealthy = 1.3, 0.75
	localTimes, localUnhealthy     = 2.2, 0.8
)

// A change is a kind of change, and what is measured of it.
type change struct {
	name   string
	starts float64 // of kubelets, that are allowed
	// Budgets of the latency and of the time without a healthy kubelet, as multiples of the bare restart; 0: none.
	times, timesUnhealthy float64
	// prepare makes everything but the last request; do makes it, and tells what the Node is to say then.
	prepare func(ctx context.Context) error
	do      func(ctx context.Context) (func(view) bool, error)

	latency, unhealthy, restarts *Row
	recovered, back              *Row // of a payload that is rolled back
}

// kinds are the changes in the order in which they are made in each round; each begins where the one before ended.
func (b *bench) kinds() []*change {
	n := b.node
	var version string
	write := func(name, kind string) func(context.Context) error {
		return func(ctx context.Context) (err error) {
			version, err = n.write(ctx, name, n.payload(kind))
			return err
		}
	}
	assign := func(name string, seen func(view) bool) func(context.Context) (func(view) bool, error) {
		return func(ctx context.Context) (func(view) bool, error) { return seen, n.assign(ctx, name) }
	}
	nothing := func(context.Context) error { return nil }
	edited := func(v view) bool { return v.runs("bench-good", version) }
	refusedSeen := func(v view) bool { return v.failed("bench-refused", version, "Refused") }
	return []*change{
		{name: "good configuration", starts: 1, times: localTimes, timesUnhealthy: localUnhealthy, prepare: write("bench-good", good),
			do: assign("bench-good", edited)},
		{name: "in-place edit", starts: 1, times: betweenTimes, timesUnhealthy: betweenUnhealthy, prepare: nothing,
			do: func(ctx context.Context) (func(view) bool, error) { return edited, write("bench-good", good)(ctx) }},
		{name: "equal content", starts: 0, prepare: nothing, do: func(ctx context.Context) (_ func(view) bool, err error) {
			version, err = n.label(ctx, "bench-good")
			return edited, err
		}},
		{name: "another configuration", starts: 1, times: betweenTimes, timesUnhealthy: betweenUnhealthy, prepare: write("bench-other", good),
			do: assign("bench-other", func(v view) bool { return v.runs("bench-other", version) })},
		{name: "layers over the local file", starts: 1, times: betweenTimes, timesUnhealthy: betweenUnhealthy, prepare: write("bench-layers", layers),
			do: assign("bench-layers", func(v view) bool { return v.runs("bench-layers", version) })},
		{name: "removal", starts: 1, times: localTimes, timesUnhealthy: localUnhealthy, prepare: nothing, do: assign("", view.local)},
		{name: "refused payload", starts: 0, prepare: write("bench-refused", refused), do: assign("bench-refused", refusedSeen)},
		{name: "refused payload in a trial", starts: 1, prepare: func(ctx context.Context) error {
			if err := errors.Join(write("bench-good", good)(ctx), n.assign(ctx, "bench-good")); err != nil {
				return err
			}
			if err := n.awaitNode(ctx, "another configuration is on trial", edited); err != nil {
				return err
			}
			return write("bench-refused", refused)(ctx)
		}, do: assign("bench-refused", refusedSeen)},
		{name: deadlyName, starts: 4, prepare: b.cleared(write("bench-deadly", deadly)), do: assign("bench-deadly", func(v view) bool {
			return v.failed("bench-deadly", version, "RolledBack")
		})},
	}
}

// cleared removes the assignment, waits until the Node says so, and then prepares.
func (b *bench) cleared(prepare func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := b.node.assign(ctx, ""); err != nil {
			return err
		}
		if err := b.node.awaitNode(ctx, "nothing is assigned", view.local); err != nil {
			return err
		}
		return prepare(ctx)
	}
}

// rows makes the rows of a kind of change, and names the budgets.
func (b *bench) rows(k *change) {
	words := ": until active names it"
	switch {
	case k.name == "removal":
		words = ": until the Node says local"
	case k.times == 0 && k.name != "equal content":
		words = ": until the Node says so"
	}
	k.latency = b.result.row(sectionChange, k.name+words, "ms").against(b.bareRestart)
	k.unhealthy = b.result.row(sectionChange, k.name+": kubelet not healthy", "ms").against(b.bareRestart)
	k.restarts = b.result.row(sectionChange, k.name+": kubelet starts", "")
	switch {
	case k.times > 0:
		k.latency.withinTimes(k.times, b.bareRestart)
		k.unhealthy.withinTimes(k.timesUnhealthy, b.bareRestart)
	case strings.HasPrefix(k.name, "refused payload"):
		k.latency.within(150, "150 ms")
	}
	if k.starts == 0 {
		k.unhealthy.Reference = ""
	}
	k.restarts.within(k.starts, fmt.Sprint(k.starts))
	if k.name == deadlyName {
		k.recovered = b.result.row(sectionChange, k.name+": until the last known good one is healthy again", "ms").within(5_000, "5 s")
		words := ": from the rollback's start of the kubelet until it is healthy"
		k.back = b.result.row(sectionChange, k.name+words, "ms").against(b.bareUnhealthy)
	}
}
