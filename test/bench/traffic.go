//go:build linux

package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const sectionTraffic = "API server"

var (
	socketOwner = regexp.MustCompile(`pid=(\d+)`)
	socketBytes = regexp.MustCompile(`bytes_(?:sent|received):(\d+)`)
)

// kilobytes gives what each process has sent and received until now, TLS included, by its connections to the API server that are open.
func (b *bench) kilobytes() (map[int]float64, error) {
	output, err := b.cluster.Command("ss", "-HOtinp", "dst", "127.0.0.1:6443").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("asking for connections with ss: %w: %s", err, output)
	}
	return kilobytesIn(string(output)), nil
}

func kilobytesIn(sockets string) map[int]float64 {
	by := map[int]float64{}
	for line := range strings.Lines(sockets) {
		owner := socketOwner.FindStringSubmatch(line)
		if owner == nil {
			continue
		}
		pid, _ := strconv.Atoi(owner[1])
		for _, match := range socketBytes.FindAllStringSubmatch(line, -1) {
			bytes, _ := strconv.ParseFloat(match[1], 64)
			by[pid] += bytes / 1000
		}
	}
	return by
}

// idle measures a trial, a steady time with a configuration that has passed its trial, and then what changes cost the API server.
func (b *bench) idle(ctx context.Context) error {
	if err := b.binaryRow(); err != nil {
		return err
	}
	if err := b.trial(ctx); err != nil {
		return err
	}
	if err := b.metrics(ctx); err != nil {
		return err
	}
	kubelet := b.node.kubelet()
	supervisor, version, err := b.running(ctx, "steady", "bench-steady", kubelet, "--trial-period=1s")
	if err != nil {
		return err
	}
	first, err := cluster.UsageOf(supervisor.PID())
	if err != nil {
		return err
	}
	b.memoryRows("after the start", first)
	b.one(sectionFootprint, "file descriptors after the start", "", float64(first.Files))
	if err := b.diskRows("steady", "after the start"); err != nil {
		return err
	}
	err = b.node.awaitNode(ctx, "the trial is passed", func(v view) bool {
		return v.runs("bench-steady", version) && v.reason == "Active" && v.ready
	})
	if err != nil {
		return err
	}
	if err := b.steady(ctx, supervisor.PID(), kubelet[0]); err != nil {
		return err
	}
	if err := b.diskRows("steady", "steady"); err != nil {
		return err
	}
	if err := b.changeTraffic(ctx, supervisor.PID(), kubelet[0]); err != nil {
		return err
	}
	return b.endCounting(ctx, supervisor, kubelet[0], "steady")
}

// trial counts what a supervisor asks for while a configuration is on its trial: it looks at the kubelet's Lease.
func (b *bench) trial(ctx context.Context) error {
	supervisor, _, err := b.running(ctx, "trial", "bench-steady", b.node.kubelet())
	if err != nil {
		return err
	}
	took := min(b.Steady, 30*time.Second)
	if err := settled(ctx, took/3); err != nil { // what the change still asks for
		return err
	}
	if _, _, err := b.audit.Take(); err != nil {
		return err
	}
	if err := settled(ctx, took); err != nil {
		return err
	}
	own, _, err := b.audit.Take()
	if err != nil {
		return err
	}
	b.one(sectionTraffic, fmt.Sprintf("GETs in %s of a trial", took), "", float64(own.Count("get"))).within(1+took.Seconds()/10, "1 in 10 s")
	return b.end(supervisor)
}

// A moment is what can be counted at one.
type moment struct {
	own, kubelets       cluster.Requests // since the one before
	supervisor, kubelet cluster.Usage
	kilobytes           map[int]float64
}

func (b *bench) moment(supervisor, kubelet int) (m moment, err error) {
	if m.own, m.kubelets, err = b.audit.Take(); err != nil {
		return m, err
	}
	if m.supervisor, err = cluster.UsageOf(supervisor); err != nil {
		return m, err
	}
	if m.kubelet, err = cluster.UsageOf(kubelet); err != nil {
		return m, err
	}
	m.kilobytes, err = b.kilobytes()
	return m, err
}

