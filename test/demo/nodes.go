//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	nodev1 "github.com/kubelet-supervisor/kubelet-supervisor/api/node/v1"
	"github.com/kubelet-supervisor/kubelet-supervisor/fleet/rollout"
	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

// A wish is what a Node has to say; the error tells what it says instead.
type wish func(rollout.Node) error

func local(n rollout.Node) error {
	if n.Layered && n.Observed == "" && n.Reason == nodev1.ReasonLocal {
		return nil
	}
	return errors.New(said(n))
}

// proven: it runs what the pool has assigned to it as its last known good configuration.
func proven(n rollout.Node) error {
	if n.Mark.Records(n.Source) && n.Observed == n.Source && n.Active == n.Source && n.Good == n.Source && n.Reason == nodev1.ReasonActive {
		return nil
	}
	return errors.New(said(n))
}

// sparedBut is what all say after a stop: the canary is assigned another source, and runs the good one again; the others are at the good one.
func sparedBut(canary, good string) wish {
	return func(n rollout.Node) error {
		switch {
		case n.Name != canary && n.Source != good:
			return fmt.Errorf("is assigned %s", n.Source)
		case n.Name != canary:
			return proven(n)
		case n.Source != good && n.Active == good && n.Good == good && n.Reason == nodev1.ReasonRejected:
			return nil
		}
		return errors.New(said(n))
	}
}

func said(n rollout.Node) string {
	return fmt.Sprintf("assigned %q, observed %q, active %q, lastKnownGood %q, %s: %s", n.Source, n.Observed, n.Active, n.Good, n.Reason, n.Failure)
}

func (d *demo) nodes(ctx context.Context) ([]corev1.Node, error) {
	var list corev1.NodeList
	if err := d.client.Get().Resource("nodes").Do(ctx).Into(&list); err != nil {
		return nil, fmt.Errorf("listing the Nodes: %w", err)
	}
	return list.Items, nil
}

// awaitNodes waits until all three Nodes are as wished. It gives what they are assigned.
func (d *demo) awaitNodes(ctx context.Context, expected string, is wish) (sources []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		sources, err = d.look(ctx, is)
		if err == nil {
			return sources, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("expected: %s; seen: %w", expected, errors.Join(err, ctx.Err()))
		}
	}
}

func (d *demo) look(ctx context.Context, is wish) (sources []string, err error) {
	nodes, err := d.nodes(ctx)
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		n := rollout.ReadNode(&nodes[i])
		if wrong := is(n); wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", n.Name, wrong))
		}
		sources = append(sources, n.Source)
	}
	if want := 1 + len(d.fleet.fakes); len(nodes) != want {
		err = errors.Join(err, fmt.Errorf("%d Nodes, want %d", len(nodes), want))
	}
	return sources, err
}

// kubelets are the pids of all kubelets.
func (d *demo) kubelets(names ...string) (string, error) {
	var pids []string
	for _, name := range names {
		pid, err := d.kubeletOn(name)
		if err != nil {
			return "", fmt.Errorf("looking for the kubelet of %s: %w", name, err)
		}
		pids = append(pids, fmt.Sprint(pid))
	}
	return strings.Join(pids, " and "), nil
}

func (d *demo) kubeletOn(name string) (int, error) {
	if name == cluster.NodeName {
		return d.supervisor.kubelet()
	}
	for _, f := range d.fleet.fakes {
		if f.name == name {
			return kubeletOf(f.supervisor.PID(), f.kubelet)
		}
	}
	return 0, errors.New("there is no such node")
}
