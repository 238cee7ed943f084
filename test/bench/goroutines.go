package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// endCounting ends a supervisor by SIGQUIT, for a program for production has no other way to tell its goroutines: Go's runtime then
// prints each. The kubelet, which is left behind, is ended as well.
func (b *bench) endCounting(supervisor *process, program string) (goroutines float64, err error) {
	kubelet := kubeletOf(supervisor.pid(), program)
	if kubelet == 0 {
		return 0, errors.New("counting goroutines: the supervisor has no kubelet")
	}
	held, err := unix.PidfdOpen(kubelet, 0)
	if err != nil {
		return 0, fmt.Errorf("counting goroutines: %w", err)
	}
	defer unix.Close(held)
	logged := supervisor.logSize()
	if err := supervisor.command.Process.Signal(syscall.SIGQUIT); err != nil {
		return 0, err
	}
	if err := b.end(supervisor); err != nil { // it has ended, or does
		return 0, err
	}
	if err := unix.PidfdSendSignal(held, unix.SIGTERM, nil, 0); err != nil {
		return 0, fmt.Errorf("ending the kubelet: %w", err)
	}
	if ready, err := unix.Poll([]unix.PollFd{{Fd: int32(held), Events: unix.POLLIN}}, int(stopPatience/time.Millisecond)); ready != 1 {
		return 0, errors.Join(fmt.Errorf("the kubelet did not end within %s of SIGTERM", stopPatience), err)
	}
	text, err := supervisor.logFrom(logged)
	if err != nil {
		return 0, err
	}
	if goroutines = goroutinesIn(text); goroutines == 0 {
		return 0, fmt.Errorf("counting goroutines: none are in what the supervisor printed on SIGQUIT: %.500s", text)
	}
	return goroutines, nil
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

// diskRows tell what the supervisor's folders take.
func (b *bench) diskRows(name, when string) error {
	state, err := diskOf(b.stateDir(name))
	if err != nil {
		return err
	}
	run, err := diskOf(b.runDir(name))
	if err != nil {
		return err
	}
	b.one(sectionFootprint, "disk, STATE_DIR, "+when, "KiB", state)
	b.one(sectionFootprint, "disk, RUN_DIR with the kubelet's log, "+when, "KiB", run)
	return nil
}

// diskOf gives the KiB that are allocated: a log with holes is no larger than what it holds.
func diskOf(folder string) (kibibytes float64, err error) {
	err = fs.WalkDir(os.DirFS(folder), ".", func(_ string, entry fs.DirEntry, err error) error {
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
	return kibibytes, err
}