func (b *bench) steady(ctx context.Context, supervisor int, program string) error {
	if err := settled(ctx, min(b.Steady, 10*time.Second)); err != nil { // the promotion's last words are not steady
		return err
	}
	kubelet := kubeletOf(supervisor, program)
	watched, err := b.watchCosts(ctx)
	if err != nil {
		return err
	}
	began, err := b.moment(supervisor, kubelet)
	if err != nil {
		return err
	}
	if err := settled(ctx, b.Steady); err != nil {
		return err
	}
	whole, metadata, err := watched()
	if err != nil {
		return err
	}
	now, err := b.moment(supervisor, kubelet)
	if err != nil {
		return err
	}
	b.idleRows(began, now)
	row := func(name, unit string, value float64) *Row { return b.one(sectionTraffic, name, unit, value) }
	perMinute := func(count int) float64 { return b.perMinute(float64(count)) }
	bytes := func(pid int) float64 { return b.perMinute(now.kilobytes[pid] - began.kilobytes[pid]) }
	requests := row("the kubelet's requests steady", "/min", perMinute(now.kubelets.Total()))
	row("requests steady", "/min", perMinute(now.own.Total())).against(requests)
	row("GETs steady", "", float64(now.own.Count("get"))).within(max(1, b.Steady.Minutes()/10), "1 in 10 min")
	row("the kubelet's writes steady", "/min", perMinute(now.kubelets.Writes()))
	row("writes steady", "/min", perMinute(now.own.Writes())).within(0, "0")
	watches := row("the kubelet's open watches steady", "", float64(now.kubelets.Watches))
	row("open watches steady", "", float64(now.own.Watches)).within(2, "2").against(watches)
	kubelets := row("the kubelet's bytes steady", "kB/min", bytes(kubelet))
	row("bytes steady", "kB/min", bytes(supervisor)).against(kubelets)
	b.watchCostRows("steady", "/min", b.Steady.Minutes(), whole, metadata, kubelets)
	return nil
}

// changeTraffic edits the assigned ConfigMap, and counts what supervisor and new kubelet ask for until the change is done.
func (b *bench) changeTraffic(ctx context.Context, supervisor int, program string) error {
	kubeletRequests := b.result.row(sectionTraffic, "the kubelet's requests per change (its restart)", "")
	requests := b.result.row(sectionTraffic, "requests per change", "").against(kubeletRequests)
	writes := b.result.row(sectionTraffic, "writes per change", "")
	kubeletBytes := b.result.row(sectionTraffic, "the kubelet's bytes per change (its restart)", "kB")
	bytes := b.result.row(sectionTraffic, "bytes per change", "kB").against(kubeletBytes)
	watched, err := b.watchCosts(ctx)
	if err != nil {
		return err
	}
	rounds := (b.Rounds + 2) / 3
	for range rounds {
		before, err := b.moment(supervisor, supervisor)
		if err != nil {
			return err
		}
		began := time.Now()
		version, err := b.node.write(ctx, "bench-steady", b.node.payload(good))
		if err != nil {
			return err
		}
		if err := b.node.awaitNode(ctx, "the edit is active", func(v view) bool { return v.runs("bench-steady", version) }); err != nil {
			return err
		}
		if err := settled(ctx, time.Until(began.Add(b.Window))); err != nil {
			return err
		}
		after, err := b.moment(supervisor, supervisor)
		if err != nil {
			return err
		}
		b.result.Asked = []string{"the supervisor: " + after.own.String(), "the kubelet: " + after.kubelets.String()}
		requests.add(float64(after.own.Total()))
		writes.add(float64(after.own.Writes()))
		kubeletRequests.add(float64(after.kubelets.Total()))
		bytes.add(after.kilobytes[supervisor] - before.kilobytes[supervisor])
		kubeletBytes.add(after.kilobytes[kubeletOf(supervisor, program)])
	}
	whole, metadata, err := watched()
	if err != nil {
		return err
	}
	b.watchCostRows("per change", "", float64(rounds), whole, metadata, kubeletBytes)
	return nil
}
