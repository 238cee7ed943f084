package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const sectionTraffic = "API server"

func (b *bench) auditLogSize() int64 { return sizeOf(b.cluster.AuditLog()) }

// traffics gives that of supervisor and kubelet after the first bytes of the audit log.
func (b *bench) traffics(from int64) (own, kubelets traffic, err error) {
	log, err := os.ReadFile(b.cluster.AuditLog())
	if err != nil {
		return own, kubelets, err
	}
	if own, err = trafficOf(string(log), from, true); err != nil {
		return own, kubelets, err
	}
	kubelets, err = trafficOf(string(log), from, false)
	return own, kubelets, err
}

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

// idle measures a steady minute, with a configuration that has passed its trial, and then what changes cost the API server.
func (b *bench) idle(ctx context.Context) error {
	if err := b.binaryRow(); err != nil {
		return err
	}
	version, err := b.node.write(ctx, "bench-steady", b.node.payload(good))
	if err != nil {
		return err
	}
	if err := b.node.assign(ctx, "bench-steady"); err != nil {
		return err
	}
	if err := b.trial(ctx, version); err != nil {
		return err
	}
	kubelet := b.node.kubelet()
	supervisor, err := b.supervisorProcess("steady", []string{"--trial-period=1s"}, kubelet)
	if err != nil {
		return err
	}
	if err := b.node.awaitNode(ctx, "the configuration is active", func(v view) bool { return v.runs("bench-steady", version) }); err != nil {
		return err
	}
	first, err := footprintOf(supervisor.pid())
	if err != nil {
		return err
	}
	b.memoryRows("after the start", first)
	b.one(sectionFootprint, "file descriptors after the start", "", first.files)
	if err := b.diskRows("steady", "after the start"); err != nil {
		return err
	}
	err = b.node.awaitNode(ctx, "the trial is passed", func(v view) bool {
		return v.runs("bench-steady", version) && v.reason == "Active" && v.ready
	})
	if err != nil {
		return err
	}
	if err := b.steady(ctx, supervisor.pid(), kubelet[0]); err != nil {
		return err
	}
	if err := b.diskRows("steady", "steady"); err != nil {
		return err
	}
	if err := b.changeTraffic(ctx, supervisor.pid(), kubelet[0]); err != nil {
		return err
	}
	goroutines, err := b.endCounting(supervisor, kubelet[0])
	if err != nil {
		return err
	}
	b.one(sectionFootprint, "goroutines steady", "", goroutines)
	return nil
}

// trial counts what a supervisor asks for while a configuration is on its trial: it looks at the kubelet's Lease.
func (b *bench) trial(ctx context.Context, version string) error {
	supervisor, err := b.supervisorProcess("trial", nil, b.node.kubelet())
	if err != nil {
		return err
	}
	if err := b.node.awaitNode(ctx, "the configuration is on trial", func(v view) bool { return v.runs("bench-steady", version) }); err != nil {
		return err
	}
	took := min(b.Steady, 30*time.Second)
	if err := settled(ctx, took/3); err != nil { // what the change still asks for
		return err
	}
	audited := b.auditLogSize()
	if err := settled(ctx, took); err != nil {
		return err
	}
	own, _, err := b.traffics(audited)
	if err != nil {
		return err
	}
	b.one(sectionTraffic, fmt.Sprintf("GETs in %s of a trial", took), "", own.gets()).within(1+took.Seconds()/10, "1 in 10 s")
	return b.end(supervisor)
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
	b.idleRows(began.supervisor, now.supervisor, began.kubelet, now.kubelet)
	own, kubelets, err := b.traffics(began.audited)
	if err != nil {
		return err
	}
	requests := b.one(sectionTraffic, "the kubelet's requests steady", "/min", b.perMinute(kubelets.requests))
	b.one(sectionTraffic, "requests steady", "/min", b.perMinute(own.requests)).against(requests)
	b.one(sectionTraffic, "GETs steady", "", own.gets()).within(max(1, b.Steady.Minutes()/10), "1 in 10 min")
	b.one(sectionTraffic, "the kubelet's writes steady", "/min", b.perMinute(kubelets.writes)).yardstick()
	b.one(sectionTraffic, "writes steady", "/min", b.perMinute(own.writes)).within(0, "0")
	watches := b.one(sectionTraffic, "the kubelet's open watches steady", "", kubelets.watches)
	b.one(sectionTraffic, "open watches steady", "", own.watches).within(2, "2").against(watches)
	bytes := b.one(sectionTraffic, "the kubelet's bytes steady", "kB/min", b.perMinute(now.kilobytes[kubelet]-began.kilobytes[kubelet]))
	b.one(sectionTraffic, "bytes steady", "kB/min", b.perMinute(now.kilobytes[supervisor]-began.kilobytes[supervisor])).against(bytes)
	b.watchCostRows("steady", "/min", b.Steady.Minutes(), whole, metadata, bytes)
	return nil
}

// A moment is what can be counted at one.
type moment struct {
	audited             int64 // bytes of the audit log
	supervisor, kubelet footprint
	kilobytes           map[int]float64
}

func (b *bench) moment(supervisor, kubelet int) (m moment, err error) {
	m.audited = b.auditLogSize()
	if m.supervisor, err = footprintOf(supervisor); err != nil {
		return m, err
	}
	if m.kubelet, err = footprintOf(kubelet); err != nil {
		return m, err
	}
	m.kilobytes, err = b.kilobytes()
	return m, err
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
		before, err := b.kilobytes()
		if err != nil {
			return err
		}
		audited, began := b.auditLogSize(), time.Now()
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
		after, err := b.kilobytes()
		if err != nil {
			return err
		}
		own, kubelets, err := b.traffics(audited)
		if err != nil {
			return err
		}
		b.result.Asked = []string{"the supervisor: " + own.String(), "the kubelet: " + kubelets.String()}
		requests.add(own.requests)
		writes.add(own.writes)
		kubeletRequests.add(kubelets.requests)
		bytes.add(after[supervisor] - before[supervisor])
		kubeletBytes.add(after[kubeletOf(supervisor, program)])
	}
	whole, metadata, err := watched()
	if err != nil {
		return err
	}
	b.watchCostRows("per change", "", float64(rounds), whole, metadata, kubeletBytes)
	return nil
}
