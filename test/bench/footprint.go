//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/kubelet-supervisor/kubelet-supervisor/test/cluster"
)

const sectionFootprint = "footprint"

// one makes a row of one sample.
func (b *bench) one(section, name, unit string, value float64) *Row {
	row := b.result.row(section, name, unit)
	row.add(value)
	return row
}

// memoryRows tell the memory at a moment.
func (b *bench) memoryRows(when string, u cluster.Usage) (resident, anonymous *Row) {
	return b.one(sectionFootprint, "RSS "+when, "MiB", u.Resident).within(18, "18 MiB"),
		b.one(sectionFootprint, "anonymous memory "+when, "MiB", u.Anonymous).within(6, "6 MiB")
}

// idleRows tell what the supervisor takes when nothing happens, beside its kubelet in the same minute.
func (b *bench) idleRows(began, now moment) {
	perMinute := func(began, now cluster.Usage) float64 {
		return b.perMinute(milliseconds(now.Processor - began.Processor))
	}
	resident, anonymous := b.memoryRows("steady", now.supervisor)
	resident.against(b.one(sectionFootprint, "the kubelet's RSS steady", "MiB", now.kubelet.Resident))
	anonymous.against(b.one(sectionFootprint, "the kubelet's anonymous memory steady", "MiB", now.kubelet.Anonymous))
	processor := b.one(sectionFootprint, "the kubelet's processor time steady", "ms/min", perMinute(began.kubelet, now.kubelet))
	b.one(sectionFootprint, "processor time steady", "ms/min", perMinute(began.supervisor, now.supervisor)).against(processor)
	b.one(sectionFootprint, "file descriptors steady", "", float64(now.supervisor.Files))
	b.one(sectionFootprint, "threads steady", "", float64(now.supervisor.Threads))
}

func (b *bench) perMinute(value float64) float64 {
	return value * float64(time.Minute) / float64(b.Steady)
}

// manyChanges edits the assigned ConfigMap again and again, under a fake kubelet that starts and stops at once.
func (b *bench) manyChanges(ctx context.Context) error {
	if b.Changes == 0 {
		return nil
	}
	kubelet := b.node.kubelet()
	kubelet[0] = b.FakeKubelet
	supervisor, version, err := b.running(ctx, "many", "bench-many", kubelet)
	if err != nil {
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
		if _, err := watch.await(ctx, "the edit is active", func(v view) bool { return v.runs("bench-many", version) }); err != nil {
			return err
		}
	}
	u, err := cluster.UsageOf(supervisor.PID())
	if err != nil {
		return err
	}
	checkpoints, err := filepath.Glob(b.stateDir("many") + "/checkpoints/*/*.sha256")
	if err != nil {
		return err
	}
	after := fmt.Sprintf("after %d configuration changes", b.Changes)
	b.memoryRows(after, u)
	b.one(sectionFootprint, "file descriptors "+after, "", float64(u.Files))
	b.one(sectionFootprint, "threads "+after, "", float64(u.Threads))
	b.one(sectionFootprint, "checkpoints on disk "+after, "", float64(len(checkpoints)))
	if err := b.diskRows("many", after); err != nil {
		return err
	}
	return b.endCounting(ctx, supervisor, b.FakeKubelet, after)
}

// endCounting ends a supervisor by SIGQUIT, for a program for production has no other way to tell its goroutines: Go's runtime then
// prints each. The kubelet, which is left behind, is ended as well.
func (b *bench) endCounting(ctx context.Context, supervisor *process, program, when string) error {
	kubelet := kubeletOf(supervisor.PID(), program)
	if kubelet == 0 {
		return errors.New("counting goroutines: the supervisor has no kubelet")
	}
	logged := supervisor.LogSize()
	supervisor.Signal(syscall.SIGQUIT)
	if err := b.end(supervisor); err != nil { // it has ended, or does
		return err
	}
	if err := syscall.Kill(kubelet, syscall.SIGTERM); err != nil {
		return fmt.Errorf("ending the kubelet: %w", err)
	}
	err := await(ctx, "the kubelet has ended", func() error {
		if words, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", kubelet)); err == nil && len(words) > 0 { // a zombie has none
			return fmt.Errorf("process %d is there", kubelet)
		}
		return nil
	})
	if err != nil {
		return err
	}
	text, err := supervisor.LogFrom(logged)
	if err != nil {
		return err
	}
	goroutines := goroutinesIn(text)
	if goroutines == 0 {
		return fmt.Errorf("counting goroutines: none are in what the supervisor printed on SIGQUIT: %.500s", text)
	}
	b.one(sectionFootprint, "goroutines "+when, "", goroutines)
	return nil
}

// goroutinesIn counts them in what Go's runtime prints on SIGQUIT; goroutine 0 is the runtime's own.
func goroutinesIn(dump string) (count float64) {
	_, dump, _ = strings.Cut(dump, "SIGQUIT: quit")
	for line := range strings.Lines(dump) {
		if strings.HasPrefix(line, "goroutine ") && !strings.HasPrefix(line, "goroutine 0 ") {
			count++
		}
	}
	return count
}

// diskRows tell what the supervisor's folders take: what is allocated, for a log with holes is no larger than what it holds.
func (b *bench) diskRows(name, when string) error {
	for _, of := range []struct{ name, folder string }{{"STATE_DIR", b.stateDir(name)}, {"RUN_DIR with the kubelet's log", b.runDir(name)}} {
		kibibytes := 0.0
		err := fs.WalkDir(os.DirFS(of.folder), ".", func(_ string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			if status, is := info.Sys().(*syscall.Stat_t); is {
				kibibytes += float64(status.Blocks) / 2
			}
			return nil
		})
		if err != nil {
			return err
		}
		b.one(sectionFootprint, "disk, "+of.name+", "+when, "KiB", kibibytes)
	}
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
