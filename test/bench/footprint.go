package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	sectionFootprint = "footprint"
	// ticksPerSecond is USER_HZ, in which /proc/PID/stat counts: 100 on all of Linux' architectures that Go runs on.
	ticksPerSecond = 100
)

// A footprint is what a process takes at a moment.
type footprint struct {
	resident, anonymous, proportional float64 // MiB
	processor                         float64 // ms of user and system time since its start
	files, threads                    float64
}

func footprintOf(pid int) (f footprint, err error) {
	folder := fmt.Sprintf("/proc/%d/", pid)
	rollup, err := os.ReadFile(folder + "smaps_rollup")
	if err != nil {
		return f, err
	}
	stat, err := os.ReadFile(folder + "stat")
	if err != nil {
		return f, err
	}
	files, err := os.ReadDir(folder + "fd")
	if err != nil {
		return f, err
	}
	f.resident, f.anonymous, f.proportional = mebibytes(rollup, "Rss:"), mebibytes(rollup, "Anonymous:"), mebibytes(rollup, "Pss:")
	f.files = float64(len(files))
	// What follows the name, which may hold anything: state is field 3, utime 14, stime 15, num_threads 20.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 18 {
		return f, fmt.Errorf("reading %sstat: %q is too short", folder, stat)
	}
	user, _ := strconv.ParseFloat(fields[14-3], 64)
	system, _ := strconv.ParseFloat(fields[15-3], 64)
	f.processor = (user + system) * 1000 / ticksPerSecond
	f.threads, _ = strconv.ParseFloat(fields[20-3], 64)
	return f, nil
}

func mebibytes(rollup []byte, name string) float64 {
	for line := range strings.Lines(string(rollup)) {
		if rest, is := strings.CutPrefix(line, name); is {
			kibibytes, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kibibytes / 1024
		}
	}
	return 0
}

// one makes a row of one sample.
func (b *bench) one(section, name, unit string, value float64) *Row {
	row := b.result.row(section, name, unit)
	row.add(value)
	return row
}

// memoryRows tell the memory at a moment.
func (b *bench) memoryRows(when string, f footprint) {
	b.one(sectionFootprint, "RSS "+when, "MiB", f.resident).within(18, "18 MiB")
	b.one(sectionFootprint, "anonymous memory "+when, "MiB", f.anonymous).within(6, "6 MiB")
}

// idleRows tell what the supervisor takes when nothing happens, beside its kubelet in the same minute.
func (b *bench) idleRows(began, supervisor, kubeletBegan, kubelet footprint) {
	b.memoryRows("steady", supervisor)
	rss := b.one(sectionFootprint, "the kubelet's RSS steady", "MiB", kubelet.resident)
	b.result.find(sectionFootprint + "/RSS steady").against(rss)
	anonymous := b.one(sectionFootprint, "the kubelet's anonymous memory steady", "MiB", kubelet.anonymous)
	b.result.find(sectionFootprint + "/anonymous memory steady").against(anonymous)
	processor := b.one(sectionFootprint, "the kubelet's processor time steady", "ms/min", b.perMinute(kubelet.processor-kubeletBegan.processor))
	b.one(sectionFootprint, "processor time steady", "ms/min", b.perMinute(supervisor.processor-began.processor)).against(processor)
	b.one(sectionFootprint, "file descriptors steady", "", supervisor.files)
	b.one(sectionFootprint, "threads steady", "", supervisor.threads)
}

func (b *bench) perMinute(value float64) float64 {
	return value * float64(time.Minute) / float64(b.Steady)
}

// manyChanges edits the assigned ConfigMap again and again, under a fake kubelet that starts and stops at once.
func (b *bench) manyChanges(ctx context.Context) error {
	if err := b.node.assign(ctx, "bench-many"); err != nil {
		return err
	}
	version, err := b.node.write(ctx, "bench-many", b.node.payload(good))
	if err != nil {
		return err
	}
	kubelet := b.node.kubelet()
	kubelet[0] = b.FakeKubelet
	supervisor, err := b.supervisorProcess("many", nil, kubelet)
	if err != nil {
		return err
	}
	runs := func(v view) bool { return v.runs("bench-many", version) }
	if err := b.node.awaitNode(ctx, "the first configuration is active", runs); err != nil {
		return err
	}
	watch, err := b.node.watch(ctx)
	if err != nil {
		return err
	}
	defer watch.Stop()
	for range b.Changes {
		if version, err = b.node.write(ctx, "bench-many", b.node.payload(good)); err != nil {
			return err
		}
		if _, err := watch.await(ctx, "the edit is active", runs); err != nil {
			return err
		}
	}
	f, err := footprintOf(supervisor.pid())
	if err != nil {
		return err
	}
	b.memoryRows(fmt.Sprintf("after %d configuration changes", b.Changes), f)
	b.one(sectionFootprint, fmt.Sprintf("file descriptors after %d configuration changes", b.Changes), "", f.files)
	b.one(sectionFootprint, fmt.Sprintf("threads after %d configuration changes", b.Changes), "", f.threads)
	checkpoints, err := filepath.Glob(b.stateDir("many") + "/checkpoints/*/*.sha256")
	if err != nil {
		return err
	}
	after := fmt.Sprintf("after %d configuration changes", b.Changes)
	b.one(sectionFootprint, "checkpoints on disk "+after, "", float64(len(checkpoints)))
	if err := b.diskRows("many", after); err != nil {
		return err
	}
	goroutines, err := b.endCounting(supervisor, b.FakeKubelet)
	if err != nil {
		return err
	}
	b.one(sectionFootprint, "goroutines "+after, "", goroutines)
	return nil
}

func (b *bench) binaryRow() error {
	info, err := os.Stat(b.Binary)
	if err != nil {
		return err
	}
	b.one(sectionFootprint, "size of the program", "MB", float64(info.Size())/1e6).within(18, "18 MB")
	return nil
}
